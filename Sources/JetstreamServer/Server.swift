import Foundation
import Jetstream
import JetstreamWebSocket

/// Serves scopes to clients over WebSocket, and pages to browsers over plain HTTP.
///
/// ```swift
/// let server = Server()
/// server.host(scope)
/// let port = try await server.listen(port: 8080)
/// ```
///
/// The server puts the change sets of all clients, and the changes that the app itself makes to its scopes, into one
/// order. It checks every fragment against the model classes, applies what is accepted, and sends it to all other
/// clients of the scope.
///
/// A server lives on the actor on which it is made, together with its scopes. It is not Sendable. Sockets are read and
/// written, and frames decoded, off that actor; only checking and applying happens on it. On an actor that has an
/// `EventLoop` as its executor, all of that happens on the loop's thread, but for decoding frames of more than 64 KiB.
/// Scopes that are hosted from a schema can be spread over other loops; see ``Configuration/scopeLoops``.
public final class Server {
  /// Fires with a sentence for each event that may interest an operator.
  public let onDiagnostic = Signal<Diagnostic>()
  /// Fires when a session has ended: its client stayed away too long, could not keep up or exceeded a limit, its credentials
  /// have expired, the app has ended it, or the server has stopped.
  public let onSessionEnd = Signal<SessionInfo>()

  /// Returns the principal for which a client asks for a session; nil for a guest. Unless this is set, all clients are
  /// guests. Called on the server's actor, for each session that a client creates or resumes.
  ///
  /// ```swift
  /// server.authenticate = { session in
  ///   guard let token = session.request?.headers["Authorization"],
  ///     let account = try await accounts.find(token)
  ///   else { throw WireError.notYou("The token is not known") }
  ///   return Principal(account.id, name: account.name, expiry: account.tokenExpiry)
  /// }
  /// ```
  ///
  /// A client is refused with a `WireError` that this throws; see `WireError.denial`. Any other error is reported, and the
  /// client asks again after a while. If there is no answer within ``Configuration/handshakeTimeout``, or the client has
  /// gone, the task in which this is called is cancelled.
  ///
  /// Called again when a client resumes its session on another connection, with the request of that and the parameters with
  /// which the session was created: a token alone is of no use, and a principal with another ``Principal/id`` is refused. The
  /// session has the new principal's claims and expiry from then on.
  public var authenticate: ((SessionInfo) async throws -> Principal?)?

  /// Returns the rights of a session in the scope of a name. It throws the `WireError` with which the fetch is refused, or
  /// another error, which is reported, and the client asks again. Unless this is set, all clients see and change all scopes.
  /// Set it before the server is used. Called on the server's actor, when a session fetches a scope that it does not have,
  /// and by ``updateAccess(of:)``.
  ///
  /// ```swift
  /// server.access = { session, scope in
  ///   switch try await members.role(of: session.principal?.id, in: scope) {
  ///   case .writer: .readWrite
  ///   case .reader: .readOnly
  ///   case nil: throw WireError.notThere("There is no \(scope)")
  ///   }
  /// }
  /// ```
  ///
  /// It is asked before the scope is looked for or opened. A fetch waits for at most ``Configuration/scopeOpeningTime``. When
  /// nothing waits for the answer any more, and the app has had three times as long, or the session has ended, the task in
  /// which this is called is cancelled.
  public var access: ((SessionInfo, String) async throws -> ScopeAccess)?

  /// Returns the scope for the name and the parameters of a fetch, or the error with which the fetch is denied. Called
  /// on the server's actor. Unless this is set, the scopes given to ``host(_:unknown:)`` are found by their names.
  ///
  /// A scope that is not hosted is hosted from then on, without a log, until ``remove(_:telling:)-(Scope,_)``. One that
  /// the app holds no more is released when no session has it.
  public var resolveScope: ((SessionInfo, String, JSONValue) -> Result<Scope, WireError>)?

  private let configuration: Configuration
  let actor: WeakActor
  /// The sessions, and the scopes that live on the server's actor.
  private(set) var runner: EngineRunner!
  let shards: ServerShards
  var offers = ScopeOffers()
  private var listener: WebSocketListener?
  private var lastConnection = 0
  private var use = Use.none
  /// The end of the last ``stop()``, which waits for those before it. What begins meanwhile stays: only the scopes that
  /// were opened on demand, and the listener, are closed then.
  private var ending: Task<Void, Never>?
  lazy var home = HomeReference(self, on: actor)
  private lazy var pipe = ServerPipe(home, shards, configuration.proxies)

  /// The times of a server.
  private enum Use {
    case none
    /// From the first ``listen(host:port:page:)``, ``makeTransport()`` or ``accept(_:for:)`` until ``stop()``.
    case open
    case stopped
  }

  /// True if connections are served.
  var isUsed: Bool { if case .open = use { true } else { false } }

  /// Makes a server that does not listen yet. It lives on the actor on which it is made.
  public init(
    configuration: Configuration = Configuration(), isolation: isolated (any Actor) = #isolation
  ) {
    self.configuration = configuration
    actor = WeakActor(isolation)
    shards = ServerShards(count: configuration.scopeLoops, of: isolation)
    var hooks = ServerEngine.Hooks(
      channel: { [weak self] in self?.channel(of: $0) },
      authenticate: { [weak self] in
        self?.beginAuthentication(of: $0, on: $1) ?? .denied(.rejected("The server is gone"))
      },
      fetch: { [weak self] in self?.choose($0, $1, $2) ?? .failure(.rejected("The server is gone"))
      },
      report: { [weak self] in self?.onDiagnostic.fire($0) },
      makeToken: Self.makeToken, random: { Double.random(in: 0..<1) }, date: { Date() },
      sessionEnded: { [weak self] in self?.ended($0) })
    hooks.access = { [weak self] session, name, question in
      self?.beginAccess(of: session, to: name, as: question)
        ?? .decided(.failure(.rejected("The server is gone")))
    }
    hooks.sessionTakenAway = { [weak self] session in
      for shard in self?.shards.all ?? [] {
        shard.perform { $0.end(session.token, isTakenAway: true) }
      }
    }
    hooks.opens = { [weak self] name in
      self.map { $0.resolveScope == nil && $0.offers.opens(name) } ?? false
    }
    runner = EngineRunner(
      configuration, channel: .init(of: shards.all.count + 1), on: isolation, hooks: hooks,
      hits: shards.hits,
      owner: .init(
        report: { [weak self] in self?.onDiagnostic.fire($0) },
        join: { [weak self] in self?.join($0) },
        scope: { [weak self] in self?.offers.opener?.perform($0) },
        lost: { [weak self] in self?.offers.close($0) }))
    let home = home
    shards.prepare(
      configuration, report: { Self.pass($0, to: home) },
      sessionEnded: { token in home.performLater { $0.runner.endSession(token) } })
  }

  deinit {
    runner.questions.giveUp()
    shards.abandon()
    offers.opener?.giveUp()
    guard let listener else { return }
    Task { await listener.stop() }
  }

  /// Offers `scope` to clients under its name, without a history on disk. Its changes are collected from now on.
  ///
  /// ```swift
  /// server.host(scope, unknown: .keep)  // Clients may be newer than the server.
  /// ```
  ///
  /// - Parameters:
  ///   - scope: the scope to offer to clients. Traps if another scope is hosted under its name, unless ``resolveScope`` is
  ///     set. Remove that scope first, also if its history was lost.
  ///   - unknown: the treatment of properties and classes that the scope does not know. By default the server rejects
  ///     them, so that nothing unchecked gets into the scope. With ``UnknownContent/keep``, each value that is kept is
  ///     bounded by the largest change set, and a model by 256 unknown properties, and an array of UUIDs in an unknown
  ///     property is merged like a collection of models.
  public func host(_ scope: Scope, unknown: UnknownContent = .reject) {
    requireFree(scope.name, for: scope)
    offers[scope.name] = .here(scope, unknown: unknown)
    runner.engine.host(scope, unknown: unknown)
  }

  /// Stops hosting `scope`: its clients are sent `error`, and its log is written and closed.
  ///
  /// ```swift
  /// try await server.remove(scope)  // Gone for good.
  /// try await server.remove(scope, telling: .notNow("The room moves", retryAfter: .seconds(5)))
  /// ```
  ///
  /// Clients of version 1, which know no such message, lose their session and are refused the scope in the next one.
  /// The scope keeps its content. Does nothing if the scope is not hosted. If the app has set ``resolveScope``, it must
  /// stop returning this scope before the call.
  ///
  /// - Parameters:
  ///   - scope: the scope to remove.
  ///   - error: the error for the clients. Its `WireError.denial` decides whether they ask again later or stop.
  /// - Throws: `LogError` if the log could not be written; the scope is no longer hosted all the same. A scope that was
  ///   opened on demand is closed first: while that fails, ``onDiagnostic`` reports it, and it is tried again every second.
  ///   The error is thrown only if the server stops before that has succeeded. While the server stops, the removal of such a
  ///   scope returns behind ``stop()``.
  public func remove(
    _ scope: Scope, telling error: WireError = .gone("The scope is not served any more")
  ) async throws {
    let isOffered =
      if case .here(let content, _)? = offers[scope.name] { content === scope } else { false }
    if isOffered { offers[scope.name] = nil } else { try await finishStopping(scope.name) }
    if let open = runner.engine.openScope(named: scope.name), open === scope {
      return try await close(scope.name, telling: error)
    }
    let opener = offers.opener
    let isClosing = opener?.isClosing(scope, named: scope.name) == true
    // Those who wait for the closing would have the scope opened again.
    if isClosing { runner.engine.closeScope(scope.name, telling: error) }
    do {
      // A scope that is being closed has a history here only if the app hosts it again already.
      try await runner.remove(scope, telling: error)
    } catch {
      if isClosing { try? await opener?.finish(scope.name) }
      throw error
    }
    // The opener closes the earlier history, and tries again while that fails.
    if isClosing { try await opener?.finish(scope.name) }
  }

  /// The number of sessions, with or without a connection.
  public var sessionCount: Int { runner.engine.sessionCount }

  /// The number of open connections, with or without a session.
  public var connectionCount: Int { runner.engine.connectionCount }

  /// Begins to accept connections, and returns the port. A ``stop()`` that is under way is waited for.
  ///
  /// - Parameters:
  ///   - host: the address to bind: `127.0.0.1` for this machine only, `::` for all.
  ///   - port: the port to bind; 0 lets the system choose one.
  ///   - page: answers plain GET requests.
  /// - Throws: `WebSocketError.bindFailed` if the address cannot be bound, for instance because the port is taken;
  ///   `WebSocketError.nameResolutionFailed` if `host` cannot be resolved; `WebSocketError.cancelled` if ``stop()`` is
  ///   called meanwhile.
  @discardableResult
  public func listen(
    host: String = "127.0.0.1", port: UInt16 = 0,
    page: @escaping WebSocketListener.RequestHandler = { _ in .text("Not found\n", status: 404) }
  ) async throws(WebSocketError) -> UInt16 {
    let lastStop = ending
    await lastStop?.value
    precondition(listener == nil, "The server listens already.")
    let configuration = configuration
    let pipe = pipe
    let policy = configuration.origins
    var sockets = WebSocketListener.Configuration(
      connection: configuration.socket, handshakeTimeout: configuration.handshakeTimeout)
    // The loop on which the server lives, if it lives on one.
    sockets.loop = EventLoop.current
    sockets.waiting = configuration.waitingSockets { [hits = shards.hits] in hits.note($0) }
    let listener = try await WebSocketListener.start(
      host: host, port: port, configuration: sockets,
      onRequest: { request in
        guard let objection = policy.objection(to: request, opensWebSocket: false) else {
          return await page(request)
        }
        return .text(objection + "\n", status: 403)
      },
      onUpgrade: { request in
        guard let objection = policy.objection(to: request, opensWebSocket: true) else {
          // A WebSocket counts for no limit before the server's actor knows it. So a socket becomes one when the actor
          // has time: until then it counts as one that is none, and is not read.
          _ = await pipe.server.perform { _ in }
          return .accept
        }
        await pipe.server.perform { $0.refused(request, objection) }
        return .refuse(.text(objection + "\n", status: 403))
      },
      onConnection: { connection, request in
        await pipe.run(ServerWebSocket(connection), request)
      })
    if ending != lastStop {
      await listener.stop()
      throw .cancelled
    }
    precondition(self.listener == nil, "The server listens already.")
    self.listener = listener
    open()
    return listener.port
  }

  /// Makes a transport for clients in this process, without sockets: for tests, and for apps that embed a server. The
  /// server need not listen.
  ///
  /// ```swift
  /// let client = Client(transport: server.makeTransport())
  /// ```
  ///
  /// The transport does not retain the server. ``authenticate`` is called for its sessions as for all others.
  public func makeTransport() -> some Transport {
    open()
    return InProcessTransport(pipe: pipe)
  }

  /// Serves a WebSocket that another library has accepted, and returns when it is closed: for programs that have an HTTP
  /// server already. The server need not listen.
  ///
  /// ```swift
  /// // In the handler of an HTTP server, on the actor on which the server lives:
  /// var request = HTTPRequest(method: "GET", target: target, headers: HTTPHeaders(headers))
  /// request.remoteAddress = address
  /// await server.accept(socket, for: request)
  /// ```
  ///
  /// A connection is closed with 1008 if `Origin` or `Host` of its request are not permitted by the configuration, and
  /// with 1001 once the server was stopped. ``authenticate`` is called for its sessions as for all others.
  ///
  /// - Parameters:
  ///   - webSocket: the connection. The server keeps it until it is closed.
  ///   - request: the request that has opened it, with the address of the other end.
  public func accept(_ webSocket: any AcceptedWebSocket, for request: HTTPRequest) async {
    if case .none = use { open() }
    if let objection = configuration.origins.objection(to: request, opensWebSocket: true) {
      refused(request, objection)
      webSocket.close(code: .policyViolation, reason: CloseReason.plain(objection))
      while let messages = try? await webSocket.receive(), !messages.isEmpty {}
      return
    }
    await pipe.run(ForeignWebSocket(webSocket, configuration.socket.limits), request)
  }

  /// Ends all sessions, closes all connections and stops listening. Returns when all sockets of its own and all scopes
  /// that were opened on demand are closed; a scope whose history cannot be written is given up, and ``onDiagnostic``
  /// reports it. A scope with a log is served again once the app hosts it again. An app that is being asked for a scope,
  /// and ignores that the task is cancelled, is waited for during ``Configuration/scopeOpeningTime``. Sockets that other
  /// libraries have accepted are closed in their time. A second call waits for the first.
  public func stop() async { _ = await stopScopes() }

  /// Stops like ``stop()``. Returns the names of the scopes, of those that were opened on demand, whose histories could not
  /// be written and closed.
  package func stopScopes() async -> [String] {
    // The scopes and the listener are taken away from the server by the first of several calls. The others find nothing
    // to close, so each waits for the one before it.
    let earlier = ending
    use = .stopped
    let open = runner.engine.scopesOpenedOnDemand.map { ($0.name, ObjectIdentifier($0.scope)) }
    for scope in runner.storedScopes { offers.close(scope) }
    runner.stop()
    shards.stop()
    let opener = offers.stopOpener()
    let task = home.task { server in
      await earlier?.value
      await server.close(open)
    }
    ending = task
    await task.value
    return opener?.unclosed ?? []
  }

  /// Closes everything of a server whose sessions have ended.
  private func close(_ open: [(name: String, content: ObjectIdentifier)]) async {
    // The app may have set another one since an earlier call has closed everything.
    if let opener = offers.opener, opener.isStopped {
      await opener.close(open)
      offers.closed(opener)
    }
    await shards.catchUp()
    let listener = listener
    self.listener = nil
    await listener?.stop()
  }

  /// Returns once a ``stop()`` that is under way has ended: it has closed the scopes that were opened on demand.
  ///
  /// - Throws: the error with which closing the scope of a name was given up.
  func finishStopping(_ name: String) async throws {
    guard let opener = offers.opener, opener.isStopped else { return }
    await ending?.value
    try opener.throwFailure(of: name)
  }

  // MARK: Between engine and sockets

  private func open() {
    if case .stopped = use {
      for (content, unknown) in offers.served { runner.engine.host(content, unknown: unknown) }
    }
    use = .open
    runner.begin()
    shards.begin()
  }

  /// Reports a request that was refused.
  private func refused(_ request: HTTPRequest, _ objection: String) {
    let address = request.remoteAddress ?? "an unknown address"
    onDiagnostic.fire(Diagnostic(.warning, .connection, "refused \(address): \(objection)"))
  }

  private func choose(
    _ session: SessionInfo, _ name: String, _ params: JSONValue
  ) -> Result<any Hostable, WireError> {
    let chosen: Result<any Hostable, WireError>
    if let resolveScope {
      chosen = resolveScope(session, name, params).map { $0 }
    } else if case .here(let scope, _)? = offers[name] {
      chosen = .success(scope)
    } else if offers.isBeginning(name) {
      chosen = .failure(.notServed)
    } else {
      chosen = .failure(.rejected("There is no scope '\(name)'"))
    }
    // Changes that clients made before the history of a scope is read would be lost.
    return chosen.flatMap {
      offers.isClosed($0) || runner.isReading($0) ? .failure(.notServed) : .success($0)
    }
  }

  /// Takes a new connection.
  ///
  /// - Returns: the number of the connection, and how it begins; see ``EngineRunner/opened(_:_:_:)``.
  func opened(
    _ connection: any ServerConnection, _ request: HTTPRequest
  ) -> (id: Int, admission: EngineRunner.Admission?) {
    lastConnection += 1
    let id = lastConnection
    // A connection that was accepted while the server stopped is not served: the scopes no longer have their logs.
    guard isUsed else {
      connection.beginClose(code: 1001, reason: "the server has stopped")
      return (id, (nil, [], .zero))
    }
    return (id, runner.opened(connection, id, request))
  }

  // MARK: Scopes on demand

  /// Opens the scopes that clients fetch and that the app does not host.
  func use(_ opener: ScopeOpener) {
    offers.use(opener)
  }

  /// Closes a scope that is open on demand, or is being opened, and returns when that is done.
  ///
  /// - Throws: the error with which closing was given up, since the server stops.
  func close(_ name: String, telling error: WireError) async throws {
    if !runner.engine.closeScope(name, telling: error) {
      // An opening that is under way may have asked the app already.
      try await offers.opener?.finish(name)
      runner.engine.closeScope(name, telling: error)
    }
    try await offers.opener?.finish(name)
  }

  // MARK: Other channels

  private func channel(of name: String) -> Int? {
    guard resolveScope == nil, case .shard(let shard)? = offers[name] else { return nil }
    return shard.channel
  }

  /// Has a session join a shard, and then has the fetch answered that has asked for one of its scopes.
  private func join(_ join: ServerEngine.Join) {
    guard let connection = runner.connection(join.connection), let shard = shards[join.channel]
    else { return runner.declined(join) }
    let home = home
    shard.perform { shard in
      shard.join(join, connection)
      home.performLater { $0.runner.joined(join) }
    }
  }

  /// Brings a diagnostic of a shard to the server's actor.
  private static func pass(_ diagnostic: Diagnostic, to home: HomeReference<Server>) {
    let (level, category, text) = (diagnostic.level, diagnostic.category, diagnostic.text())
    let (connection, session, scope) = (
      diagnostic.connection, diagnostic.session, diagnostic.scope
    )
    home.performLater {
      $0.onDiagnostic.fire(
        Diagnostic(
          level, category, connection: connection, session: session, scope: scope, text))
    }
  }

  private func ended(_ session: SessionInfo) {
    runner.questions.giveUp(of: session.token)
    for shard in shards.all { shard.perform { $0.end(session.token) } }
    onSessionEnd.fire(session)
  }

  /// Returns a random token of 86 letters and digits: more than 500 bits.
  private static func makeToken() -> String {
    let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return String((0..<86).map { _ in letters.randomElement()! })
  }
}
