/// What the server has granted a client.
package final class Session {
  /// With this the client resumes the session after a lost connection. Whoever knows it can take the
  /// session over.
  package let token: String
  private weak var client: Client?

  init(token: String, client: Client) {
    self.token = token
    self.client = client
  }

  /// The scopes that are being synced.
  package var scopes: [Scope] { client?.scopes ?? [] }

  /// Syncs `scope` from now on; see ``Client/fetch(_:params:mode:keepingContent:isolation:)``.
  package func fetch(
    _ scope: Scope, params: JSONValue = .object([:]), isolation: isolated (any Actor)? = #isolation
  ) async throws(SyncError) {
    guard let client, client.session === self else {
      throw .sessionClosed(reason: "another one has replaced it, or its client is gone")
    }
    try await client.fetch(scope, params: params)
  }
}
