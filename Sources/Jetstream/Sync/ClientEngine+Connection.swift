import Foundation

/// How a connection begins and ends.
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
    }
  }

  func open() {
    connection += 1
    enter(.connecting)
    perform(.connect(number: connection, token: token))
  }

  func heard() { silenceDue = now + configuration.silenceLimit }

  func retry(reason: String) {
    drop()
    let delay = configuration.backoff.delay(failure: failures, random: random())
    failures += 1
    retryDue = now + delay
    problem = reason
    enter(.waiting)
    report(.skipped("connection \(connection): \(reason); trying again in \(delay)"))
  }

  /// Leaves the connection; what comes from it later is not ours any more.
  func drop() {
    let wasOpen = state != .idle && state != .waiting && state != .closed
    connection += 1
    pingDue = nil
    silenceDue = nil
    handshakeDue = nil
    retryDue = nil
    if wasOpen { perform(.disconnect) }
  }

  func loseSession() {
    token = nil
    fetches = [:]
    for replica in replicas { replica.sessionEnded() }
  }

  func end(_ error: SyncError) {
    drop()
    token = nil
    fetches = [:]
    let ended = replicas
    replicas = []
    let waiting = completions
    completions = [:]
    enter(.closed)
    for replica in ended { leave(replica, "\(error)") }
    for completion in waiting.values { completion(.failure(error)) }
    report(.sessionDenied(error))
  }

  /// The scope is not synced any more.
  func leave(_ replica: Replica, _ reason: String) {
    lastNumbers[replica.scope.name] = replica.nextNumber - 1
    replica.end(reason)
    report(.left(replica.scope))
  }

  /// The server takes us for somebody else: from now on we are.
  func takeNewName(of replica: Replica) {
    let (old, new) = (replica.clientID, configuration.makeClientID())
    if configuration.clientID == old { configuration.clientID = new }
    for replica in replicas where replica.clientID == old { replica.takeNewName(new) }
    loseSession()
    retry(reason: "the server knows other change sets of this client")
  }

  func schedulePing() {
    let jitter = configuration.pingInterval * (0.2 * random() - 0.1)
    pingDue = now + configuration.pingInterval + jitter
  }
}
