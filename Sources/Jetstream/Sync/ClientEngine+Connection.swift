import Foundation

/// The beginning and the end of a connection.
extension ClientEngine {
  func enter(_ new: State) {
    let before = status
    state = new
    guard status != before else { return }
    report(.statusChanged(status))
    reportStates()
  }

  package var status: ClientStatus {
    switch state {
    case .idle, .closed: .offline
    case .connecting, .creating, .resuming: .connecting
    case .online: .online
    case .waiting: .waiting
    case .resting: .resting
    }
  }

  func open() {
    guard isPermitted(.connecting) || replicas.contains(where: { $0.schedule.isForced })
    else {
      enter(.waiting)
      return reportStates()
    }
    connection += 1
    enter(.connecting)
    perform(.connect(number: connection, token: token))
  }

  func heard() { silenceDue = now + configuration.silenceLimit }

  /// Gives up the connection and schedules another attempt.
  ///
  /// - Parameter pause: the time that the server wants the client to wait; zero if it has named none.
  func retry(reason: String, after pause: Duration = .zero) {
    drop()
    problem = reason
    let failed = takeRounds()
    defer { for round in failed { round.finish(.failure(.connectionFailed(reason: reason))) } }
    if mayRest, pause == .zero {
      report(.diagnostic(Diagnostic(.info, .connection, connection: connection, reason)))
      return enter(.resting)
    }
    // Clients that were all turned away at the same time must not all come back at the same time.
    let asked = pause * (1 + 0.1 * random())
    let delay = max(configuration.backoff.delay(failure: failures, random: random()), asked)
    failures += 1
    retryDue = now + delay
    enter(.waiting)
    report(
      .diagnostic(
        Diagnostic(
          .info, .connection, connection: connection, "\(reason); trying again in \(delay)")))
  }

  /// Gives up the connection. Events of it that arrive later carry an old number and are ignored.
  func drop() {
    let wasOpen = ![.idle, .waiting, .resting, .closed].contains(state)
    connection += 1
    pingDue = nil
    silenceDue = nil
    handshakeDue = nil
    retryDue = nil
    if wasOpen { perform(.disconnect) }
  }

  func loseSession() {
    token = nil
    (fetches, leftFetches, leftGrants, leftNames) = ([:], [], [], [])
    for replica in replicas { replica.sessionEnded() }
  }

  /// Ends all syncing because the server denies a session, and reports it.
  func deny(_ error: SyncError) {
    end(error)
    report(.sessionDenied(error))
  }

  /// The reason for which credentials are asked for.
  package var credentialsReason: Credentials.Reason {
    if let refusedCredentials { return .refused(refusedCredentials) }
    return hasHadSession ? .reconnect : .first
  }

  /// Tries again once with other credentials, after the server has refused those of the client. Gives up the second
  /// time.
  func refuseCredentials(_ reason: String) {
    guard refusedCredentials == nil else {
      refusedCredentials = nil
      return giveUp(.sessionDenied(reason: reason))
    }
    refusedCredentials = reason
    if token != nil { loseSession() }
    retry(reason: reason)
  }

  /// Stops connecting, because no attempt can succeed, and fails everything that the app waits for. Keeps the scopes
  /// that have a log, and continues with them when the app connects again.
  func giveUp(_ error: SyncError) {
    let reason = "\(error)"
    if token != nil { loseSession() }
    drop()
    problem = reason
    let failed = takeRounds()
    let ended = replicas.filter { !$0.journal.isKept }
    replicas.removeAll { replica in ended.contains { $0 === replica } }
    enter(.idle)
    for replica in ended {
      leave(replica, "\(error)")
      complete(replica, .failure(error))
    }
    for round in failed { round.finish(.failure(error)) }
    report(
      .diagnostic(
        Diagnostic(
          .error, .connection, connection: connection, "\(reason); the client gives up")))
    if case .sessionDenied = error {
      report(.sessionDenied(error))
    } else {
      report(.ended(error))
    }
  }

  func end(_ error: SyncError) {
    drop()
    token = nil
    (fetches, leftFetches, leftGrants, leftNames) = ([:], [], [], [])
    let ended = replicas
    let failed = takeRounds()
    replicas = []
    let waiting = completions
    completions = [:]
    enter(.closed)
    for replica in ended { leave(replica, "\(error)") }
    for completion in waiting.values { completion(.failure(error)) }
    for round in failed { round.finish(.failure(error)) }
  }

  /// Ends a replica and reports that its scope is no longer synced.
  func leave(_ replica: Replica, _ reason: String) {
    lastNumbers[replica.scope.name] = replica.pending.lastNumber
    let round = replica.schedule.end(now: now)
    defer { round?.finish(.failure(.sessionClosed(reason: reason))) }
    replica.end(reason)
    report(.left(replica.scope))
  }

  /// Takes a new client identity, because the server knows other change sets under the numbers of this one. Begins
  /// another session with it.
  func takeNewName(of replica: Replica) {
    let (old, new) = (replica.request.clientID, configuration.makeClientID())
    if configuration.clientID == old { configuration.clientID = new }
    for replica in replicas where replica.request.clientID == old { replica.takeNewName(new) }
    loseSession()
    retry(reason: "the server knows other change sets of this client")
  }

  func schedulePing() {
    let jitter = configuration.pingInterval * (0.2 * random() - 0.1)
    pingDue = now + configuration.pingInterval + jitter
  }
}
