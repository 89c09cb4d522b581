/// Ending the syncing of scopes: because the app leaves them, or because the server has ended them for good.
extension ClientEngine {
  /// Ends the syncing of a scope that the app leaves.
  ///
  /// - Returns: the change sets that the server has not decided; nil if the scope is not synced.
  package func leave(_ scope: Scope, now: Duration) -> [ChangeSet]? {
    self.now = now
    guard let replica = replica(of: scope) else { return nil }
    let undecided = replica.pending.filter { $0.decision == nil }.map(\.set)
    if let scopeIndex = replica.session.scopeIndex { tellLeft(scopeIndex) }
    if version == 1, token != nil { leftNames.insert(scope.name) }
    end(replica, .notFetched(scope: scope.name), "it was left here")
    updateWaitingReplies()
    return undecided
  }

  /// Handles the answer to a request for a scope that the app has left meanwhile. Returns false if the request is
  /// another one.
  func takeLeft(_ reply: ScopeFetchReply) -> Bool {
    guard leftFetches.remove(reply.replyTo) != nil else { return false }
    if let scopeIndex = reply.scopeIndex { leftGrants.insert(scopeIndex) }
    giveUpGrants()
    return true
  }

  /// Tells the server to end the subscriptions that it has granted to scopes which the app has left. A scope that
  /// was fetched again since may have got the same scope index, so this waits until all requests are answered.
  func giveUpGrants() {
    guard fetches.isEmpty else { return }
    let unwanted = leftGrants.subtracting(replicas.compactMap(\.session.scopeIndex))
    leftGrants = []
    for scopeIndex in unwanted.sorted() { tellLeft(scopeIndex) }
  }

  private func tellLeft(_ scopeIndex: Int) {
    guard version > 1, token != nil else { return }
    let message = channel.stamp(.scopeLeave(ScopeLeave(scopeIndex: scopeIndex)))
    // Without a connection, the message is sent when the session resumes.
    if state == .online { transmit([message]) }
  }

  /// Handles the server's message that it has ended a scope.
  func handle(_ leave: ScopeLeave) {
    guard let replica = replica(leave.scopeIndex) else { return }
    let error = leave.error ?? WireError(message: "The server does not serve it any more")
    handle(error, refusing: replica)
  }

  /// Stops syncing a scope that the server says does not exist, or no longer exists. Its pending change sets stay
  /// visible, go to the ledger of conflicts, and stay in the log.
  func lose(_ replica: Replica, _ error: WireError) {
    let name = replica.scope.name
    let count = replica.pending.count { $0.decision == nil }
    report(
      .diagnostic(
        Diagnostic(
          .error, .scope, scope: name,
          "is no longer synced: \(error)"
            + (count == 0 ? "" : "; its \(count) pending change sets are among the conflicts"))))
    let conflicts = replica.pendingConflicts(error)
    end(replica, .scopeDenied(scope: name, error: error), "\(error)")
    replica.scope.conflicts.add(conflicts)
    updateWaitingReplies()
  }

  /// Stops syncing a scope. If a request for it is still unanswered, the grant is given back when it arrives.
  func end(_ replica: Replica, _ error: SyncError, _ reason: String) {
    for (index, fetch) in fetches where fetch.replica === replica {
      fetches[index] = nil
      leftFetches.insert(index)
    }
    replicas.removeAll { $0 === replica }
    leave(replica, reason)
    complete(replica, .failure(error))
  }
}
