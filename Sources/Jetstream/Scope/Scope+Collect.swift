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
  public func flush() {
    tickWillDeliver()
    ticker.deliverToObservers()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and delivers it; coalesced observers wait for the tick.
  package func sealChanges() {
    tickWillDeliver()
    tickDidDeliver()
  }

  /// Makes a change set of what was collected and gives its fragments, without firing ``onChanges``.
  public func takeFragments() -> [SyncFragment] { collect()?.fragments ?? [] }

  /// Whether local changes wait to become a change set. A change that was taken back since counts.
  public var hasCollectedChanges: Bool { !entered.isEmpty || !left.isEmpty || !changed.isEmpty }

  func tickWillDeliver() {
    isCollecting = false
    if let set = collect() { sealed.append(set) }
  }

  func tickDidDeliver() {
    while !sealed.isEmpty { onChanges.fire(sealed.removeFirst()) }
  }

  /// Ends the interval. Nil if everything is as it was: values that returned to their base, models
  /// that came and went, leave nothing.
  func collect() -> ChangeSet? {
    guard hasCollectedChanges else { return nil }
    var fragments: [SyncFragment] = []
    var bases: [UUID: JSONObject] = [:]
    holdBackUnshared()
    for record in entered where record.isNew && record.scope === self {
      record.isNew = false
      record.dropBases()
      fragments.append(record.addFragment())
    }
    for record in changed where !record.bases.isEmpty && record.scope === self {
      let (properties, before) = record.takeDifferences()
      guard !properties.isEmpty else { continue }
      fragments.append(
        SyncFragment(
          .change, uuid: record.uuid, className: record.schema.wireName, properties: properties))
      bases[record.uuid] = before
    }
    for model in left.values {
      if let record = model.record, record.scope == nil, record.captureScope === self {
        forget(record)
      }
    }
    let gone = left
    entered.removeAll()
    left = [:]
    changed.removeAll()
    withExtendedLifetime(gone) {}
    return fragments.isEmpty ? nil : ChangeSet(fragments: fragments, bases: bases)
  }
}

extension Scope {
  /// Takes models that only local properties hold out of what was collected. They count as new for
  /// as long as that lasts.
  private func holdBackUnshared() {
    guard hasLocalReferences else { return }
    var reachability = Reachability(self, onlySynced: true)
    var heldBack: Set<ObjectIdentifier> = []
    let candidates = unshared + entered
    unshared = []
    entered = []
    func isHeldBack(_ record: ModelRecord) -> Bool {
      if reachability.unreached(from: record).isEmpty { return false }
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
  func addFragment(_ kind: SyncFragment.Kind = .add) -> SyncFragment {
    SyncFragment(kind, uuid: uuid, className: schema.wireName, properties: syncedProperties())
  }

  func syncedProperties() -> JSONObject {
    var properties = JSONObject()
    guard let model else { return properties }
    for property in schema.properties where property.isSynced {
      properties.append(newKey: property.wireName, model.json(of: property))
    }
    return properties
  }

  /// The properties that differ from their bases, with both values; forgets the bases.
  func takeDifferences() -> (now: JSONObject, before: JSONObject) {
    var now = JSONObject()
    var before = JSONObject()
    let taken = bases
    dropBases()
    guard let model else { return (now, before) }
    for base in taken {
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
