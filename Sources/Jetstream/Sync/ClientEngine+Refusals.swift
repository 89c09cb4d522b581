/// Scopes that a server refuses.
///
/// A refusal that names the credentials (``Denial/notYou``) makes the client ask its app for others, and show them in
/// another session, once until the scope is granted. Otherwise, and when that is refused, too, this is done:
///
/// A refusal with a retry time is "not now": the client waits and asks again, and keeps the scope with everything that
/// is pending. So is any refusal of a scope that has a log, or of which this replica has had a state, unless the server
/// says with its type that the scope is not there or gone: a server that has just been started may not know the scope
/// yet, and ending the subscription would lose what is changed from then on. Any other refusal ends it, and
/// ``Client/fetch(_:params:mode:keepingContent:isolation:)`` throws it.
extension ClientEngine {
  /// A server's "not now".
  struct Refusal {
    let error: WireError
    /// The number of refusals in a row before this one.
    var repetitions = 0
    /// When the client asks again.
    var retryDue: Duration
  }

  /// The server has refused a scope.
  func handle(_ error: WireError, refusing replica: Replica) {
    let name = replica.scope.name
    if error.denial == .notYou, configuration.hasCredentials, !replica.hasAskedForCredentials {
      replica.hasAskedForCredentials = true
      return changeCredentials("scope \(name) is refused: \(error)", refused: error.message)
    }
    let isFinal = error.denial?.isFinal ?? !replica.mayReturn
    guard !isFinal, replica.mayReturn || error.denial == .notNow else {
      return lose(replica, error)
    }
    let repetitions = replica.refusal.map { $0.repetitions + 1 } ?? 0
    // Clients that were all refused at one time do not all come back at one time.
    let asked = (error.retryAfter ?? .zero) * (1 + 0.1 * random())
    let delay = max(configuration.backoff.delay(failure: repetitions, random: random()), asked)
    replica.refusal = Refusal(error: error, repetitions: repetitions, retryDue: now + delay)
    // What was sent under an earlier grant of this session is sent again under the next one.
    if replica.scopeIndex != nil { replica.sessionEnded() }
    let round = replica.round
    replica.round = nil
    schedulePoll(of: replica)
    report(.skipped("scope \(name) is refused for now: \(error); asking again in \(delay)"))
    reportStates()
    round?.finish(.failure(.scopeDenied(scope: name, error: error)))
  }

  /// Ends the session, whose credentials are not good for a scope, and begins one with others.
  private func changeCredentials(_ reason: String, refused: String) {
    refusedCredentials = refused
    loseSession()
    retry(reason: reason)
  }

  /// Asks again for the scopes whose retry time has come. In a session that does not have them yet, those that were
  /// never refused are asked for at once.
  func fetchMissing() {
    guard state == .online else { return }
    for replica in replicas where replica.scopeIndex == nil && !isFetching(replica) {
      if let due = replica.refusal?.retryDue, due > now { continue }
      send(fetch: replica)
    }
  }

  /// When ``fetchMissing()`` has something to do next; nil if there is nothing to wait for.
  var refetchDue: Duration? {
    guard state == .online else { return nil }
    var earliest: Duration?
    for replica in replicas where replica.scopeIndex == nil {
      guard let due = replica.refusal?.retryDue, !isFetching(replica) else { continue }
      earliest = min(earliest ?? due, due)
    }
    return earliest
  }
}
