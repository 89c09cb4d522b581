/// Opening a scope and its client in one call.
extension Client {
  /// Opens a scope that is synced and kept on disk: creates the scope and a client for it, reads the log, and starts
  /// to connect.
  ///
  /// ```swift
  /// let canvas = Canvas()
  /// let (client, scope) = try Client.open("Canvas", canvas, at: "wss://example.org/sync", log: path) {
  ///   canvas.title = "Untitled"  // Used if the server has no title yet.
  /// }
  /// canvas.shapes.append(Shape())  // Pending until there is a connection, even across restarts.
  /// ```
  ///
  /// The scope can be used at once, whether the server can be reached or not. ``waitForDownload(of:)``
  /// waits for the server's state, and ``connect(params:)`` for a session; both throw when there can be
  /// none. The client retains the scope, and the app has to retain the client.
  ///
  /// - Parameters:
  ///   - name: the scope's name on the server.
  ///   - root: the root of the scope, with the default values of its class.
  ///   - url: the server's address, such as `ws://localhost:8080`.
  ///   - log: the directory of the scope's log; created if it does not exist.
  ///   - isolation: the caller's actor.
  ///   - initial: writes initial content; see ``fetch(_:params:mode:log:snapshotEvery:keepingContent:initial:)``.
  ///   - credentials: provides the credentials for sessions; see ``credentials``.
  /// - Throws: ``LogError`` if the log cannot be read, ``ScopeError`` if it does not belong to this scope,
  ///   `WebSocketError.invalidURL`, and any error that `initial` throws.
  public static func open(
    _ name: String, _ root: ModelObject, at url: String, log: String,
    isolation: isolated (any Actor) = #isolation, initial: (() throws -> Void)? = nil,
    credentials: (@Sendable (Credentials.Reason) async throws -> Credentials)? = nil
  ) throws -> (client: Client, scope: Scope) {
    try WebSocketTransport.check(url)
    let scope = Scope(name: name, root: root, isolation: isolation)
    let client = Client(url: url, isolation: isolation)
    client.credentials = credentials
    try client.fetch(scope, log: FragmentLog(log), initial: initial)
    client.beginConnecting()
    return (client, scope)
  }
}
