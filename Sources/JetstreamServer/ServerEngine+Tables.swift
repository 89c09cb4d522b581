import Jetstream

extension ServerEngine {
  /// The sizes of the tables that are empty when every session has acknowledged everything, by name; for tests.
  package var restingTables: [String: Int] {
    var sizes: [String: Int] = [:]
    func add(_ name: String, _ size: Int) { sizes[name, default: 0] += size }
    for host in hosts.values {
      for (name, size) in host.restingTables { add(name, size) }
      add("states", host.states.size)
    }
    for session in sessions.values {
      add("outbox", session.link.outbox.count)
      for subscription in session.subscriptions.all {
        add("sent", subscription.sent.count)
        add("touched", subscription.values.unacknowledgedWrites.count)
        add("later", subscription.later.count)
        add("untoldState", subscription.untoldState?.count ?? 0)
      }
    }
    return sizes
  }

  /// The number of change sets in the stream of each scope; for tests.
  package var streamLengths: [Int] { hosts.values.map { $0.stream.all.count } }
}

extension ScopeHost {
  fileprivate var restingTables: [String: Int] {
    [
      "departed": tombstones.models.count, "histories": tombstones.elements.count,
      "untold": records.count, "rejectedAdditions": tombstones.rejected.count,
    ]
  }
}
