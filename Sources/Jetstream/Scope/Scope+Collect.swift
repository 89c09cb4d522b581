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
  /// waits, before it goes to the background for instance.
  public func flush() {
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
  public func takeFragments() -> [SyncFragment] { collect()?.fragments ?? [] }

  /// Whether local changes wait to become a change set. A change that was taken back since counts,
  /// and so does one that waits for a minimal sync interval to pass.
  public var hasCollectedChanges: Bool { !entered.isEmpty || !left.isEmpty || !changed.isEmpty }

  func tickWillDeliver() { seal() }

  private func seal(includingHeldBack: Bool = false) {
    isCollecting = false
    if let set = collect(includingHeldBack: includingHeldBack) { sealed.append(set) }
  }

  func tickDidDeliver() {
    while !sealed.isEmpty { onChanges.fire(sealed.removeFirst()) }
  }

  /// Ends the interval. Nil if everything is as it was: values that returned to their base, models
  /// that came and went, leave nothing.
  func collect(includingHeldBack: Bool = false) -> ChangeSet? {
    let now = ticker.now
    throttle.forget(endedBy: now)
    // Whatever waits for an interval is looked at when the interval has passed, if not before.
    defer {
      if !isCollecting, let end = throttle.nextEnd { ticker.request(self, after: end - now) }
    }
    guard hasCollectedChanges || !unshared.isEmpty else { return nil }
    var fragments: [SyncFragment] = []
    var replaced: [JSONObject] = []
    holdBackUnshared()
    fragments.reserveCapacity(entered.count + changed.count)
    replaced.reserveCapacity(entered.count + changed.count)
    for record in entered where record.isNew && record.scope === self {
      record.isNew = false
      record.dropBases()
      let fragment = record.addFragment()
      throttle.note(fragment.properties, of: record, at: now)
      fragments.append(fragment)
      replaced.append([:])
    }
    var heldBack: ContiguousArray<ModelRecord> = []
    for record in changed where !record.bases.isEmpty && record.scope === self {
      let (properties, before) = record.takeDifferences { [throttle] in
        !includingHeldBack && throttle.holdsBack($0, of: record)
      }
      if !record.bases.isEmpty { heldBack.append(record) }
      guard !properties.isEmpty else { continue }
      throttle.note(properties, of: record, at: now)
      fragments.append(
        SyncFragment(
          .change, uuid: record.uuid, className: record.wireClassName, properties: properties))
      replaced.append(before)
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
    return fragments.isEmpty ? nil : ChangeSet(fragments: fragments, replaced: replaced)
  }
}

extension Scope {
  /// A model of the scope has lost a parent.
  @inline(__always)
  func loosen(_ record: ModelRecord) {
    if hasLocalReferences { loosened.append(record) }
  }

  /// Finds the models that others have known, and that only local properties hold by now: towards
  /// others these are gone, so they are new when a synced property holds them again.
  func findUnshared() {
    if loosened.isEmpty { return }
    var reachability = Reachability(self, onlySynced: true)
    var open = loosened
    loosened = []
    while let record = open.popLast() {
      guard record.scope === self, !record.isNew, !isRoot(record),
        reachability.unreached(from: record).contains(where: { $0 === record })
      else { continue }
      record.dropBases()
      record.isNew = true
      unshared.append(record)
      record.forEachChild { child, _ in if let below = child.record { open.append(below) } }
    }
  }

  /// Takes models that only local properties hold out of what was collected. They count as new for
  /// as long as that lasts.
  private func holdBackUnshared() {
    guard hasLocalReferences else { return }
    findUnshared()
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

  /// The properties that differ from their bases, with both values; forgets the bases, except those
  /// of properties that are to be held back.
  func takeDifferences(
    holdingBack isHeldBack: (Int) -> Bool
  ) -> (now: JSONObject, before: JSONObject) {
    var now = JSONObject()
    var before = JSONObject()
    let taken = bases
    dropBases()
    guard let model else { return (now, before) }
    let isThrottled = !schema.throttledProperties.isEmpty
    for base in taken {
      if isThrottled, isHeldBack(base.index) {
        captured.insert(base.index)
        bases.append(base)
        continue
      }
      let property = schema.properties[base.index]
      if case .json(let old) = base.value {
        if model.holds(old, in: property) { continue }
        now.append(newKey: property.wireName, model.json(of: property))
        before.append(newKey: property.wireName, old)
      } else {
        let new = model.list(of: property)
        guard let old = base.list(now: new), !new.isSame(as: old) else { continue }
        now.append(newKey: property.wireName, new.json)
        before.append(newKey: property.wireName, old.json)
      }
    }
    return (now, before)
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
