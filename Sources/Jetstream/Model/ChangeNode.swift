/// An observation of the changes of one model: a link in the model's ``ChangeChain``.
///
/// An observation costs one object, so registering one makes at most two allocations: the node, and
/// the model's record.
class ChangeNode: ObservationToken {
  /// True if every property counts; otherwise only those in ``properties`` count.
  private let observesAll: Bool
  /// True while the node waits to be served in a tick.
  @exclusivity(unchecked) final var isTriggered = false
  /// The properties whose changes count.
  final let properties: PropertySet
  /// The record of the observed model. Unowned: the record clears it before it is released.
  fileprivate(set) unowned(unsafe) final var record: ModelRecord?
  /// The next node, which this one owns, and the previous one. The first node's `previous` is the
  /// last node of the chain.
  @exclusivity(unchecked) fileprivate final var next: ChangeNode?
  @exclusivity(unchecked) fileprivate unowned(unsafe) final var previous: ChangeNode?

  /// Makes a node for the given properties; nil for all.
  init(observer: AnyObject?, properties: PropertySet?) {
    observesAll = properties == nil
    self.properties = properties ?? PropertySet()
    super.init(observer: observer)
  }

  @inline(__always)
  final func concerns(_ dirty: PropertySet) -> Bool {
    observesAll || properties.intersects(dirty)
  }

  /// Called in a tick in which properties of the model have changed, at least one that counts among
  /// them. Adds the work of this node to `delivery`.
  func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {}

  override final func leaveHolder() { record?.nodes.remove(self) }

  /// Ends the observation, because its observer has been released.
  final func drop() {
    forgetHandler()
    leaveHolder()
  }
}

/// The nodes of one model in order of registration. Adding and removing one costs O(1).
///
/// Objects that a node's callback captured are never released while the chain is being changed,
/// because their release may call back into the chain.
struct ChangeChain {
  private var first: ChangeNode?
  /// The number of nodes added since dead ones were last searched for.
  private var added: UInt32 = 0
  /// Dead nodes are searched for again after 16 << this many additions.
  private var step: UInt8 = 0

  @inline(__always)
  var isEmpty: Bool { first == nil }

  /// The number of nodes. Cost: O(n).
  var count: Int {
    var count = 0
    forEach { _ in count += 1 }
    return count
  }

  /// Appends a node. The model's `record` is passed each time, so that the chain need not hold it.
  mutating func append(_ node: ChangeNode, of record: ModelRecord) {
    added += 1
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

  /// The nodes that are cancelled, or whose observer has been released.
  var dead: [ChangeNode] {
    var dead: [ChangeNode] = []
    forEach { if !$0.isLive { dead.append($0) } }
    return dead
  }

  /// True if so many nodes were added that dead ones are to be searched for and removed.
  var isSearchDue: Bool { added + 1 >= 16 << UInt32(step) }

  /// Notes that the dead nodes were removed.
  mutating func noteSearched() {
    let alive = count
    step = 0
    while step < 24, 16 << Int(step) < alive { step += 1 }
    added = 0
  }

  /// Empties the chain and returns its first node, to be passed to ``release(_:)`` once no access
  /// is open.
  mutating func takeAll() -> ChangeNode? {
    forEach { $0.record = nil }
    defer { first = nil }
    return first
  }

  /// Releases the nodes one after the other, since releasing a long chain recursively would
  /// overflow the stack. Tokens that the app keeps hold no callback from then on.
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

/// A callback that runs once in each tick in which an observed property has changed.
class ChangeObservation: ChangeNode {
  /// The moment of registration. Not called in a tick in which all changes of the model were made before it.
  private let madeAt = ObservationClock.next()
  final var composites: [CompositeWatch] = []

  deinit { for composite in composites { composite.stop() } }

  override final func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {
    if madeAt <= moment { delivery.trigger(self) }
  }

  /// Evaluates outdated getters again. Observers called since the last evaluation may have changed
  /// the properties that the getters read, and the next value must be compared with the one that
  /// the callback sees.
  final func refreshComposites() {
    for composite in composites where composite.isOutdated { _ = composite.evaluate() }
  }

  /// Calls the callback, and removes the observation if its observer has been released.
  override final func callIfDue() {
    guard isTriggered else { return }
    isTriggered = false
    if !composites.isEmpty { refreshComposites() }
    if !call() { drop() }
  }

  /// Calls the callback. Returns false if its observer has been released.
  func call() -> Bool { true }

  override func forgetHandler() {
    let old = composites
    composites = []
    for composite in old { composite.stop() }
  }
}

/// An observation with an observer, which is passed to the callback.
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

/// An observation without an observer.
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
