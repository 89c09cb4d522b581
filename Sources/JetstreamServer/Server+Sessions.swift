import Foundation
import Jetstream

/// The sessions of a server, and their principals.
extension Server {
  /// The sessions, with or without a connection, in the order in which they began.
  public var sessions: [SessionInfo] { runner.engine.sessionInfos }

  /// Ends a session at once, whatever its client is doing. The client is sent `error`, whose `WireError.denial` decides what
  /// it does: with `WireError.notYou(_:)` it asks its app for other credentials, with `WireError.notNow(_:retryAfter:)` it
  /// comes back later, and with any other error it stops syncing. Scopes with a log keep what is pending then; that of the
  /// others goes to their ledgers.
  ///
  /// Of a session that has ended already, only what it has left undecided ends.
  public func end(
    _ session: SessionInfo, telling error: WireError = .rejected("The server has ended the session")
  ) {
    if runner.engine.endSession(session.token, telling: error) { return }
    for shard in shards.all { shard.perform { $0.end(session.token, isTakenAway: true) } }
  }

  /// Ends all sessions of a principal at once, in the manner of ``end(_:telling:)``: after the app has blocked a user, or
  /// has taken credentials back. ``authenticate`` decides whether the principal gets another session; answers about it that
  /// are under way are taken for a refusal.
  ///
  /// - Parameters:
  ///   - principal: the ``Principal/id``.
  ///   - error: the error for the clients.
  /// - Returns: the number of sessions that were ended.
  @discardableResult
  public func revoke(
    _ principal: String, telling error: WireError = .notYou("The credentials were revoked")
  ) -> Int {
    for shard in shards.all { shard.perform { $0.dropQueued(by: principal) } }
    let count = runner.engine.revoke(principal, telling: error)
    for shard in shards.all { shard.perform { $0.dropLeft(by: principal) } }
    return count
  }

  /// The number of times that clients have reached each limit since the server was made, by the name of its property in
  /// ``ServerLimits``. Limits that were never reached are left out.
  public var limitHits: [String: Int] { shards.hits.byName }

  /// Asks the app for the principal of a session, if it wants to be asked.
  func beginAuthentication(
    of session: SessionInfo, on connection: Int
  ) -> ServerEngine.Authentication {
    guard let authenticate else { return .accepted() }
    let question = AppQuestion {
      try await authenticate(session)
    } ended: { [weak self] in
      self?.answered($0, about: connection)
    }
    runner.questions.keep(question, about: connection)
    question.begin(on: actor)
    return .pending
  }

  private func answered(_ answer: Result<Principal?, any Error>, about connection: Int) {
    // A connection that has ended has no question any more, and another one never gets its number.
    guard runner.questions.takeClient(of: connection) else { return }
    runner.authenticated(
      connection,
      answer.mapError { error in
        if let error = error as? WireError { return error }
        onDiagnostic.fire(
          Diagnostic(
            .error, .session, connection: connection, "could not be authenticated: \(error)"))
        return .notNow("The server cannot tell who you are", retryAfter: .seconds(1))
      })
  }
}
