/// Models that only local properties hold: others do not know them.
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
    var looked: Set<ObjectIdentifier> = []
    loosened = []
    while let record = open.popLast() {
      guard record.scope === self, !isRoot(record),
        reachability.unreached(from: record).contains(where: { $0 === record }),
        looked.insert(ObjectIdentifier(record)).inserted
      else { continue }
      if !record.isNew {
        remember(record)
        record.dropBases()
        record.isNew = true
        unshared.append(record)
      }
      // What is new itself may hold what is not.
      record.forEachChild { child, _ in if let below = child.record { open.append(below) } }
    }
  }

  /// Takes models that only local properties hold out of what was collected. They count as new for
  /// as long as that lasts. Towards those others that have known them, they have left.
  func holdBackUnshared() {
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
      if !record.isNew { remember(record) }
      record.dropBases()
      record.isNew = true
    }
  }
}
