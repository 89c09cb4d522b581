import Foundation

/// Models that only local properties hold. For others they do not exist: they are new when a synced property
/// holds them again, unless others have put them there. What is not new, and in no change set that is still
/// to be made, is shared.
extension Scope {
  /// The model with this UUID, if it is in the scope and others know it, as of the last change set. Cost: O(1).
  package func sharedModel(_ uuid: UUID) -> ModelObject? {
    guard let record = record(of: uuid), !record.isNew else { return nil }
    return record.model
  }

  /// A model of the scope has lost a parent.
  @inline(__always)
  func loosen(_ record: ModelRecord) {
    guard hasLocalReferences else { return }
    loosened.append(record)
    // The next tick looks at it, also if the app changes nothing else.
    if applying == 0, modification == nil { startCollecting() }
  }

  /// Finds the models that others have known, and that only local properties hold by now: towards
  /// others these are gone, so they are new when a synced property holds them again.
  func findUnshared() {
    if loosened.isEmpty { return }
    var reachability = Reachability(self, onlySynced: true)
    var open = loosened
    var looked: Set<ObjectIdentifier> = []
    loosened = []
    while let record = open.popLast() {
      guard record.scope === self, !isRoot(record),
        reachability.unreached(from: record).contains(where: { $0 === record }),
        looked.insert(ObjectIdentifier(record)).inserted
      else { continue }
      if !record.isNew {
        withdraw(record)
        unshared.append(record)
      }
      // What is new itself may hold what is not.
      record.forEachChild { child, _ in if let below = child.record { open.append(below) } }
    }
  }

  private func withdraw(_ record: ModelRecord) {
    tellWithdrawn(record)
    remember(record)
    record.dropBases()
    record.isNew = true
  }

  /// Finds the models that only local properties have held, and that others have put where a synced one holds
  /// them: others know these, and what they hold. Cost: O(n) in the models that only local properties hold.
  func findShared() {
    if unshared.isEmpty { return }
    share(unshared.filter { $0.scope === self && $0.isNew && isHeldByOthers($0) })
  }

  /// Others are about to put a model into a property. If only local properties hold it, it is shared before that:
  /// observers are told when it is there, and what they write then has to be collected.
  func willHold(_ model: ModelObject, at index: Int, of parent: ModelRecord) {
    guard !unshared.isEmpty, modification == nil, let record = model.record, record.isNew,
      record.scope === self, unshared.contains(where: { $0 === record }),
      isKnownToOthers(index, of: parent), parent !== record
    else { return }
    share([record])
    // The same message may take it out again.
    loosen(record)
  }

  private func share(_ records: ContiguousArray<ModelRecord>) {
    if records.isEmpty { return }
    var open = records
    isWritingRemotely = true
    while let record = open.popLast() {
      guard record.isNew else { continue }
      record.dropBases()
      record.isNew = false
      tellShared(record)
      record.forEachChild { child, index in
        guard record.schema.properties[index].isSynced, let below = child.record,
          below.scope === self, below.isNew
        else { return }
        open.append(below)
      }
    }
    isWritingRemotely = false
    unshared.removeAll { !$0.isNew }
  }

  /// Returns whether a synced property holds the model for other replicas too: its parent is shared, and the property
  /// was not changed here since the last change set.
  private func isHeldByOthers(_ record: ModelRecord) -> Bool {
    record.parents.all.contains {
      $0.isSynced && $0.parent !== record && isKnownToOthers($0.index, of: $0.parent)
    }
  }

  /// Returns whether others know what a model has in a property.
  private func isKnownToOthers(_ index: Int, of record: ModelRecord) -> Bool {
    record.scope === self && record.captureScope === self && !record.isNew
      && !record.isChanged(index)
  }

  /// Takes models that only local properties hold out of what was collected. They count as new for
  /// as long as that lasts. Towards those others that have known them, they have left.
  func holdBackUnshared() {
    guard hasLocalReferences else { return }
    findUnshared()
    var reachability = Reachability(self, onlySynced: true)
    var heldBack: Set<ObjectIdentifier> = []
    let known = unshared
    let candidates = known + entered
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
    for (at, record) in candidates.enumerated() where record.isNew && record.scope === self {
      if isHeldBack(record) { continue }
      entered.append(record)
      if at < known.count { tellShared(record) }
    }
    for record in changed where !record.bases.isEmpty && record.scope === self {
      guard isHeldBack(record) else { continue }
      if record.isNew { record.dropBases() } else { withdraw(record) }
    }
  }
}
