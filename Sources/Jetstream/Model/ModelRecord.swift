import Foundation

/// What the framework knows about one model beyond its values: identity, parents, scope, observers,
/// and what has changed since the last change set.
///
/// Made when the first of these is needed. A model without one is a plain object.
@usableFromInline
final class ModelRecord {
  /// The model that owns this record; nil once it is gone. Unowned, since the model clears it.
  unowned(unsafe) var model: ModelObject?
  let schema: ModelSchema
  // The small ones stand where they fill the gaps that alignment leaves: each word of a record counts.
  var uuidIfMade: UUID?
  @exclusivity(unchecked) private var flags: UInt8 = 0
  /// When the nodes are looked through for dead ones again: once there are 16 << this.
  private var pruneStep: UInt8 = 0
  /// How many of ``parents`` are in the scope.
  var scopedParents: Int32 = 0
  /// The scope whose root reaches the model. Unowned: a scope that goes clears it.
  unowned(unsafe) var scope: Scope?
  /// The scope that collects changes: ``scope``, or the one the model has left since its last
  /// change set, in case it returns.
  var captureScope: Scope? {
    get { capturing?.takeUnretainedValue() }
    set { capturing = newValue.map(Unmanaged.passUnretained) }
  }
  /// ``captureScope`` in a form that can be looked at without retaining it, as each write does.
  @exclusivity(unchecked) private var capturing: Unmanaged<Scope>?
  var parents = ParentLinks()
  /// How many nodes have come since the dead ones were last looked for.
  private var nodesAdded: UInt32 = 0
  // No access to these, nor to others that are marked so, is open while other code runs, and every write
  // looks at them.
  @exclusivity(unchecked) var dirty = PropertySet()
  @exclusivity(unchecked) var captured = PropertySet()
  /// When the last change was that some coalesced observer may have to be told.
  @exclusivity(unchecked) var changedAt = 0
  @exclusivity(unchecked) var bases: ContiguousArray<Base> = []
  /// What waits for changes.
  @exclusivity(unchecked) var nodes = ChangeChain()
  /// Who observes in other ways.
  @exclusivity(unchecked) var observers: ModelObservers?
  /// Delivers while the model is in no scope.
  var ownTicker: Ticker?
  /// The collections that are being changed in place.
  @exclusivity(unchecked) var leases = OpenLeases()

  /// The value of a property as of the last change set.
  struct Base {
    enum Value {
      case json(JSONValue)
      case list(ModelList)
      /// The steps since then: unlike a copy of the list, they cost the next change nothing.
      case steps([ListOperation])
    }
    let index: Int
    var value: Value

    /// The collection as it was, where it is `now` as given. Nil for what is no collection.
    func list(now: ModelList) -> ModelList? {
      switch value {
      case .json: nil
      case .list(let list): list
      case .steps(let steps): steps.undone(on: now)
      }
    }
  }

  /// Whether the model stands in the queue of a ticker.
  var isQueued: Bool {
    get { flags & 1 != 0 }
    set { if newValue { flags |= 1 } else { flags &= ~1 } }
  }

  /// Whether the model came to its scope since the last change set, which will add it.
  var isNew: Bool {
    get { flags & 2 != 0 }
    set { if newValue { flags |= 2 } else { flags &= ~2 } }
  }

  /// Whether ``captureScope`` has the model among those that have left.
  var isKeptAsLeft: Bool {
    get { flags & 4 != 0 }
    set { if newValue { flags |= 4 } else { flags &= ~4 } }
  }

  init(_ model: ModelObject, schema: ModelSchema) {
    self.model = model
    self.schema = schema
  }

  var uuid: UUID {
    if let uuidIfMade { return uuidIfMade }
    let made = UUID.pooled()
    uuidIfMade = made
    return made
  }

  // MARK: Writes

  /// Whether a write to a plain property has no consequences: its base is kept, its observers have
  /// been queued, and nobody is told at once. That is so for all but the first write in a tick.
  @usableFromInline @_effects(releasenone)
  func isNoted(at offset: Int) -> Bool {
    let index = schema.index(atOffset: offset)
    // Mostly the property was written in this tick before, and nobody observes in other ways.
    if isQueued, observers == nil, dirty.contains(index, asDoes: captured),
      changedAt == ObservationClock.now
    {
      return true
    }
    if needsBase(index) || observers?.wantsEveryWrite == true { return false }
    if isQueued, dirty.contains(index), changedAt == ObservationClock.now { return true }
    return nodes.isEmpty && !TreeObservers.exist
  }

  /// A plain property was written; its access has ended.
  @usableFromInline
  func didWrite<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    let index = schema.index(atOffset: offset)
    if needsBase(index) {
      keepBase(index, .json(old.jsonValue))
      if let modification {
        let write = { Property<Value>.assign(value: old, to: $0, at: offset) }
        modification.keep(.plain(write), of: index, in: self)
      }
    }
    noteChange(index)
    if let bridge = observers?.bridge { fire { bridge.didChange(index) } }
    if let signal = observers?.propertyChange, signal.hasListeners {
      let change = PropertyChange(key: schema.properties[index].name, old: old, new: new)
      fire { signal.fire(change) }
    }
  }

  /// Whether the value before the next write has to be kept for the change set.
  @inline(__always)
  func needsBase(_ index: Int) -> Bool {
    guard let capturing, !captured.contains(index) else { return false }
    let isShared = !isNew && schema.properties[index].isSynced
    return capturing._withUnsafeGuaranteedRef {
      // What a modification changes has to be there if it is rolled back, whether others know it or not.
      !$0.isWritingRemotely && (isShared || $0.modification != nil)
    }
  }

  func keepBase(_ index: Int, _ value: Base.Value) {
    guard let captureScope, captured.insert(index) else { return }
    if bases.isEmpty {
      captureScope.willCollect(from: self)
    } else if !schema.throttledProperties.isEmpty {
      // The bases that are there may be of properties that are held back.
      captureScope.startCollecting()
    }
    bases.append(Base(index: index, value: value))
  }

  /// The call of `modify` that has to know the value before a write.
  var modification: Modification? { capturing?._withUnsafeGuaranteedRef { $0.modification } }

  /// Remembers how a collection, which is `now` as given, has changed.
  func keepSteps(_ steps: [ListOperation], of index: Int, now: @autoclosure () -> ModelList) {
    if needsBase(index) { return keepBase(index, .steps(steps)) }
    guard captured.contains(index), let place = bases.firstIndex(where: { $0.index == index }),
      case .steps(var all) = bases[place].value
    else { return }
    // Without a second reference to the steps they grow where they are.
    bases[place].value = .steps([])
    all.append(contentsOf: steps)
    let isLong = all.count > 4096 && all.count / 2 > now().count
    bases[place].value = isLong ? .list(all.undone(on: now())) : .steps(all)
  }

  /// Remembers the change for the next tick, if anybody would be told.
  @inline(__always)
  func noteChange(_ index: Int) {
    if nodes.isEmpty, !TreeObservers.exist { return }
    dirty.insert(index)
    changedAt = ObservationClock.now
    if !isQueued { queue() }
  }

  /// Has the next tick deliver what is dirty.
  func queue() {
    guard !isQueued, !dirty.isEmpty else { return }
    guard let ticker else {
      // Observers that no ticker serves yet are told once one does. Where there are none, a later one
      // is not told of what was before.
      if !isObserved { dirty = PropertySet() }
      return
    }
    isQueued = true
    ticker.enqueue(self)
  }

  /// Whether somebody waits for changes of the model, or of a tree that it is in.
  private var isObserved: Bool {
    if !nodes.isEmpty || observers?.trees.isEmpty == false { return true }
    guard TreeObservers.existOutsideOfScopes else { return false }
    var found = false
    TreeWalk.ancestors(of: self) { record in
      if record.observers?.trees.isEmpty == false { found = true }
      return !found
    }
    return found
  }

  /// The ticker that delivers to this model's observers: its scope's; outside of a scope the one of
  /// the isolation domain that observes it, or the tree above it.
  var ticker: Ticker? {
    if let scope { return scope.ticker }
    if let ownTicker { return ownTicker }
    guard TreeObservers.existOutsideOfScopes else { return nil }
    var found: Ticker?
    TreeWalk.ancestors(of: self) { record in
      found = found ?? record.scope?.ticker ?? record.ownTicker
      return found == nil
    }
    return found
  }

  /// Has changes delivered on `actor` while the model is in no scope.
  @inline(__always)
  func needsTicker(of actor: (any Actor)?) {
    if scope == nil, ownTicker == nil, let actor { ownTicker = Ticker.on(actor) }
  }

  /// The model has come into a scope: what waits for a tick elsewhere is delivered by its ticker.
  func enteredScope(of ticker: Ticker) {
    if !isQueued {
      queue()
    } else if let ownTicker, ownTicker !== ticker {
      ticker.enqueue(self)
    }
  }

  /// The model has left a scope, whose ticker goes on delivering to its observers.
  func keepTicker(_ ticker: Ticker) {
    if ownTicker == nil, !nodes.isEmpty || observers != nil { ownTicker = ticker }
  }

  /// Calls observers. What they change is a local change, also while remote ones are applied.
  func fire(_ body: () -> Void) {
    guard let scope = captureScope, scope.isWritingRemotely else { return body() }
    scope.isWritingRemotely = false
    body()
    scope.isWritingRemotely = true
  }

  func dropBases() {
    captured = PropertySet()
    bases = []
  }

  func ensureObservers() -> ModelObservers {
    if let observers { return observers }
    let made = ModelObservers()
    observers = made
    return made
  }

  /// Lets `node` wait for changes of this model. Now and then the dead ones are let go, so that at
  /// most half of a long chain is dead.
  func add(_ node: ChangeNode) {
    nodesAdded += 1
    if nodesAdded >= 16 << UInt32(pruneStep) { pruneNodes() }
    nodes.append(node, of: self)
  }

  private func pruneNodes() {
    for node in nodes.dead { node.drop() }
    let alive = nodes.count
    pruneStep = 0
    while pruneStep < 24, 16 << Int(pruneStep) < alive { pruneStep += 1 }
    nodesAdded = 0
  }

  // MARK: Children

  /// Calls `body` with each child and the index of the property that holds it, in order. Of a collection
  /// that is being changed these are the ones before the change, which are the ones that are linked.
  func forEachChild(_ body: (ModelObject, Int) -> Void) {
    guard let model, !schema.childProperties.isEmpty else { return }
    let address = UnsafeRawPointer(Unmanaged.passUnretained(model).toOpaque())
    for property in schema.childProperties {
      if property.kind == .collection {
        let before = leases.isEmpty ? nil : leases.content(before: property.index)
        let list = before ?? property.access.list(at: address + property.offset)
        list.forEach { body($0, property.index) }
      } else if let child = property.access.model(at: address + property.offset) {
        body(child, property.index)
      }
    }
  }
}
