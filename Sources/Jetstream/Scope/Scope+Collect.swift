import Foundation

/// Collecting local changes, and making change sets of them.
extension Scope {
  /// The first change of a property since the last change set.
  func willCollect(from record: ModelRecord) {
    changed.append(record)
    startCollecting()
  }

  func startCollecting() {
    guard !isCollecting else { return }
    isCollecting = true
    ticker.request(self, after: changeInterval)
  }

  /// Delivers now what is due at the next tick and at the end of the change interval: observers
  /// first, then the change set. What observers change meanwhile is left for the next tick.
  ///
  /// The change set has everything that was collected, also properties whose
  /// ``PropertyOptions/minSyncInterval(_:)`` has not passed: so the app can make sure that nothing
  /// waits, before it goes to the background for instance. Within ``modify(_:author:_:)``, and in
  /// an observer that is told at once of what others did, there is no set before the end of that.
  public func flush() {
    if modification != nil { return }
    seal(includingHeldBack: true)
    ticker.deliverToObservers()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and delivers it; coalesced observers wait for the tick.
  /// What is held back for the sake of a minimal sync interval stays collected.
  package func sealChanges() {
    tickWillDeliver()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and gives its fragments, without firing ``onChanges``.
  /// A property whose ``PropertyOptions/minSyncInterval(_:)`` has not passed stays collected.
  public func takeFragments() -> [SyncFragment] {
    precondition(
      modification == nil,
      "takeFragments() was called within modify of scope \(name), whose changes belong together.")
    let handle = takeDeferred()
    defer { handle?.finish(.completed, nil) }
    return collect(for: handle)?.set.fragments ?? []
  }

  /// Whether local changes wait to become a change set. A change that was taken back since counts,
  /// and so does one that waits for a minimal sync interval to pass.
  public var hasCollectedChanges: Bool { !entered.isEmpty || !left.isEmpty || !changed.isEmpty }

  func tickWillDeliver() { seal() }

  func seal(includingHeldBack: Bool = false) {
    guard modification == nil else {
      isSealMissed = true
      return
    }
    // What is written next may be of properties that were changed here, which stay in front of it.
    guard applying == 0 else {
      isSealMissed = true
      return
    }
    isCollecting = false
    let handle = takeDeferred()
    let collected = collect(
      includingHeldBack: includingHeldBack || handle != nil, for: handle)
    if let collected { sealed.append(collected) } else { handle?.finish(.completed, nil) }
  }

  /// The handle of the calls of `modify` that the next set is of.
  func takeDeferred() -> ChangeSetHandle? {
    guard let over = deferred else { return nil }
    deferred = nil
    forgetDeparted(over)
    return over.handle
  }

  func tickDidDeliver() {
    // The sets that listeners make come out behind the one that they are told of.
    if isDelivering { return }
    isDelivering = true
    while !sealed.isEmpty {
      let collected = sealed.removeFirst()
      onChanges.fire(collected.set)
      if let whole = collected.whole {
        delivering = collected
        onWholeChanges.fire(whole)
        delivering = nil
      }
      if let handle = collected.handle, handle.claims == 0 { handle.finish(.completed, nil) }
    }
    isDelivering = false
    if incomingResumes { resumeNow() }
  }

  /// What becomes of the set that is being delivered: whoever asks decides about it. Nil outside of a
  /// delivery.
  func claimDelivered() -> ChangeSetHandle? {
    guard let set = delivering?.set else { return nil }
    let handle = delivering?.handle ?? ChangeSetHandle(set)
    handle.claims += 1
    delivering?.handle = handle
    return handle
  }

  /// Ends the interval. Nil if everything is as it was: values that returned to their base, models
  /// that came and went, leave nothing.
  ///
  /// - Parameters:
  ///   - wholeAnyway: whether whole values are wanted although nobody listens for them.
  ///   - handle: has an empty set, whose id and labels the set gets.
  func collect(
    includingHeldBack: Bool = false, wholeAnyway: Bool = false, for handle: ChangeSetHandle? = nil
  ) -> CollectedChanges? {
    let now = ticker.now
    throttle.forget(endedBy: now)
    // Whatever waits for an interval is looked at when the interval has passed, if not before.
    defer {
      if !isCollecting, let end = throttle.nextEnd { ticker.request(self, after: end - now) }
    }
    guard hasCollectedChanges || !unshared.isEmpty else { return nil }
    var fragments: [SyncFragment] = []
    var undo: [SyncFragment] = []
    // Peers that know no operations are sent whole collections, which are looked at now.
    let isWhole = wholeAnyway || onWholeChanges.hasListeners
    var whole: [SyncFragment] = []
    var wholeUndo: [SyncFragment] = []
    holdBackUnshared(&undo)
    fragments.reserveCapacity(entered.count + changed.count)
    undo.reserveCapacity(changed.count)
    for record in entered where record.isNew && record.scope === self {
      record.isNew = false
      record.dropBases()
      let fragment = record.addFragment()
      if !record.schema.throttledProperties.isEmpty {
        throttle.note(.init(values: fragment.properties), of: record, at: now)
      }
      fragments.append(fragment)
      if isWhole { whole.append(fragment) }
    }
    if keepsRemovedModels {
      for model in left {
        if let record = model.record, hasLeft(record) { undo.append(record.known()) }
      }
    }
    var heldBack: ContiguousArray<ModelRecord> = []
    for record in changed where !record.bases.isEmpty && record.scope === self {
      let differences = record.takeDifferences(whole: isWhole) { [throttle] in
        !includingHeldBack && throttle.holdsBack($0, of: record)
      }
      if !record.bases.isEmpty { heldBack.append(record) }
      guard !differences.now.isEmpty else { continue }
      if !record.schema.throttledProperties.isEmpty {
        throttle.note(differences.now, of: record, at: now)
      }
      let fragment = differences.now.fragment(of: record)
      fragments.append(fragment)
      let before = differences.before.fragment(of: record)
      undo.append(before)
      if isWhole {
        whole.append(differences.now.with(differences.wholeNow).fragment(of: record))
        wholeUndo.append(differences.before.with(differences.wholeBefore).fragment(of: record))
      }
    }
    if !left.isEmpty {
      let gone = takeLeft()
      for model in gone {
        if let record = model.record, hasLeft(record) { forget(record) }
      }
      withExtendedLifetime(gone) {}
    }
    entered.clear()
    if heldBack.isEmpty { changed.clear() } else { changed = heldBack }
    if fragments.isEmpty { return nil }
    let set = handle?.set.with(fragments, undo: undo) ?? ChangeSet(fragments: fragments, undo: undo)
    handle?.set = set
    return CollectedChanges(
      set: set, whole: isWhole ? set.with(whole, undo: wholeUndo) : nil, handle: handle)
  }
}

/// What was collected in one interval.
struct CollectedChanges {
  let set: ChangeSet
  /// The same with whole values instead of operations, if somebody wants that.
  let whole: ChangeSet?
  /// Tells what becomes of it; nil as long as nobody has asked.
  var handle: ChangeSetHandle?
}

extension Scope {
  /// A model of the scope has lost a parent.
  @inline(__always)
  func loosen(_ record: ModelRecord) {
    if hasLocalReferences { loosened.append(record) }
  }

  /// Finds the models that others have known, and that only local properties hold by now: towards
  /// others these are gone, so they are new when a synced property holds them again.
  ///
  /// - Parameter willForget: is called with each of them, while it is known what others know of it.
  func findUnshared(_ willForget: (ModelRecord) -> Void = { _ in }) {
    if loosened.isEmpty { return }
    var reachability = Reachability(self, onlySynced: true)
    var open = loosened
    loosened = []
    while let record = open.popLast() {
      guard record.scope === self, !record.isNew, !isRoot(record),
        reachability.unreached(from: record).contains(where: { $0 === record })
      else { continue }
      willForget(record)
      record.dropBases()
      record.isNew = true
      unshared.append(record)
      record.forEachChild { child, _ in if let below = child.record { open.append(below) } }
    }
  }

  /// Takes models that only local properties hold out of what was collected. They count as new for
  /// as long as that lasts. Those that others have known are added to `undo`: for them they have left.
  private func holdBackUnshared(_ undo: inout [SyncFragment]) {
    guard hasLocalReferences else { return }
    let isKept = keepsRemovedModels
    findUnshared { if isKept { undo.append($0.known()) } }
    var reachability = Reachability(self, onlySynced: true)
    var heldBack: Set<ObjectIdentifier> = []
    let candidates = unshared + entered
    unshared = []
    entered = []
    func isHeldBack(_ record: ModelRecord) -> Bool {
      // Others above it may be among these although the model itself is reached another way.
      guard reachability.unreached(from: record).contains(where: { $0 === record }) else {
        return false
      }
      if heldBack.insert(ObjectIdentifier(record)).inserted { unshared.append(record) }
      return true
    }
    for record in candidates where record.isNew && record.scope === self {
      if !isHeldBack(record) { entered.append(record) }
    }
    for record in changed where !record.bases.isEmpty && record.scope === self {
      guard isHeldBack(record) else { continue }
      if isKept, !record.isNew { undo.append(record.known()) }
      record.dropBases()
      record.isNew = true
    }
  }
}

extension ModelRecord {
  /// The model as an addition with every synced property.
  func addFragment(
    _ kind: SyncFragment.Kind = .add, withHeldBack: Bool = true
  ) -> SyncFragment {
    SyncFragment(
      kind, uuid: uuid, className: wireClassName,
      properties: syncedProperties(withHeldBack: withHeldBack))
  }

  /// The model that has left as the others know it, in a form that adds it again.
  func known() -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: wireClassName, properties: confirmedProperties())
  }

  /// The value that the others know of a property with a minimal sync interval, where it is not the
  /// current one.
  func heldBackBase(of property: ModelSchema.Property) -> JSONValue? {
    guard property.options.minSyncInterval != nil,
      let base = bases.first(where: { $0.index == property.index }),
      case .json(let value) = base.value
    else { return nil }
    return value
  }

  func syncedProperties(withHeldBack: Bool = true) -> JSONObject {
    var properties = JSONObject()
    guard let model else { return properties }
    for property in schema.properties where property.isSynced {
      let shared = withHeldBack ? nil : heldBackBase(of: property)
      properties.append(newKey: property.wireName, shared ?? model.json(of: property))
    }
    for (key, value) in unknownProperties { properties.append(newKey: key, value) }
    return properties
  }

  /// The properties that differ from their bases, with what leads there and back; forgets the bases,
  /// except those of properties that are to be held back.
  ///
  /// - Parameter whole: whether collections and counters are wanted as values, too.
  func takeDifferences(
    whole: Bool, holdingBack isHeldBack: (Int) -> Bool
  ) -> PropertyDifferences {
    var result = PropertyDifferences()
    let taken = bases
    dropBases()
    guard let model else { return result }
    let isThrottled = !schema.throttledProperties.isEmpty
    for base in taken {
      if isThrottled, isHeldBack(base.index) {
        captured.insert(base.index)
        bases.append(base)
        continue
      }
      let property = schema.properties[base.index]
      guard property.isSynced else { continue }
      if case .json(let old) = base.value {
        if model.holds(old, in: property) { continue }
        let new = model.json(of: property)
        if property.options.isCounter, let delta = JSONValue.difference(from: old, to: new) {
          result.add(property.wireName, [.add(delta)], [.add(-delta)])
          if whole { result.addWhole(property.wireName, now: new, before: old) }
        } else {
          result.now.values.append(newKey: property.wireName, new)
          result.before.values.append(newKey: property.wireName, old)
        }
      } else {
        let new = model.list(of: property)
        let steps: [ListOperation]
        switch base.value {
        case .steps(let known): steps = known
        case .list(let old): steps = ListDifference.operations(from: old, to: new)
        case .json: continue
        }
        let edit = CollectionEdit(steps, now: new)
        if edit.forward.isEmpty { continue }
        result.add(property.wireName, edit.forward, edit.backward)
        if whole {
          result.addWhole(property.wireName, now: new.json, before: steps.undone(on: new).json)
        }
      }
    }
    return result
  }
}

/// What has become of a model's properties since the last change set.
struct PropertyDifferences {
  /// Values and operations that take a model's properties from one state to another.
  struct Content {
    var values = JSONObject()
    var operations = PropertyOperations()

    var isEmpty: Bool { values.isEmpty && operations.isEmpty }

    func fragment(of record: ModelRecord) -> SyncFragment {
      SyncFragment(
        .change, uuid: record.uuid, className: record.wireClassName, properties: values,
        operations: operations)
    }

    /// The content with these values in place of the operations.
    func with(_ whole: JSONObject) -> Content {
      var values = values
      for (key, value) in whole { values.append(newKey: key, value) }
      return Content(values: values)
    }
  }

  /// What leads from the old values to the new ones.
  var now = Content()
  /// What leads back.
  var before = Content()
  /// The values that the operations have led to, and those that they began with.
  private(set) var wholeNow = JSONObject()
  private(set) var wholeBefore = JSONObject()

  mutating func add(
    _ key: String, _ forward: [PropertyOperation], _ backward: [PropertyOperation]
  ) {
    now.operations.append(newKey: key, forward)
    before.operations.append(newKey: key, backward)
  }

  mutating func addWhole(_ key: String, now: JSONValue, before: JSONValue) {
    wholeNow.append(newKey: key, now)
    wholeBefore.append(newKey: key, before)
  }
}

extension JSONValue {
  /// What has to be added to one whole number to get another; nil for anything else.
  static func difference(from old: JSONValue, to new: JSONValue) -> Int64? {
    func number(_ value: JSONValue) -> Int128? {
      switch value {
      case .integer(let number): Int128(number)
      case .unsigned(let number): Int128(number)
      default: nil
      }
    }
    guard let old = number(old), let new = number(new) else { return nil }
    // The way back has to be a number, too.
    return Int64(exactly: new - old).flatMap { $0 == .min ? nil : $0 }
  }
}

extension ModelList {
  /// The UUIDs in order.
  var json: JSONValue { .array(models.map { .string($0.uuid.wireText) }) }
}

extension ContiguousArray {
  /// Empties a queue that is filled again soon; the room of an exceptionally long one is given back.
  mutating func clear() {
    if capacity > 4096 { self = [] } else { removeAll(keepingCapacity: true) }
  }
}
