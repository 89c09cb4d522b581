import Jetstream

/// Checks by which clients notice that their copy of a scope differs from the server's.
extension ServerEngine {
  /// Returns the digests of the scopes of which a session is sent every change set.
  func checks(for session: ServerSession) -> [Ping.Check] {
    guard session.version > 1 else { return [] }
    // Seal the changes made meanwhile, so that they get a sequence first.
    for subscription in session.subscriptions.all { subscription.host.content.seal() }
    tellNews()
    return session.subscriptions.inOrder.compactMap { subscription in
      let host = subscription.host
      guard subscription.listens, subscription.told == host.sequence else { return nil }
      return host.content.digest(budget: 2_000).map {
        Ping.Check(
          scopeIndex: subscription.index, sequence: host.sequence, digest: $0.digest,
          schema: $0.schema)
      }
    }
  }

  /// Sends a client the models of those parts of a scope whose digests differ from the client's.
  func repair(_ difference: Ping.Difference, of session: ServerSession) {
    guard session.version > 1, let subscription = session.subscriptions[difference.scopeIndex]
    else { return }
    let host = subscription.host
    host.content.seal()
    guard host.content.digest(budget: .max) != nil else { return }
    var fragments = host.content.fragments(whereNot: difference.parts)
    // If that is too much, send nothing: a client that is still different fetches the scope again, which comes in
    // parts.
    if fragments.roughSize > configuration.frameBytes { fragments = [] }
    let count = fragments.count
    hooks.report(
      Diagnostic(
        .error, .scope, session: session.number, scope: host.content.name,
        "the client's state differs; \(count) models are sent again"))
    var repair = ScopeSync(scopeIndex: subscription.index, fragments: fragments)
    repair.sequence = host.sequence
    repair.repairs = true
    whenStored(subscription, of: session) {
      guard subscription.listens else { return }
      session.tellNews(upTo: host.sequence, of: subscription)
      session.queue(.scopeSync(repair))
    }
  }
}
