/// Models that were added, but that nothing visible refers to.
extension ApplyReport {
  /// Lets go of the orphans. Those that hold each other in a circle, and that nothing else holds,
  /// would stay for good: they are made to hold nothing. Cost: O(n) for what they hold.
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
    // What is held by something that stays, stays.
    while let record = open.popLast() {
      record.forEachChild { child, _ in
        guard let below = child.record, parents.removeValue(forKey: ObjectIdentifier(below)) != nil
        else { return }
        open.append(below)
      }
    }
    // What no other one holds goes by itself, with what only it holds; what remains are circles.
    open = records.filter { parents[ObjectIdentifier($0)] == 0 }
    while let record = open.popLast() {
      parents[ObjectIdentifier(record)] = nil
      record.forEachChild { child, _ in
        guard let below = child.record, let count = parents[ObjectIdentifier(below)] else { return }
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
