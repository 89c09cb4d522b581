/// A session that the server has granted to a client.
package final class Session {
  /// The secret with which the client resumes the session after a lost connection. Anyone who has it can take over
  /// the session.
  package let token: String
  private weak var client: Client?

  init(token: String, client: Client) {
    self.token = token
    self.client = client
  }

  /// The scopes that the client syncs.
  package var scopes: [Scope] { client?.scopes ?? [] }

  /// Starts syncing `scope`; see ``Client/fetch(_:params:mode:keepingContent:)``. Throws
  /// ``SyncError/sessionClosed(reason:)`` if another session has replaced this one, or the client is gone.
  package func fetch(
    _ scope: Scope, params: JSONValue = .object([:])
  ) async throws(SyncError) {
    guard let client, client.session === self else {
      throw .sessionClosed(reason: "another one has replaced it, or its client is gone")
    }
    try await client.fetch(scope, params: params)
  }
}
