/// Ending the syncing of scopes: because the app leaves them, or because the server has ended them for good.
extension ClientEngine {
  /// Ends the syncing of a scope that the app leaves.
  ///
  /// - Returns: the change sets that the server has not decided; nil if the scope is not synced.
  package func leave(_ scope: Scope, now: Duration) -> [ChangeSet]? {
    self.now = now
    guard let replica = replica(of: scope) else { return nil }
    let undecided = replica.pending.filter { !$0.isDecided }.map(\.set)
    // A handler that is told that the message to the server cannot be sent may leave the scope, too.
    replicas.removeAll { $0 === replica }
    giveBack(replica)
    end(replica, .notFetched(scope: scope.name), "it was left here")
    // A client that rests connects once for its last scope, since no other one will have the server told.
    wakeUp()
    updateWaitingReplies()
    return undecided
  }

  /// Tells the server that a scope it has granted is not wanted any more, if the server knows such a message.
  func giveBack(_ replica: Replica) {
    if let scopeIndex = replica.session.scopeIndex {
      tellLeft(scopeIndex, in: replica.session.channel)
    }
    session.noteLeft(replica.scope.name)
  }

  /// Tells the server to end the subscriptions that it has granted to scopes which the app has left.
  func giveUpGrants(in channel: Int) {
    let used = replicas(in: channel).compactMap(\.session.scopeIndex)
    for scopeIndex in session[channel].requests.takeUnwanted(besides: used) {
      tellLeft(scopeIndex, in: channel)
    }
  }

  private func tellLeft(_ scopeIndex: Int, in channel: Int) {
    guard let message = session.leave(scopeIndex, in: channel) else { return }
    // Before the server has answered on a new connection, the message waits: it is repeated with all others then.
    if status == .online || connection.isResuming && !session[channel].isResuming {
      transmit([message], in: channel)
    }
  }

  // MARK: Scopes that are synced already

  /// Returns true if a scope is synced, or another ``Scope`` for which the server is asked in the same way.
  func isSynced(_ scope: Scope, _ params: JSONValue) -> Bool {
    replicas.contains {
      $0.scope === scope || $0.scope.name == scope.name && $0.request.params == params
    }
  }

  /// Ends the syncing of a scope for which the server has granted what `first` has already: it takes both for one
  /// scope, in spite of their parameters, and a session has one subscription to it.
  func end(_ replica: Replica, grantedAs first: Replica) {
    let error = WireError(
      message: "The client syncs the same scope of the server as another Scope",
      type: "already-fetched")
    lose(replica, error, as: .alreadyFetched(scope: replica.scope.name))
    fetchAgain(first)
  }

  /// Asks once more for a scope on whose subscription the server has answered the request of another replica. What it sends
  /// there is meant for that one, and may skip what this replica lacks. So the subscription ends, and messages of it that
  /// are still on their way are of no scope, nor are answers to earlier requests. The change sets that the server has not
  /// decided are sent again.
  func fetchAgain(_ replica: Replica) {
    guard session.version > 1, replicas.contains(where: { $0 === replica }),
      let scopeIndex = replica.session.scopeIndex
    else { return }
    tellLeft(scopeIndex, in: replica.session.channel)
    session.forgetRequests(of: replica)
    replica.sessionEnded()
    replica.session.earlierIndex = scopeIndex
    fetchMissing()
  }

  /// Handles the server's message that it has ended a scope.
  func handle(_ leave: ScopeLeave) {
    guard let replica = replica(leave.scopeIndex) else { return }
    let error = leave.error ?? WireError(message: "The server does not serve it any more")
    handle(error, refusing: replica)
  }

  /// Stops syncing a scope that the server says does not exist, or no longer exists, or whose state cannot be used. Its
  /// pending change sets stay visible and in the log, and go to the ledger; see ``takeLosses(of:_:decided:)``.
  ///
  /// - Parameter end: the error for the app; nil if that says that the server denies the scope.
  func lose(_ replica: Replica, _ error: WireError, as end: SyncError? = nil) {
    let losses = takeLosses(of: replica, error, decided: replica.decidedReplies())
    // A listener of the change set that was sealed, or of the diagnostic, may have ended the syncing itself.
    if replicas.contains(where: { $0 === replica }) {
      self.end(
        replica, end ?? .scopeDenied(scope: replica.scope.name, error: error), "\(error)")
    }
    replica.scope.conflicts.addShown(losses)
    updateWaitingReplies()
  }

  /// Reports that a scope is no longer synced, and returns the conflicts for its ledger: its pending change sets, except for
  /// calls, whose callers are told. If the ledger has them from an earlier attempt to sync the scope with the log, they are
  /// not added again.
  ///
  /// Local changes that are in no change set yet are in one from here on. Later ones are in none that is sent.
  ///
  /// - Parameter decided: the replies to those that the server has decided; see ``Replica/decidedReplies()``.
  func takeLosses(
    of replica: Replica, _ error: WireError, decided: [Int: [FragmentReply]]
  ) -> [Conflict] {
    replica.scope.sealAllChanges()
    let conflicts = replica.pendingConflicts(error, decided: decided)
    let count = Set(conflicts.map(\.changeSet)).count
    diagnose(
      .error, .scope, scope: replica.scope,
      "is no longer synced: \(error)"
        + (count == 0 ? "" : "; its \(count) pending change sets are among the conflicts"))
    return conflicts
  }

  /// Stops syncing a scope. If a request for it is still unanswered, the grant is given back when it arrives.
  func end(_ replica: Replica, _ error: SyncError, _ reason: String) {
    session.forgetRequests(of: replica)
    replicas.removeAll { $0 === replica }
    leave(replica, reason)
    complete(replica, .failure(error))
  }
}
