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
      return changeCredentials("scope \(name) is refused: \(error)", refused: error.message)
    }
    let isFinal = error.denial?.isFinal ?? !replica.mayReturn
    guard !isFinal, replica.mayReturn || error.denial == .notNow else {
      return lose(replica, error)
    }
    let count = replica.request.refusalCount
    // Clients that were all refused at the same time must not all come back at the same time.
    let asked = (error.retryAfter ?? .zero) * (1 + 0.1 * random())
    let delay = max(configuration.backoff.delay(failure: count, random: random()), asked)
    replica.request.noteRefused(error, retryDue: now + delay)
    // Change sets that were sent under an earlier grant of this session are sent again under the next one.
    if replica.session.scopeIndex != nil { replica.sessionEnded() }
    replica.schedule.schedulePoll(now: now)
    let round = replica.schedule.end(now: now)
    report(
      .diagnostic(
        Diagnostic(
          .info, .scope, scope: name, "is refused for now: \(error); asking again in \(delay)")))
    reportStates()
    round?.finish(.failure(.scopeDenied(scope: name, error: error)))
  }

  /// Ends the session, whose credentials do not give access to a scope, and begins one with others.
  private func changeCredentials(_ reason: String, refused: String) {
    refusedCredentials = refused
    loseSession()
    retry(reason: reason)
  }

  /// Asks again for the scopes whose retry time has come. In a session that does not have its scopes yet, asks at
  /// once for those that were not refused.
  func fetchMissing() {
    guard state == .online else { return }
    for replica in replicas where replica.session.scopeIndex == nil && !isFetching(replica) {
      if let due = replica.request.refusal?.retryDue, due > now { continue }
      send(fetch: replica)
    }
  }

  /// The time at which ``fetchMissing()`` has something to do next; nil if nothing waits.
  var refetchDue: Duration? {
    guard state == .online else { return nil }
    var earliest: Duration?
    for replica in replicas where replica.session.scopeIndex == nil {
      guard let due = replica.request.refusal?.retryDue, !isFetching(replica) else { continue }
      earliest = min(earliest ?? due, due)
    }
    return earliest
  }
}
