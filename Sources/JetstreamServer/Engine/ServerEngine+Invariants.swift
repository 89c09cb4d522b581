import Jetstream

/// The invariants of an engine, for tests and simulations.
extension ServerEngine {
  /// Describes what must not be the case, a line for each; empty if all is well.
  package func checkInvariants() -> [String] {
    var problems = hosts.values.flatMap { $0.checkInvariants() } + openScopes.checkInvariants()
    for session in sessions.values {
      var waiting = StreamAmount()
      for subscription in session.subscriptions.all { waiting += subscription.waiting }
      if waiting != session.waiting {
        problems.append("a session has \(session.waiting) of its scopes' \(waiting) to acknowledge")
      }
      for subscription in session.subscriptions.all
      where subscription.seen > subscription.host.sequence {
        problems.append(
          "a session has seen \(subscription.seen) of \(subscription.host.sequence) change sets")
      }
      let unknown = session.checked.filter { session.subscriptions[$0] == nil }
      if !unknown.isEmpty {
        problems.append("a session awaits what differs in scopes that it has left: \(unknown)")
      }
    }
    return problems.sorted()
  }
}

extension ServerEngine {
  /// Hosts a scope a second time, as rows beside its models, and compares the two from now on. Call it when the scope has
  /// just been hosted.
  package func compareWithRows(_ scope: Scope) {
    guard let host = hosts[ObjectIdentifier(scope)], let root = scope.root else { return }
    let schema = Schema(root: root.schema.data, classes: scope.schemas.map(\.data))
    host.twin = OrderTwin(of: host.order, schema)
  }

  /// The differences between models and rows that were found so far.
  package var differencesFromRows: [String] {
    hosts.values.flatMap { $0.twin?.problems ?? [] }
  }
}
