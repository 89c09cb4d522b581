import Jetstream

extension ServerEngine {
  /// The sizes of the tables that are empty when every session has acknowledged everything, by name; for tests.
  package var restingTables: [String: Int] {
    var sizes: [String: Int] = [:]
    func add(_ name: String, _ size: Int) { sizes[name, default: 0] += size }
    for host in hosts.values {
      for (name, size) in host.order.restingTables { add(name, size) }
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
  package var streamLengths: [Int] { hosts.values.map { $0.order.stream.all.count } }

  /// The number of models that have left a scope and are kept for sessions that may name them; for tests.
  package func departedCount(of scope: any Hostable) -> Int? {
    hosts[ObjectIdentifier(scope)]?.order.tombstones.models.count
  }

  /// The approximate size in bytes of the change sets that a scope keeps in its stream; for tests.
  package func streamBytes(of scope: any Hostable) -> Int? {
    hosts[ObjectIdentifier(scope)]?.order.stream.bytes
  }

  /// The number of clients whose decisions a scope keeps; for tests.
  package func rememberedClients(of scope: any Hostable) -> Int? {
    hosts[ObjectIdentifier(scope)]?.order.clients.count
  }

  /// The epochs and sequences of all scopes; for tests.
  package var positions: [ScopePosition] {
    hosts.values.map { ScopePosition(epoch: $0.order.epoch, sequence: $0.sequence) }
  }
}

extension ScopeOrder {
  fileprivate var restingTables: [String: Int] {
    [
      "departed": tombstones.models.count, "histories": tombstones.elements.count,
      "untold": records.count, "rejectedAdditions": tombstones.rejected.count,
    ]
  }
}
