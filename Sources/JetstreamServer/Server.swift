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
/// The server puts the change sets of all clients, and the changes that the application makes to its
/// scopes itself, into one order; checks every fragment against the model classes; applies what is
/// accepted; and tells everybody else.
///
/// A server lives on the actor on which it is made, with its scopes. It is not Sendable. Sockets are
/// read and written elsewhere, and frames are decoded there; only judging and applying happens on the
/// actor.
public final class Server {
  /// Fires with a sentence for everything that an operator may want to know.
  public let onLog = Signal<String>()
  /// Fires when a session has ended: its client stayed away, or the server stopped.
  public let onSessionEnd = Signal<SessionInfo>()

  /// The answer to a client that asks for a session.
  public enum Authorization: Sendable, Hashable {
    /// The client gets a session. Its change sets are told to others, and logged, as those of `author`; one of more than
    /// 1 KiB is not told.
    case accepted(author: String? = nil)
    /// The client is told the error; see `WireError.denial`.
    case denied(WireError)
  }

  /// Decides whether a client gets a session, and who its user is. All clients are accepted, without a name, unless this
  /// is set.
  ///
  /// ```swift
  /// server.authorize = { session in
  ///   guard let user = users[session.params] else { return .denied(.notYou("The token is not known")) }
  ///   return .accepted(author: user.name)
  /// }
  /// ```
  public var authorize: (SessionInfo) -> Authorization = { _ in .accepted() }

  /// Chooses the scope that a session gets for a name and parameters, or denies it with an error.
  /// Unless this is set, the scopes given to ``host(_:unknown:)`` are found by their names.
  public var chooseScope: ((SessionInfo, String, JSONValue) -> Result<Scope, WireError>)?

  private let configuration: Configuration
  let actor: WeakActor
  let ticker: Ticker
  private(set) var engine: ServerEngine!
  private var hosted: [String: Scope] = [:]
  /// The logs of hosted scopes, with what hands them records.
  var logs: [ObjectIdentifier: (log: ScopeLog, keeper: RecordKeeper<ScopeRecord>)] = [:]
  private var listener: WebSocketListener?
  private var connections: [Int: any ServerConnection] = [:]
  private var nextConnection = 1
  private var isTicking = false
  /// True from the first ``listen(host:port:page:isolation:)`` or ``makeTransport()`` until ``stop(isolation:)``.
  private(set) var isUsed = false
  private lazy var pipe = ServerPipe(HomeReference(self, on: actor))

  /// Makes a server that does not listen yet. It lives on the actor on which it is made.
  public init(
    configuration: Configuration = Configuration(), isolation: isolated (any Actor) = #isolation
  ) {
    self.configuration = configuration
    actor = WeakActor(isolation)
    ticker = Ticker.on(isolation)
    let hooks = ServerEngine.Hooks(
      authorize: { [unowned self] in authorize($0) },
      fetch: { [unowned self] in choose($0, $1, $2) },
      log: { [unowned self] in onLog.fire($0) },
      makeToken: Self.makeToken, random: { Double.random(in: 0..<1) }, date: { Date() },
      sessionEnded: { [unowned self] in onSessionEnd.fire($0) })
    engine = ServerEngine(configuration: configuration.engine, hooks: hooks) { [unowned self] in
      perform($0)
    }
  }

  deinit {
    for connection in connections.values { connection.abort() }
    guard let listener else { return }
    Task { await listener.stop() }
  }

  /// Times and bounds of a server.
  public struct Configuration: Sendable {
    /// A session whose client says nothing for this long is ended and forgotten.
    public var sessionExpiry: Duration = .seconds(600)
    /// How many bytes may wait for a client's acknowledgement before its session is ended.
    public var keptBytes = 64 << 20
    /// The largest message that is read, in bytes. Before a connection has a session, 64 KiB are the most.
    public var maximumMessageBytes = 16 << 20
    /// How many bytes may wait to be sent on one connection before it is dropped.
    public var maximumOutboundBytes = 64 << 20
    /// Of how many clients each scope remembers, at least, how it has decided their change sets: those that were
    /// here last. A client that is forgotten and comes back with change sets of which it does not know whether
    /// they were decided is told so, and sends them again or takes them back: see `HistoryLoss`.
    public var rememberedClients = 100_000
    /// How long a client may take for the opening handshake.
    public var handshakeTimeout: Duration = .seconds(10)
    /// The origins whose pages may open WebSockets, in addition to the server's own, in the form that browsers send,
    /// such as `https://app.example.org`; `*` allows all. Clients that are not browsers send no origin and are not
    /// restricted.
    public var allowedOrigins: Set<String> = []
    /// The names that `Host` may contain in requests from the same machine, in addition to `localhost`, the machine's
    /// own name and IP addresses. Add the names that a reverse proxy on this machine passes on. All other names are
    /// refused, because the owner of a web page could point a name at the user's machine (DNS rebinding).
    public var allowedHosts: Set<String> = []

    /// Makes a configuration with the defaults.
    public init() {}

    var engine: ServerEngine.Configuration {
      var result = ServerEngine.Configuration()
      result.expiry = sessionExpiry
      result.handshakeTimeout = handshakeTimeout
      result.keptLimit = .init(bytes: keptBytes)
      result.rememberedClients = rememberedClients
      return result
    }

    var origins: OriginPolicy { OriginPolicy(origins: allowedOrigins, hosts: allowedHosts) }

    /// For a connection that has no session yet.
    var socket: WebSocketConfiguration {
      WebSocketConfiguration(
        limits: limits(upTo: min(maximumMessageBytes, LargeMessageGate.threshold)),
        maximumOutboundBytes: maximumOutboundBytes, slowConsumerPolicy: .abort)
    }

    /// For a connection that has one.
    var limits: WebSocketLimits { limits(upTo: maximumMessageBytes) }

    private func limits(upTo bytes: Int) -> WebSocketLimits {
      WebSocketLimits(maximumFrameBytes: bytes, maximumMessageBytes: bytes)
    }
  }

  /// Offers `scope` to clients under its name. Its changes are collected from now on.
  ///
  /// ```swift
  /// server.host(scope, unknown: .keep)  // Clients may be newer than the server.
  /// ```
  ///
  /// - Parameters:
  ///   - scope: the scope.
  ///   - unknown: what is done with properties and classes that the scope does not know.
  ///   Unless told otherwise the server rejects them, so that nothing unchecked gets into the scope.
  ///   What is kept is bounded by the largest message and by 256 unknown properties in each model;
  ///   an array of UUIDs in it is merged like a collection of models.
  public func host(_ scope: Scope, unknown: UnknownContent = .reject) {
    offer(scope)
    engine.host(scope, unknown: unknown)
  }

  /// Ends the hosting of `scope`: its clients are told `error`, and its log is written and closed.
  ///
  /// ```swift
  /// try await server.remove(scope)  // Gone for good.
  /// try await server.remove(scope, telling: .notNow("The room moves", retryAfter: .seconds(5)))
  /// ```
  ///
  /// Clients of version 1, which know no such message, lose their session and are refused the scope in the next one.
  /// The scope keeps its content. Does nothing if the scope is not hosted. An app that chooses scopes itself has to stop
  /// choosing this one first; see ``chooseScope``.
  ///
  /// - Parameters:
  ///   - scope: the scope.
  ///   - isolation: the caller's actor, which has to be the server's.
  ///   - error: its `WireError.denial` decides what clients do: they ask again later, or stop.
  /// - Throws: `LogError` if the log could not be written; the scope is not hosted any more all the same.
  public func remove(
    _ scope: Scope, telling error: WireError = .gone("The scope is not served any more"),
    isolation: isolated (any Actor)? = #isolation
  ) async throws {
    if hosted[scope.name] === scope { hosted[scope.name] = nil }
    engine.remove(scope, error)
    guard let (log, keeper) = logs.removeValue(forKey: ObjectIdentifier(scope)) else { return }
    let unwritten = Result { try keeper.finish() }
    try await log.records.close()
    try unwritten.get()
  }

  /// The scope is found by its name from now on.
  func offer(_ scope: Scope) { hosted[scope.name] = scope }

  /// How many sessions there are, connected or not.
  public var sessionCount: Int { engine.sessionCount }

  /// How many connections there are.
  public var connectionCount: Int { engine.connectionCount }

  /// Begins to accept connections, and gives the port.
  ///
  /// - Parameters:
  ///   - host: the address to bind: `127.0.0.1` for this machine only, `::` for all.
  ///   - port: 0 has the system choose one.
  ///   - page: answers plain GET requests.
  ///   - isolation: the caller's actor, which has to be the server's.
  ///
  /// Throws `WebSocketError.bindFailed` when the port is taken.
  @discardableResult
  public func listen(
    host: String = "127.0.0.1", port: UInt16 = 0,
    page: @escaping WebSocketListener.RequestHandler = { _ in .text("Not found\n", status: 404) },
    isolation: isolated (any Actor)? = #isolation
  ) async throws(WebSocketError) -> UInt16 {
    precondition(listener == nil, "The server listens already.")
    let configuration = configuration
    let pipe = pipe
    let policy = configuration.origins
    let listener = try await WebSocketListener.start(
      host: host, port: port,
      configuration: .init(
        connection: configuration.socket, handshakeTimeout: configuration.handshakeTimeout),
      onRequest: { request in
        guard let objection = policy.objection(to: request, opensWebSocket: false) else {
          return await page(request)
        }
        return .text(objection + "\n", status: 403)
      },
      onUpgrade: { request in
        guard let objection = policy.objection(to: request, opensWebSocket: true) else {
          return .accept
        }
        let address = request.remoteAddress ?? "an unknown address"
        await pipe.server.perform { $0.onLog.fire("refused \(address): \(objection)") }
        return .refuse(.text(objection + "\n", status: 403))
      },
      onConnection: { connection, request in
        await pipe.run(ServerWebSocket(connection), request)
      })
    self.listener = listener
    isUsed = true
    tickSoon()
    return listener.port
  }

  /// Makes a transport for clients in this process, which needs no sockets: for tests, and for apps that embed a server.
  /// The server need not listen.
  ///
  /// ```swift
  /// let client = Client(transport: server.makeTransport())
  /// ```
  ///
  /// The transport does not retain the server. ``authorize`` is asked about its sessions as about all others.
  public func makeTransport() -> some Transport {
    isUsed = true
    tickSoon()
    return InProcessTransport(pipe: pipe)
  }

  /// Ends all sessions, closes all connections and stops listening.
  public func stop(isolation: isolated (any Actor)? = #isolation) async {
    engine.stop()
    isUsed = false
    let listener = listener
    self.listener = nil
    await listener?.stop()
    connections = [:]
  }

  // MARK: Between engine and sockets

  private func choose(
    _ session: SessionInfo, _ name: String, _ params: JSONValue
  ) -> Result<Scope, WireError> {
    if let chooseScope { return chooseScope(session, name, params) }
    if let scope = hosted[name] { return .success(scope) }
    return .failure(.rejected("There is no scope '\(name)'"))
  }

  private func perform(_ action: ServerEngine.Action) {
    switch action {
    case .send(let id, let frame):
      guard let connection = connections[id] else { return }
      do {
        try connection.send(frame)
      } catch {
        onLog.fire("connection \(id): dropped, \(error)")
        connection.abort()
      }
    case .close(let id, let code, let reason):
      connections.removeValue(forKey: id)?
        .beginClose(code: code, reason: reason)
    case .admit(let id): connections[id]?.setLimits(configuration.limits)
    case .probe(let id): connections[id]?.probe()
    }
  }

  /// Sweeps once a second for what is due, until the server stops.
  private func tickSoon() {
    guard !isTicking, isUsed else { return }
    isTicking = true
    ticker.perform(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      isTicking = false
      engine.advance(to: ticker.now)
      tickSoon()
    }
  }

  func opened(_ connection: any ServerConnection, _ request: HTTPRequest) -> Int {
    let id = nextConnection
    nextConnection += 1
    // A connection that was accepted while the server stopped is not served: the scopes are without their logs.
    guard isUsed else {
      connection.beginClose(code: 1001, reason: "the server has stopped")
      return id
    }
    connections[id] = connection
    let params = ConnectionParams.read(from: request)
    engine.opened(id, params: params, request: request, now: ticker.now)
    return id
  }

  func received(
    _ frame: Result<[Result<Message, MessageError>], FrameError>, isArray: Bool, size: Int,
    endsFrame: Bool = true, on id: Int
  ) {
    engine.received(
      id, frame, isArray: isArray, size: size, endsFrame: endsFrame, now: ticker.now)
  }

  func probed(_ id: Int) { engine.probed(id, now: ticker.now) }

  func closed(_ id: Int) {
    connections[id] = nil
    engine.closed(id, now: ticker.now)
  }

  /// 86 characters out of 62: more than 500 bits.
  private static func makeToken() -> String {
    let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return String((0..<86).map { _ in letters.randomElement()! })
  }
}
