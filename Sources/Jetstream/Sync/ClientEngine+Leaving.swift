/// Scopes that are not synced any more: because the app leaves them, or because the server has ended them for good.
extension ClientEngine {
  /// The app wants no more of a scope.
  ///
  /// - Returns: the sets that the server has not decided; nil if the scope is not synced.
  package func leave(_ scope: Scope, now: Duration) -> [ChangeSet]? {
    self.now = now
    guard let replica = replica(of: scope) else { return nil }
    let undecided = replica.pending.filter { $0.decision == nil }.map(\.set)
    if let scopeIndex = replica.scopeIndex { tellLeft(scopeIndex) }
    if version == 1, token != nil { leftNames.insert(scope.name) }
    end(replica, .notFetched(scope: scope.name), "it was left here")
    updateWaitingReplies()
    return undecided
  }

  /// The server has answered a request for a scope that was left meanwhile; false if it was not.
  func takeLeft(_ reply: ScopeFetchReply) -> Bool {
    guard leftFetches.remove(reply.replyTo) != nil else { return false }
    if let scopeIndex = reply.scopeIndex { leftGrants.insert(scopeIndex) }
    giveUpGrants()
    return true
  }

  /// Tells the server of what it has granted and nobody wants. A scope that was fetched again since has the same number,
  /// so all answers have to be there first.
  func giveUpGrants() {
    guard fetches.isEmpty else { return }
    let unwanted = leftGrants.subtracting(replicas.compactMap(\.scopeIndex))
    leftGrants = []
    for scopeIndex in unwanted.sorted() { tellLeft(scopeIndex) }
  }

  private func tellLeft(_ scopeIndex: Int) {
    guard version > 1, token != nil else { return }
    let message = channel.stamp(.scopeLeave(ScopeLeave(scopeIndex: scopeIndex)))
    // Without a connection, it is sent with what the server has missed.
    if state == .online { transmit([message]) }
  }

  /// The server has ended a scope.
  func handle(_ leave: ScopeLeave) {
    guard let replica = replica(leave.scopeIndex) else { return }
    let error = leave.error ?? WireError(message: "The server does not serve it any more")
    handle(error, refusing: replica)
  }

  /// The server says that a scope is not there or gone for good. What is pending stays visible, is in the ledger, and
  /// stays in the log.
  func lose(_ replica: Replica, _ error: WireError) {
    let name = replica.scope.name
    let count = replica.pending.count { $0.decision == nil }
    report(
      .skipped(
        "scope \(name) is not synced any more: \(error)"
          + (count == 0 ? "" : "; its \(count) pending change sets are among the conflicts")))
    let conflicts = replica.pendingConflicts(error)
    end(replica, .scopeDenied(scope: name, error: error), "\(error)")
    replica.scope.conflicts.add(conflicts)
    updateWaitingReplies()
  }

  /// Stops syncing a scope. A request that is not answered is given up when it is granted.
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
