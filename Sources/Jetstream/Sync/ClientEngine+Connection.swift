import Foundation

/// The beginning and the end of a connection.
extension ClientEngine {
  /// Enters a state of the connection, closes a connection that it ends, and reports the status if it is another one.
  ///
  /// The app may close the client in any handler: when a frame cannot be sent, when a diagnostic or a status is reported,
  /// when an observer is called. The code that has called it goes on afterwards, and would enter the state that it was
  /// about to enter. So a client that was closed stays closed, until ``connect(params:now:)`` ends that state.
  func enter(_ next: ClientConnection.State) {
    guard connection.state != .closed else { return }
    let before = connection
    connection.enter(next)
    if before.isOpen, connection.number != before.number { perform(.disconnect) }
    guard status != before.status else { return }
    report(.statusChanged(status))
    reportStates()
  }

  package var status: ClientStatus { connection.status }

  /// Notes that the server lives, since bytes have arrived.
  ///
  /// - Parameter arrived: the number of bytes that have arrived on the connection so far.
  func heard(arrived: Int) {
    connection.heard(
      arrived: arrived, aliveUntil: now + configuration.silenceLimit,
      answeringUntil: now + configuration.handshakeTimeout)
  }

  func open() {
    guard connection.state != .closed else { return }
    guard isPermitted(.connecting) || replicas.contains(where: { $0.schedule.isForced })
    else {
      enter(.waiting(retryDue: nil))
      return reportStates()
    }
    enter(.connecting)
    // A listener of the status may have closed the client.
    guard connection.state == .connecting else { return }
    perform(.connect(number: connection.number, token: session.token))
  }

  /// Gives up the connection and schedules another attempt.
  ///
  /// - Parameter pause: the time that the server wants the client to wait; zero if it has named none.
  func retry(reason: String, after pause: Duration = .zero) {
    guard connection.state != .closed else { return }
    connection.problem = reason
    let failed = takeRounds()
    defer { for round in failed { round.finish(.failure(.connectionFailed(reason: reason))) } }
    if mayRest, pause == .zero {
      enter(.resting)
      return diagnose(.info, .connection, reason)
    }
    let delay = configuration.backoff.delay(
      failure: connection.failures, atLeast: pause, random: random)
    enter(.waiting(retryDue: now + delay))
    diagnose(.info, .connection, "\(reason); trying again in \(delay)")
  }

  func loseSession() {
    session.end()
    for replica in replicas { replica.sessionEnded() }
  }

  /// Stops connecting because the server denies a session, and reports it. Keeps the scopes that have a log, as
  /// ``giveUp(_:)`` does.
  func deny(_ error: SyncError) {
    let lost = unlogged()
    loseSession()
    connection.problem = "\(error)"
    stop(.idle(after: error), error, losing: lost)
    report(.sessionDenied(error))
  }

  /// Tries again once with other credentials, after the server has refused those of the client. Gives up the second
  /// time.
  ///
  /// - Parameter pause: the time that the server wants the client to wait; zero if it has named none.
  func refuseCredentials(_ message: String, reason: String? = nil, after pause: Duration = .zero) {
    guard credentials.refused(message) else {
      return giveUp(.sessionDenied(reason: message))
    }
    if session.token != nil { loseSession() }
    retry(reason: reason ?? message, after: pause)
  }

  /// Stops connecting, because no attempt can succeed, and fails everything that the app waits for. Keeps the scopes
  /// that have a log, and continues with them when the app connects again.
  func giveUp(_ error: SyncError) {
    let lost = unlogged()
    if session.token != nil { loseSession() }
    connection.problem = "\(error)"
    stop(.idle(after: error), error, losing: lost)
    diagnose(.error, .connection, "\(error); the client gives up")
    if case .sessionDenied = error {
      report(.sessionDenied(error))
    } else {
      report(.ended(error))
    }
  }

  func end(_ error: SyncError) {
    session.end()
    stop(.closed, error, ending: replicas)
  }

  /// A replica without a log whose syncing ends, and the replies to its pending change sets that are decided.
  private typealias Lost = (replica: Replica, decided: [Int: [FragmentReply]])

  /// Returns the replicas without a log, with what their session has told them.
  private func unlogged() -> [Lost] {
    replicas.filter { !$0.journal.isKept }.map { ($0, $0.decidedReplies()) }
  }

  /// Gives up the connection, and ends the syncing of some scopes without a log. What is pending in them goes to their
  /// ledgers: it is nowhere else, and the app has not ended the syncing.
  private func stop(_ next: ClientConnection.State, _ error: SyncError, losing lost: [Lost]) {
    let reason = WireError(message: "\(error)", type: "session-ended")
    let losses = lost.map {
      ($0.replica.scope, takeLosses(of: $0.replica, reason, decided: $0.decided))
    }
    // A listener of the change sets that were sealed may have ended the syncing of some.
    let ended = lost.map(\.replica).filter { replica in replicas.contains { $0 === replica } }
    stop(next, error, ending: ended)
    for (scope, conflicts) in losses { scope.conflicts.addShown(conflicts) }
  }

  /// Gives up the connection, and ends the syncing of some scopes.
  private func stop(_ next: ClientConnection.State, _ error: SyncError, ending ended: [Replica]) {
    let failed = takeRounds()
    replicas.removeAll { replica in ended.contains { $0 === replica } }
    // A listener of the status may fetch a scope again.
    for replica in ended { keepNumber(of: replica) }
    enter(next)
    for replica in ended { leave(replica, "\(error)") }
    for replica in ended { complete(replica, .failure(error)) }
    for round in failed { round.finish(.failure(error)) }
  }

  /// Ends a replica and reports that its scope is no longer synced.
  func leave(_ replica: Replica, _ reason: String) {
    keepNumber(of: replica)
    let round = replica.schedule.end(now: now)
    defer { round?.finish(.failure(.sessionClosed(reason: reason))) }
    replica.end(reason)
    report(.left(replica.scope))
  }

  /// Keeps the number of a replica's last change set, for when its scope is fetched again.
  private func keepNumber(of replica: Replica) {
    // Several scopes may have the same name, and different parameters.
    let (name, number) = (replica.scope.name, replica.pending.lastNumber)
    lastNumbers[name] = max(lastNumbers[name] ?? 0, number)
  }

  /// The time at which the next ping is due, if the last one is sent now.
  var nextPing: Duration {
    let jitter = configuration.pingInterval * (0.2 * random() - 0.1)
    return now + configuration.pingInterval + jitter
  }

  /// Reports a diagnostic.
  func diagnose(
    _ level: Diagnostic.Level, _ category: Diagnostic.Category, scope: Scope? = nil,
    _ text: @autoclosure @escaping () -> String
  ) {
    report(
      .diagnostic(
        Diagnostic(
          level, category, connection: category == .connection ? connection.number : nil,
          scope: scope?.name, text())))
  }
}
