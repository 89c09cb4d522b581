/// The timing of syncs: modes, syncs on demand, and an app that says "not now".
extension ClientEngine {
  /// The app's refusal to let the client use the network: until a time, or until the app calls ``reconsider(now:)``.
  struct Deferral {
    var until: Duration?
  }

  package func mode(of scope: Scope) -> SyncMode? { replica(of: scope)?.schedule.mode }

  /// Changes the sync mode of a scope.
  ///
  /// - Returns: false if the scope is not synced.
  @discardableResult
  package func setMode(_ mode: SyncMode, of scope: Scope, now: Duration) -> Bool {
    self.now = now
    guard let replica = replica(of: scope) else { return false }
    guard mode != replica.schedule.mode else { return true }
    replica.change(to: mode, now: now)
    if !replica.session.held.isEmpty { replica.resume() }
    wakeUp()
    sendWaiting()
    return true
  }

  /// Starts a sync of a scope in any mode: sends its pending change sets and applies what it has missed.
  ///
  /// - Returns: a number to cancel it with; nil if it has ended already.
  @discardableResult
  package func sync(
    _ scope: Scope, now: Duration, completion: @escaping (Result<Void, SyncError>) -> Void
  ) -> Int? {
    self.now = now
    guard status != .offline else {
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

  /// Stops waiting for a sync. What it has not sent stays pending.
  package func cancelSync(_ waiter: Int, now: Duration) {
    self.now = now
    for replica in replicas {
      guard let completion = replica.schedule.cancel(waiter, now: now) else { continue }
      completion(.failure(.cancelled))
      sendWaiting()
    }
  }

  private func begin(
    on replica: Replica, waiter: (Int, (Result<Void, SyncError>) -> Void)? = nil
  ) {
    // The app asks for everything to be sent; a poll leaves properties alone whose interval has not passed.
    if waiter == nil { replica.scope.sealChanges() } else { replica.scope.sealAllChanges() }
    replica.schedule.begin(upTo: replica.pending.lastNumber, waiter: waiter)
    if !replica.session.held.isEmpty { replica.resume() }
    wakeUp()
    fetchMissing()
    sendWaiting()
  }

  /// Continues a scope: asks the server for what the mode or a running sync needs, and ends the sync if it is
  /// complete.
  func goOn(with replica: Replica) {
    guard status == .online, replica.session.scopeIndex != nil,
      !session.isAsking(for: replica)
    else { return }
    if session.version > 1, let tell = replica.nextTell {
      if tell != .nothing, replica.hasSentRound { replica.schedule.noteAsked() }
      return send(fetch: replica, tell: tell)
    }
    guard replica.hasFinishedRound, let round = replica.schedule.end(now: now) else { return }
    // No change of this scope waits for the app's permission any more.
    if deferral != nil { reportStates() }
    round.finish(.success(()))
  }

  /// Removes and returns all running syncs, which fail because there is no connection.
  func takeRounds() -> [SyncRound] { replicas.compactMap { $0.schedule.end(now: now) } }

  // MARK: Resting

  /// True if no scope needs a connection.
  var mayRest: Bool {
    session.token != nil && session.version > 1 && !replicas.isEmpty && completions.isEmpty
      && replicas.allSatisfy { $0.schedule.mayRest(between: configuration.pingInterval) }
  }

  /// Gives up the connection if nothing is going to use it for a while. The session continues.
  func restIfPossible() {
    guard status == .online, mayRest, !session.isAsking,
      replicas.allSatisfy({
        $0.pending.sentCount == $0.pending.decidedCount && $0.nextTell == nil
          && $0.session.stateStanding == nil
      })
    else { return }
    for channel in session.openChannels { transmit([ping(in: channel)], in: channel) }
    enter(.resting)
  }

  /// Connects if a scope needs a connection again.
  func wakeUp() {
    switch status {
    case .resting where !mayRest: open()
    case .waiting where replicas.contains(where: { $0.schedule.isForced }): open()
    default: break
    }
  }

  // MARK: Polling

  /// Starts the polls that are due.
  func poll() {
    for replica in replicas {
      guard let due = replica.schedule.pollDue, due <= now else { continue }
      guard status == .online || status == .resting else {
        replica.schedule.schedulePoll(now: now)
        continue
      }
      guard isPermitted(.polling) else {
        // Until then, or until the app calls `reconsider`.
        replica.schedule.postponePoll(until: deferral?.until)
        // Pending changes may wait for the app's permission now, too.
        reportStates()
        continue
      }
      replica.schedule.schedulePoll(now: now)
      begin(on: replica)
    }
  }

  // MARK: Permission

  /// Returns true if the app permits the activity now.
  func isPermitted(_ activity: SyncActivity) -> Bool {
    guard let ask = configuration.permission else { return true }
    // A local change is no event of the engine.
    let now = configuration.time() ?? now
    if let deferral, deferral.until.map({ $0 > now }) ?? true { return false }
    switch ask(activity) {
    case .granted: deferral = nil
    case .later(let pause): deferral = Deferral(until: now + pause)
    case .denied: deferral = Deferral()
    }
    return deferral == nil
  }

  /// Asks the app for permission again, because its answer may have changed.
  package func reconsider(now: Duration) {
    self.now = now
    deferral = nil
    for replica in replicas { replica.schedule.resumePoll(now: now) }
    poll()
    if connection.state == .waiting(retryDue: nil) { open() }
    wakeUp()
    sendWaiting()
  }

  /// Returns true if the pending change sets of a scope may be sent.
  func maySend(of replica: Replica) -> Bool {
    guard replica.schedule.pushes else { return false }
    if replica.pending.unsentCount == 0 || replica.schedule.isForced { return true }
    return isPermitted(.sending(replica.pending.unsentCount))
  }

  /// Returns true if the pending change sets of a scope wait for the app's permission.
  func isDeferred(_ replica: Replica) -> Bool {
    deferral != nil && replica.schedule.pushes && replica.pending.unsentCount > 0
  }
}
