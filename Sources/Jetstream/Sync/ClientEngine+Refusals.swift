/// Scopes that the server refuses.
///
/// When a refusal is about the credentials (``Denial/notYou``), the client asks its app for others and presents them
/// in another session, once until the server grants the scope. Otherwise, and if the server refuses these, too, the
/// following holds.
///
/// A refusal with a retry time means "not now": the client waits and asks again, and keeps the scope with all
/// pending change sets. Any other refusal is treated in the same way if the scope has a log, or if this replica has
/// had a state, unless the server's error says that the scope does not exist or no longer exists: a server that has
/// just been started may not know the scope yet, and ending the subscription would lose the changes made from then
/// on. In all other cases the refusal ends the subscription, and
/// ``Client/fetch(_:params:mode:keepingContent:)`` throws it.
extension ClientEngine {
  /// Handles the server's refusal of a scope.
  func handle(_ error: WireError, refusing replica: Replica) {
    let name = replica.scope.name
    if error.denial == .notYou, configuration.hasCredentials,
      replica.request.takeCredentialsRequest()
    {
      return refuseCredentials(error.message, reason: "scope \(name) is refused: \(error)")
    }
    let isFinal = error.denial?.isFinal ?? !replica.mayReturn
    guard !isFinal, replica.mayReturn || error.denial == .notNow else {
      return lose(replica, error)
    }
    let delay = configuration.backoff.delay(
      failure: replica.request.refusalCount, atLeast: error.retryAfter ?? .zero, random: random)
    replica.request.noteRefused(error, retryDue: now + delay)
    // Change sets that were sent under an earlier grant of this session are sent again under the next one.
    if replica.session.scopeIndex != nil || replica.session.channel > 0 { replica.sessionEnded() }
    replica.schedule.schedulePoll(now: now)
    let round = replica.schedule.end(now: now)
    diagnose(
      .info, .scope, scope: replica.scope,
      "is refused for now: \(error); asking again in \(delay)")
    reportStates()
    round?.finish(.failure(.scopeDenied(scope: name, error: error)))
  }

  /// The scopes that this session does not have and for which the server is not being asked.
  private var missing: [Replica] {
    guard status == .online else { return [] }
    return replicas.filter {
      $0.session.scopeIndex == nil && !session.isAsking(for: $0)
    }
  }

  /// Asks again for the scopes whose retry time has come. In a session that does not have its scopes yet, asks at
  /// once for those that were not refused.
  func fetchMissing() {
    for replica in missing {
      if let due = replica.request.refusal?.retryDue, due > now { continue }
      send(fetch: replica)
    }
  }

  /// The time at which ``fetchMissing()`` has something to do next; nil if nothing waits.
  var refetchDue: Duration? { missing.compactMap(\.request.refusal?.retryDue).min() }
}
