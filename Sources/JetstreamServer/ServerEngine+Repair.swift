import Jetstream

/// Lets clients notice when what they have is not what it should be.
extension ServerEngine {
  /// What the scopes come to of which a session is told everything.
  func checks(for session: ServerSession) -> [Ping.Check] {
    guard session.version > 1 else { return [] }
    return session.inOrder.compactMap { subscription in
      guard subscription.listens else { return nil }
      let host = subscription.host
      // What has been changed meanwhile gets its place in the order first.
      host.scope.sealChanges()
      return host.digest.total().map {
        Ping.Check(
          scopeIndex: subscription.index, sequence: host.sequence, digest: $0.digest,
          schema: $0.schema)
      }
    }
  }

  /// Sends a client the models of those parts of a scope that come to something else with it.
  func repair(_ difference: Ping.Difference, of session: ServerSession) {
    guard session.version > 1, let subscription = session.subscriptions[difference.scopeIndex]
    else { return }
    let host = subscription.host
    host.scope.sealChanges()
    guard host.digest.total(budget: .max) != nil else { return }
    var fragments = host.digest.fragments(whereNot: difference.parts)
    // A client that this does not help fetches the scope again, which comes in parts.
    if fragments.reduce(0, { $0 + $1.roughSize }) > configuration.frameBytes { fragments = [] }
    hooks.log(
      "session \(session.number): scope \(host.scope.name) is not what it is here; "
        + "\(fragments.count) models are sent again")
    var repair = ScopeSync(scopeIndex: subscription.index, fragments: fragments)
    repair.sequence = host.sequence
    repair.repairs = true
    whenStored(subscription, of: session) {
      guard subscription.listens else { return }
      session.queue(.scopeSync(repair))
    }
  }
}
