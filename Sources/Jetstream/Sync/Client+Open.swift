/// Everything that an app needs for one scope, in one call.
extension Client {
  /// Opens a scope that is kept on disk and synced: makes the scope and a client of its own, reads the log, and begins to
  /// connect.
  ///
  /// ```swift
  /// let canvas = Canvas()
  /// let (client, scope) = try Client.open("Canvas", canvas, at: "wss://example.org/sync", log: path) {
  ///   canvas.title = "Untitled"  // Where the server has no title yet.
  /// }
  /// canvas.shapes.append(Shape())  // Pending until there is a connection, over restarts too.
  /// ```
  ///
  /// The scope can be used at once, whether the server can be reached or not. ``waitForDownload(of:isolation:)`` waits
  /// for the server's state, ``connect(params:isolation:)`` for a session; both throw when there can be none. The client
  /// keeps the scope, and has to be kept by the app.
  ///
  /// - Parameters:
  ///   - name: the scope's name on the server.
  ///   - root: the root of the scope, with the default values of its class.
  ///   - url: the server's address, such as `ws://localhost:8080`.
  ///   - log: the directory of the scope's log, which is made if it is not there.
  ///   - credentials: gives what the client asks for sessions with; see ``credentials``.
  ///   - isolation: the caller's actor.
  ///   - initial: writes initial content; see ``fetch(_:params:mode:log:snapshotEvery:keepingContent:initial:)``.
  /// - Throws: ``LogError`` if the log cannot be read, ``ScopeError`` if it is not one of this scope,
  ///   `WebSocketError.invalidURL`, and what `initial` throws.
  public static func open(
    _ name: String, _ root: ModelObject, at url: String, log: String,
    credentials: Credentials.Source? = nil, isolation: isolated (any Actor) = #isolation,
    initial: (() throws -> Void)? = nil
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
