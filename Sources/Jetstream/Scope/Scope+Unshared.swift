/// Models that only local properties hold: others do not know them.
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
  func holdBackUnshared(_ undo: inout [SyncFragment]) {
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
