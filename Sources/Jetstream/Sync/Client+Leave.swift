/// Scopes that are not synced any more.
extension Client {
  /// When ``leave(_:_:isolation:)`` ends the syncing of a scope.
  public enum Leaving: Sendable, Hashable {
    /// When the server has decided everything that was changed until then.
    case afterUpload
    /// At once.
    case now
  }

  /// Ends the syncing of `scope`. Its content stays, and ``fetch(_:params:mode:keepingContent:isolation:)`` may follow again.
  ///
  /// ```swift
  /// try await client.leave(scope)                     // Everything is on the server then.
  /// let unsent = try await client.leave(scope, .now)  // Or what is not is given back.
  /// ```
  ///
  /// The server lets go of what it has kept for this client. A server of version 1 of the protocol is not told: it goes
  /// on sending changes of the scope, which are dropped.
  ///
  /// - Returns: the change sets that the server has not decided, the oldest first. They stay visible in the scope and
  ///   are not sent any more, unless it is synced with a log again, which keeps them; those that were on their way may
  ///   be accepted all the same.
  /// - Throws: ``SyncError/notFetched(_:)`` if the scope is not synced; and while it waits for the upload, as
  ///   ``waitForUpload(of:isolation:)`` does. The scope is still synced if the task was cancelled.
  @discardableResult
  public func leave(
    _ scope: Scope, _ leaving: Leaving = .afterUpload, isolation: isolated (any Actor)? = #isolation
  ) async throws(SyncError) -> [ChangeSet] {
    if leaving == .afterUpload { try await waitForUpload(of: scope) }
    scope.flush()
    guard let undecided = engine.leave(scope, now: ticker.now) else {
      throw .notFetched(scope.name)
    }
    scheduleTimer()
    return undecided
  }
}
