extension ClientEngine {
  /// The sizes, by name, of the tables that are empty when nothing is pending and everything has been applied; for
  /// tests.
  package var restingTables: [String: Int] {
    var sizes: [String: Int] = [:]
    for replica in replicas {
      for (name, size) in replica.restingTables { sizes[name, default: 0] += size }
    }
    return sizes
  }

  /// The number of its own change sets that each scope remembers; for tests.
  package var rememberedWrites: [Int] { replicas.map(\.losses.ownWrites.count) }
}

extension Replica {
  fileprivate var restingTables: [String: Int] {
    [
      "pending": pending.count, "additions": overlay.additions.count, "overlay": overlay.keys.count,
      "graveyard": graveyard.count, "revived": graveyard.revived.count, "unnoted": losses.openCount,
      "held": session.held.messages.count, "unsafeDecisions": journal.unsafeDecisions.count,
      "stateParts": session.stateParts.count,
      "batch": batch.isEmpty ? 0 : 1,
    ]
  }
}
