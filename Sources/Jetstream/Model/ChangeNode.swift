/// Something that waits for changes of one model: a link in the model's ``ChangeChain``.
///
/// One object is all that an observation costs, so that registering one is two allocations at most:
/// this, and the model's record.
class ChangeNode: ObservationToken {
  /// Whether every property counts; otherwise those in ``properties``.
  private let observesAll: Bool
  /// Set while the node waits for its turn in a tick.
  @exclusivity(unchecked) final var isTriggered = false
  /// The properties whose changes count.
  final let properties: PropertySet
  /// The model that is waited for. Unowned: a record that goes clears it.
  fileprivate(set) unowned(unsafe) final var record: ModelRecord?
  /// The next node, which this one owns, and the one before, which is the chain's last for its first.
  @exclusivity(unchecked) fileprivate final var next: ChangeNode?
  @exclusivity(unchecked) fileprivate unowned(unsafe) final var previous: ChangeNode?

  /// Nil for all properties.
  init(observer: AnyObject?, properties: PropertySet?) {
    observesAll = properties == nil
    self.properties = properties ?? PropertySet()
    super.init(observer: observer)
  }

  @inline(__always)
  final func concerns(_ dirty: PropertySet) -> Bool {
    observesAll || properties.intersects(dirty)
  }

  /// The properties of the model in `dirty` have changed, one that counts among them; what there is to do in this tick goes into `delivery`.
  func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {}

  override final func leaveHolder() { record?.nodes.remove(self) }

  /// Lets go of what nobody can be told any more, because the observer has gone.
  final func drop() {
    forgetHandler()
    leaveHolder()
  }
}

/// The nodes of one model in the order in which they came. Adding and removing one costs O(1).
///
/// What a node's callback captured is never released while the chain is being changed, since its
/// going may lead back here.
struct ChangeChain {
  private var first: ChangeNode?

  @inline(__always)
  var isEmpty: Bool { first == nil }

  /// Cost: O(n).
  var count: Int {
    var count = 0
    forEach { _ in count += 1 }
    return count
  }

  /// The model's `record` is given anew each time, so that a chain need not hold it.
  mutating func append(_ node: ChangeNode, of record: ModelRecord) {
    node.record = record
    guard let first else {
      node.previous = node
      first = node
      return
    }
    let last = first.previous!
    last.next = node
    node.previous = last
    first.previous = node
  }

  mutating func remove(_ node: ChangeNode) {
    guard node.record != nil, let first else { return }
    let previous = node.previous
    let next = node.next
    if node === first {
      self.first = next
    } else {
      previous?.next = next
    }
    if let next {
      next.previous = previous
    } else if node !== first {
      self.first?.previous = previous
    }
    node.record = nil
    node.next = nil
    node.previous = nil
    withExtendedLifetime((node, first)) {}
  }

  /// Calls `body` with each node. The chain must not be changed meanwhile.
  @inline(__always)
  func forEach(_ body: (ChangeNode) -> Void) {
    var next = first
    while let node = next {
      body(node)
      next = node.next
    }
  }

  /// The nodes that are cancelled, or whose observer has gone.
  var dead: [ChangeNode] {
    var dead: [ChangeNode] = []
    forEach { if !$0.isLive { dead.append($0) } }
    return dead
  }

  /// Empties the chain and gives its first node, for ``release(_:)`` once no access is open.
  mutating func takeAll() -> ChangeNode? {
    forEach { $0.record = nil }
    defer { first = nil }
    return first
  }

  /// Lets go of the nodes one after the other: a long chain must not be released by recursion. Tokens
  /// that somebody keeps hold nothing from here on.
  static func release(_ first: consuming ChangeNode?) {
    var next = consume first
    while let node = next {
      node.forgetHandler()
      next = node.next
      node.next = nil
      node.previous = nil
    }
  }
}

/// A callback that runs once a tick in which one of the things it observes has changed.
class ChangeObservation: ChangeNode {
  /// A moment later than all changes before the registration: they are not told.
  private let madeAt = ObservationClock.next()
  final var composites: [CompositeWatch] = []

  deinit { for composite in composites { composite.stop() } }

  override final func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {
    if madeAt <= moment { delivery.trigger(self) }
  }

  /// Other observers have been called since the getters ran, and may have changed what these read: the
  /// next value is compared with the one that the callback sees.
  final func refreshComposites() {
    for composite in composites where composite.isOutdated { _ = composite.evaluate() }
  }

  /// Calls the callback; false if its observer has gone.
  func call() -> Bool { true }

  override func forgetHandler() {
    let old = composites
    composites = []
    for composite in old { composite.stop() }
  }
}

/// An observation on behalf of an object, which the callback is given.
final class BoundObservation<Observer: AnyObject>: ChangeObservation {
  private var handler: ((Observer) -> Void)?

  init(_ observer: Observer, properties: PropertySet?, _ handler: @escaping (Observer) -> Void) {
    self.handler = handler
    super.init(observer: observer, properties: properties)
  }

  override func call() -> Bool {
    guard let observer else { return false }
    // The observer is what `init` was given, so it is of this type.
    if !isMuted { handler?(unsafeDowncast(observer, to: Observer.self)) }
    return true
  }

  override func forgetHandler() {
    handler = nil
    super.forgetHandler()
  }
}

/// An observation on behalf of nobody.
final class FreeObservation: ChangeObservation {
  private var handler: (() -> Void)?

  init(properties: PropertySet?, _ handler: @escaping () -> Void) {
    self.handler = handler
    super.init(observer: nil, properties: properties)
  }

  override func call() -> Bool {
    if !isMuted { handler?() }
    return true
  }

  override func forgetHandler() {
    handler = nil
    super.forgetHandler()
  }
}
