/// Releasing models that were added but that no visible property refers to.
extension ApplyReport {
  /// Releases the orphans. Orphans that hold each other in a cycle, and that nothing else holds, would never be
  /// deallocated: their properties are emptied. Cost: O(n) in the models that they hold.
  mutating func releaseOrphans() {
    if orphans.isEmpty { return }
    let records = orphans.compactMap(\.record)
    var open: [ModelRecord] = []
    var parents: [ObjectIdentifier: Int] = [:]
    for record in records { parents[ObjectIdentifier(record)] = record.parents.all.count }
    for record in records where isHeldElsewhere(record, among: parents) {
      parents[ObjectIdentifier(record)] = nil
      open.append(record)
    }
    // A model that is held by one that stays, stays.
    while let record = open.popLast() {
      record.forEachChild { child, _ in
        guard let below = child.record, parents.removeValue(forKey: ObjectIdentifier(below)) != nil
        else { return }
        open.append(below)
      }
    }
    // An orphan that no other orphan holds is deallocated without help, with the models that only it holds; the
    // rest are cycles.
    open = records.filter { parents[ObjectIdentifier($0)] == 0 }
    while let record = open.popLast() {
      parents[ObjectIdentifier(record)] = nil
      var links: Set<ParentLinks.Link> = []
      record.forEachChild { child, index in
        // A model that has several keys in a dictionary is linked once.
        guard let below = child.record, let count = parents[ObjectIdentifier(below)],
          links.insert(.init(parent: below, index: index)).inserted
        else { return }
        parents[ObjectIdentifier(below)] = count - 1
        if count == 1 { open.append(below) }
      }
    }
    for record in records where parents[ObjectIdentifier(record)] != nil {
      record.model?.releaseChildren(record)
    }
    orphans = []
  }

  private func isHeldElsewhere(
    _ record: ModelRecord, among orphans: [ObjectIdentifier: Int]
  ) -> Bool {
    record.parents.all.contains { orphans[ObjectIdentifier($0.parent)] == nil }
  }
}
