/// When scopes are synced: modes, exchanges on demand, and an app that says "not now".
extension ClientEngine {
  /// That the network must not be used; until a time, or until the app says otherwise.
  struct Deferral {
    var until: Duration?
  }

  package func mode(of scope: Scope) -> SyncMode? { replica(of: scope)?.mode }

  /// - Returns: whether the scope is synced.
  @discardableResult
  package func setMode(_ mode: SyncMode, of scope: Scope, now: Duration) -> Bool {
    self.now = now
    guard let replica = replica(of: scope) else { return false }
    guard mode != replica.mode else { return true }
    replica.change(to: mode)
    // One that was due belongs to the mode of before.
    if replica.round?.isForced == false { replica.round = nil }
    schedulePoll(of: replica)
    if !replica.held.isEmpty { replica.resume() }
    wakeUp()
    sendWaiting()
    return true
  }

  /// Sends what is pending in a scope and takes in what was missed, in any mode.
  ///
  /// - Returns: a number to cancel it with; nil if it is over already.
  @discardableResult
  package func sync(
    _ scope: Scope, now: Duration, completion: @escaping (Result<Void, SyncError>) -> Void
  ) -> Int? {
    self.now = now
    guard state != .idle, state != .closed else {
      completion(.failure(.notConnected))
      return nil
    }
    guard let replica = replica(of: scope) else {
      completion(.failure(.notFetched(scope: scope.name)))
      return nil
    }
    lastWaiter += 1
    begin(on: replica, waiter: (lastWaiter, completion))
    return lastWaiter
  }

  /// Nobody waits for an exchange any more: what it has not sent stays pending.
  package func cancelSync(_ waiter: Int, now: Duration) {
    self.now = now
    for replica in replicas {
      guard let completion = replica.round?.waiting.removeValue(forKey: waiter) else { continue }
      if replica.round?.waiting.isEmpty == true {
        replica.round = nil
        schedulePoll(of: replica)
      }
      completion(.failure(.cancelled))
      sendWaiting()
    }
  }

  private func begin(
    on replica: Replica, waiter: (Int, (Result<Void, SyncError>) -> Void)? = nil
  ) {
    replica.scope.sealChanges()
    var round = replica.round ?? SyncRound(upTo: 0, isForced: false)
    round.upTo = replica.nextNumber - 1
    round.isAsked = false
    if let (number, completion) = waiter {
      round.isForced = true
      round.waiting[number] = completion
    }
    replica.round = round
    replica.pollDue = nil
    if !replica.held.isEmpty { replica.resume() }
    wakeUp()
    sendWaiting()
  }

  /// Asks the server for what the mode wants, or for what an exchange has to bring; ends it if it is over.
  func goOn(with replica: Replica) {
    guard state == .online, replica.scopeIndex != nil, !isFetching(replica) else { return }
    if version > 1, let tell = replica.nextTell {
      if tell != .nothing, replica.hasSentRound { replica.round?.isAsked = true }
      return send(fetch: replica, tell: tell)
    }
    guard replica.hasFinishedRound, let round = replica.round else { return }
    replica.round = nil
    schedulePoll(of: replica)
    // Nothing of this scope waits for the app any more.
    if deferral != nil { reportStates() }
    round.finish(.success(()))
  }

  /// Takes the exchanges that fail, because there is no connection.
  func takeRounds() -> [SyncRound] {
    replicas.compactMap { replica in
      guard let round = replica.round else { return nil }
      replica.round = nil
      schedulePoll(of: replica)
      return round
    }
  }

  // MARK: Resting

  /// Whether no scope needs a connection.
  var mayRest: Bool {
    guard token != nil, version > 1, !replicas.isEmpty, completions.isEmpty else { return false }
    return replicas.allSatisfy { replica in
      if replica.round != nil { return false }
      switch replica.mode {
      case .manual: return true
      case .polling(let every): return every >= configuration.pingInterval
      case .realtime, .pushOnly, .paused: return false
      }
    }
  }

  /// Leaves the connection if nothing is going to use it for a while. The session goes on.
  func restIfPossible() {
    guard state == .online, mayRest, fetches.isEmpty,
      replicas.allSatisfy({
        $0.sentCount == $0.decidedCount && $0.nextTell == nil && $0.stateStanding == nil
      })
    else { return }
    transmit([acknowledgement(of: knowledge)])
    drop()
    problem = nil
    enter(.resting)
  }

  /// Connects if that is wanted now and was not before.
  func wakeUp() {
    switch state {
    case .resting where !mayRest: open()
    case .waiting where replicas.contains(where: { $0.round?.isForced == true }):
      retryDue = nil
      open()
    default: break
    }
  }

  // MARK: Polling

  func schedulePoll(of replica: Replica) {
    replica.pollDue = nil
    if case .polling(let every) = replica.mode { replica.pollDue = now + every }
  }

  /// Begins the exchanges that are due.
  func poll() {
    for replica in replicas {
      guard let due = replica.pollDue, due <= now else { continue }
      guard state == .online || state == .resting else {
        schedulePoll(of: replica)
        continue
      }
      guard isPermitted(.polling) else {
        // Until then, or until somebody says so.
        replica.pollDue = deferral?.until
        // What is pending may wait for the app now, too.
        reportStates()
        continue
      }
      schedulePoll(of: replica)
      begin(on: replica)
    }
  }

  // MARK: Permission

  /// Whether the app lets something be done now.
  func isPermitted(_ activity: SyncActivity) -> Bool {
    guard let ask = configuration.permission else { return true }
    if let deferral, deferral.until.map({ $0 > now }) ?? true { return false }
    switch ask(activity) {
    case .granted: deferral = nil
    case .later(let pause): deferral = Deferral(until: now + pause)
    case .denied: deferral = Deferral()
    }
    return deferral == nil
  }

  /// The app may say something else now.
  package func reconsider(now: Duration) {
    self.now = now
    deferral = nil
    for replica in replicas where replica.pollDue == nil && replica.round == nil {
      if case .polling = replica.mode { replica.pollDue = now }
    }
    poll()
    if state == .waiting, retryDue == nil { open() }
    wakeUp()
    sendWaiting()
  }

  /// Whether what is pending in a scope may be sent.
  func maySend(of replica: Replica) -> Bool {
    guard replica.pushes else { return false }
    if !replica.hasUnsent || replica.round?.isForced == true { return true }
    return isPermitted(.sending(replica.pending.count - replica.sentCount))
  }

  /// Whether what is pending waits for the app's permission.
  func isDeferred(_ replica: Replica) -> Bool {
    deferral != nil && replica.pushes && replica.hasUnsent
  }
}
