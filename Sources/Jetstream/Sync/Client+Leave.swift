/// Ending the syncing of a scope.
extension Client {
  /// Ends the syncing of `scope`. Its content stays, and ``fetch(_:params:mode:keepingContent:)`` may follow again.
  ///
  /// ```swift
  /// try await client.waitForUpload(of: scope)  // Everything that was changed is on the server.
  /// let pending = try client.leave(scope)      // Empty, unless something was changed meanwhile.
  /// ```
  ///
  /// The server lets go of what it has kept for this client. A server of version 1 of the protocol is not told: it goes
  /// on sending changes of the scope, which are dropped.
  ///
  /// A log of the scope takes what it has not written yet, and closing it throws until that is durable. While its disk
  /// fails, the client goes on to try again every second, and ``onDiagnostic`` fires.
  ///
  /// - Returns: the change sets that the server has not decided, the oldest first. They stay visible in the scope and
  ///   are not sent any more, unless it is synced with a log again, which keeps them; those that were on their way may
  ///   be accepted all the same.
  /// - Throws: ``SyncError/notFetched(scope:)`` if the scope is not synced.
  public func leave(_ scope: Scope) throws(SyncError) -> [ChangeSet] {
    scope.flush()
    guard let undecided = engine.leave(scope, now: ticker.now) else {
      throw .notFetched(scope: scope.name)
    }
    scheduleTimer()
    return undecided
  }
}
