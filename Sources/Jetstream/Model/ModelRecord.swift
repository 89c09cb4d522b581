import Foundation

/// The data that the framework keeps for one model besides its values: UUID, parents, scope,
/// observers, and the changes since the last change set.
///
/// Made when one of these is first needed. A model without a record is a plain object.
@usableFromInline
final class ModelRecord {
  /// The model that owns this record; nil once it is released. Unowned, since the model clears it.
  unowned(unsafe) var model: ModelObject?
  let schema: ModelSchema
  // Small properties fill the gaps that alignment leaves: each word of a record counts.
  var uuidIfMade: UUID?
  @exclusivity(unchecked) private var flags: UInt8 = 0
  /// The number of ``parents`` that are in the scope.
  var scopedParents: Int32 = 0
  /// The tree whose root reaches the model. Unowned: its scope clears it before it is released.
  unowned(unsafe) var tree: ModelTree?
  /// The tree whose scope collects the model's changes: ``tree`` or, if the model has left its tree
  /// since the last change set, that former tree, in case the model returns.
  var captureTree: ModelTree? {
    get { capturing?.takeUnretainedValue() }
    set { capturing = newValue.map(Unmanaged.passUnretained) }
  }
  /// ``captureTree`` in a form that can be read without retaining it, as each write does.
  @exclusivity(unchecked) private var capturing: Unmanaged<ModelTree>?
  var parents = ParentLinks()
  // No access to these properties, or to others marked like them, is open while other code runs,
  // and every write reads them.
  @exclusivity(unchecked) var dirty = PropertySet()
  /// The moment of the last change that a coalesced observer may have to be notified of.
  @exclusivity(unchecked) var changedAt = 0
  /// The values at the last change set of the properties that have changed since.
  @exclusivity(unchecked) var bases = Bases()
  /// The observations that wait for changes of the model.
  @exclusivity(unchecked) var nodes = ChangeChain()
  /// The observers other than those in `nodes`.
  @exclusivity(unchecked) var observers: ModelObservers?
  /// The ticker that delivers while the model is in no scope.
  var ownTicker: Ticker?
  /// The collections that are being changed in place.
  @exclusivity(unchecked) var leases = OpenLeases()

  /// True while the model is in the queue of a ticker.
  var isQueued: Bool {
    get { flags & 1 != 0 }
    set { if newValue { flags |= 1 } else { flags &= ~1 } }
  }

  /// True if the model entered its scope after the last change set, so that the next one will add
  /// it.
  var isNew: Bool {
    get { flags & 2 != 0 }
    set { if newValue { flags |= 2 } else { flags &= ~2 } }
  }

  /// True while the scope of ``captureTree`` keeps the model among those that have left it.
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

  /// Returns true if a write to a plain property needs no further work: its base is stored, its
  /// observers are queued, and no observer is called at once. That is the case for all but the
  /// first write in a tick.
  @usableFromInline @_effects(releasenone)
  func isNoted(at offset: Int) -> Bool {
    let index = schema.index(atOffset: offset)
    // Usually the property was already written in this tick, and the model has no other observers.
    if isQueued, observers == nil, dirty.contains(index, asDoes: bases.properties),
      changedAt == ObservationClock.now
    {
      return true
    }
    if needsBase(index) || observers?.wantsEveryWrite == true { return false }
    if isQueued, dirty.contains(index), changedAt == ObservationClock.now { return true }
    return nodes.isEmpty && !TreeObservers.exist
  }

  /// Notes that a plain property was written. Called after the access to the property has ended.
  @usableFromInline
  func didWrite<Value: PropertyValue>(at offset: Int, old: Value, new: Value) {
    let index = schema.index(atOffset: offset)
    if needsBase(index) {
      keepBase(
        index,
        isInTransaction
          ? .plain(old._jsonValue) { Property<Value>.assign(value: old, to: $0, at: offset) }
          : .json(old._jsonValue))
    }
    noteChange(index)
    guard observers?.wantsEveryWrite == true else { return }
    fire(index) {
      $0.add { PropertyChange(key: schema.properties[index].name, old: old, new: new) }
    }
  }

  /// Returns true if the value before the next write must be stored for the change set.
  @inline(__always)
  func needsBase(_ index: Int) -> Bool {
    guard let capturing, !bases.contains(index) else { return false }
    let isShared = !isNew && schema.properties[index].isSynced
    return capturing._withUnsafeGuaranteedRef {
      // A transaction stores what it changes, whether other replicas know it or not: it may be
      // rolled back.
      !$0.isWritingRemotely && (isShared || $0.isInTransaction)
    }
  }

  func keepBase(_ index: Int, _ value: Base.Value) {
    guard let captureTree, !bases.contains(index) else { return }
    if bases.isEmpty {
      captureTree.keeper?.willCollect(from: self)
    } else if !schema.throttledProperties.isEmpty {
      // The existing bases may all be of properties that are held back.
      captureTree.keeper?.startCollecting()
    }
    bases.append(Base(index: index, value: value))
  }

  /// True while a call of `modify` runs, which may have to be rolled back.
  var isInTransaction: Bool {
    capturing?._withUnsafeGuaranteedRef { $0.isInTransaction } ?? false
  }

  /// Stores the steps by which a collection has changed; `now` is its current content.
  func keepSteps(_ steps: [ListOperation], of index: Int, now: @autoclosure () -> ModelList) {
    if needsBase(index) { return keepBase(index, .steps(steps)) }
    bases.append(steps, of: index, now: now())
  }

  /// Marks the property as changed for the next tick, unless nothing observes the model.
  @inline(__always)
  func noteChange(_ index: Int) {
    if nodes.isEmpty, !TreeObservers.exist { return }
    dirty.insert(index)
    changedAt = ObservationClock.now
    if !isQueued { queue() }
  }

  /// Queues the model for the next tick, if it has changed properties.
  func queue() {
    guard !isQueued, !dirty.isEmpty else { return }
    guard let ticker else {
      // Observers without a ticker are notified once there is one. Without observers the changes
      // are forgotten, since later observers are not notified of them.
      if !isObserved { dirty = PropertySet() }
      return
    }
    isQueued = true
    ticker.enqueue(self)
  }

  /// True if the model, or a tree that contains it, is observed.
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

  /// The ticker that delivers to this model's observers: the ticker of its scope or, for a model in
  /// no scope, that of the isolation domain in which it, or the tree above it, is observed.
  var ticker: Ticker? {
    if let tree { return tree.ticker }
    if let ownTicker { return ownTicker }
    guard TreeObservers.existOutsideOfScopes else { return nil }
    var found: Ticker?
    TreeWalk.ancestors(of: self) { record in
      found = found ?? record.tree?.ticker ?? record.ownTicker
      return found == nil
    }
    return found
  }

  /// Makes `actor` the one on which changes are delivered while the model is in no scope.
  @inline(__always)
  func needsTicker(of actor: (any Actor)?) {
    if tree == nil, ownTicker == nil, let actor { ownTicker = Ticker.on(actor) }
  }

  /// Queues pending changes on the ticker of the scope that the model has entered.
  func enteredTree(of ticker: Ticker) {
    if !isQueued {
      queue()
    } else if let ownTicker, ownTicker !== ticker {
      ticker.enqueue(self)
    }
  }

  /// Keeps the ticker of the scope that the model has left, so that it continues to deliver to
  /// observers.
  func keepTicker(_ ticker: Ticker) {
    if ownTicker == nil, !nodes.isEmpty || observers != nil { ownTicker = ticker }
  }

  /// Calls immediate observers of the events of property `index` that `add` collects.
  func fire(_ index: Int, _ add: (inout ImmediateEvents) -> Void) {
    var events = ImmediateEvents(of: self, index)
    add(&events)
    if !events.isEmpty { ImmediateDelivery.deliver(events) }
  }

  func dropBases() { bases = Bases() }

  func ensureObservers() -> ModelObservers {
    if let observers { return observers }
    let made = ModelObservers()
    observers = made
    return made
  }

  /// Registers `node` for changes of this model. Removes dead nodes from time to time, so that at
  /// most half of a long chain is dead.
  func add(_ node: ChangeNode) {
    if nodes.isSearchDue {
      for node in nodes.dead { node.drop() }
      nodes.noteSearched()
    }
    nodes.append(node, of: self)
  }

  // MARK: Children

  /// Calls `body` with each child and the index of the property that holds it, in order; with a child that has several
  /// keys in a dictionary, once for each of them. For a
  /// collection that is being changed in place, the children are those before the change, which are
  /// the linked ones.
  func forEachChild(_ body: (ModelObject, Int) -> Void) {
    guard let model, !schema.childProperties.isEmpty else { return }
    let address = UnsafeRawPointer(Unmanaged.passUnretained(model).toOpaque())
    for property in schema.childProperties {
      if property.kind == .collection {
        let before = leases.isEmpty ? nil : leases.content(before: property.index)
        let list = before ?? property.access.list(at: address + property.offset)
        list.forEach { body($0, property.index) }
      } else if property.kind == .dictionary {
        property.access.table(at: address + property.offset).forEach { body($1, property.index) }
      } else if let child = property.access.model(at: address + property.offset) {
        body(child, property.index)
      }
    }
  }
}
