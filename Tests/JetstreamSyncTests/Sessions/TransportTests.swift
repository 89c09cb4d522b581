import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Synchronization
import Pacing
import Testing

/// Two queues that carry frames between a client and an engine in one process.
final class QueueConnection: TransportConnection {
  let inbound = AsyncStream<[UInt8]>.makeStream()
  let outbound = AsyncStream<[UInt8]>.makeStream()
  private let status = Mutex<(code: Int, reason: String)?>(nil)

  func receive() async throws -> [UInt8]? {
    for await frame in inbound.stream { return frame }
    return nil
  }

  func send(_ frame: [UInt8]) { outbound.continuation.yield(frame) }

  func close(code: Int, reason: String) {
    outbound.continuation.finish()
    inbound.continuation.finish()
  }

  func closedByServer(code: Int, reason: String) {
    status.withLock { $0 = (code, reason) }
    close(code: code, reason: reason)
  }

  var closeStatus: (code: Int, reason: String)? { status.withLock { $0 } }
}

/// Opens such connections to an engine on the main actor.
struct QueueTransport: Transport {
  /// Throws if the connection is refused.
  var check: @Sendable () throws -> Void = {}
  let accept: @Sendable (QueueConnection, [(String, String)]) async -> Void

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    try check()
    let connection = QueueConnection()
    await accept(connection, headers)
    return connection
  }
}

/// Opens no connection.
struct FailingTransport: Transport {
  let error: WebSocketError

  func open(headers: [(String, String)]) async throws -> any TransportConnection { throw error }
}

@Suite("Transports", .live, .timeLimit(.minutes(5)))
@MainActor
struct TransportTests {
  /// A server's engine that serves queues.
  private final class QueueServer {
    let canvas = Canvas()
    let scope: Scope
    var connections: [Int: QueueConnection] = [:]
    var params: [[String: String]] = []
    private(set) var engine: ServerEngine!

    init() {
      scope = Scope(name: "Canvas", root: canvas, ticker: .on(MainActor.shared))
      let hooks = ServerEngine.Hooks(
        fetch: { [unowned self] _, _, _ in .success(scope) },
        makeToken: { "token" + String(UInt64.random(in: .min ... .max)) }, random: { 0.5 })
      engine = ServerEngine(hooks: hooks) { [unowned self] action in
        switch action {
        case .send(let ids, let frame):
          for id in ids { connections[id]?.inbound.continuation.yield(frame) }
        case .close(let id, let code, let reason):
          connections.removeValue(forKey: id)?.closedByServer(code: code, reason: reason)
        case .encode(let scope, let fragments):
          engine.encoded(FragmentsText(fragments), of: scope, now: .zero)
        case .judge: engine.judge(now: .zero)
        case .admit, .probe, .join, .scope: break
        }
      }
      engine.host(scope)
    }

    /// - Parameter refusing: how many attempts find no server of the protocol, behind the first `count`.
    func transport(refusing: Int = 0, after count: Int = 0) -> QueueTransport {
      // It lives on the main actor, and is used there.
      nonisolated(unsafe) let server = self
      let attempts = Attempts()
      return QueueTransport {
        let attempt = attempts.next()
        if attempt > count, attempt <= count + refusing {
          throw WebSocketError.handshakeRefused(status: 404)
        }
      } accept: { connection, headers in
        await MainActor.run { server.accept(connection, headers) }
      }
    }

    private final class Attempts: Sendable {
      private let count = Mutex(0)

      func next() -> Int {
        count.withLock { count in
          count += 1
          return count
        }
      }
    }

    @MainActor
    func accept(_ connection: QueueConnection, _ headers: [(String, String)]) {
      let id = params.count + 1
      connections[id] = connection
      var params: [String: String] = [:]
      for (name, value) in headers { params[String(name.lowercased().dropFirst(12))] = value }
      self.params.append(params)
      engine.opened(id, params: params, now: .zero)
      Task {
        for await bytes in connection.outbound.stream {
          engine.received(
            [
              .frame(
                .init(messages: InMemoryWorld.decode(bytes), isArray: Message.isArrayFrame(bytes)))
            ], on: id, now: .zero)
        }
        connections[id] = nil
        engine.closed(id, now: .zero)
      }
    }
  }

  @Test("A transport of one's own carries sessions, changes and reconnects")
  func customTransport() async throws {
    let server = QueueServer()
    let transport = server.transport()
    let backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(5))
    let first = try await Participant(Client(transport: transport, backoff: backoff))
    let second = try await Participant(Client(transport: transport, backoff: backoff))
    first.canvas.shapes.append(Shape())
    await second.observe(second.canvas, until: { $0.shapes.count == 1 })
    for round in 1...5 {
      for connection in server.connections.values { connection.close(code: 0, reason: "") }
      second.canvas.shapes[0].x = Float(round)
      await first.observe(first.canvas, until: { $0.shapes[0].x == Float(round) })
    }
    await second.settle()
    #expect(first.scope.canonicalJSON == server.scope.canonicalJSON)
    #expect(server.engine.sessionCount == 2)
    #expect(server.params.count { $0["sessiontoken"] != nil } >= 2, "sessions were resumed")
  }

  @Test("An app sees parameters, headers and address of the request that has opened a session")
  func request() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    var seen: [SessionInfo] = []
    server.authenticate = { session in
      seen.append(session)
      return nil
    }
    let port = try await server.listen(host: "::")
    let client = Client(
      url: "ws://127.0.0.1:\(port)/rooms?key=1",
      headers: [("Authorization", "Bearer abc"), ("X-Jetstream-Key", "k")])
    try await client.connect(params: ["a": 1])
    // A client whose connection takes too long comes again.
    #expect(seen.allSatisfy { $0.connectionParams == ["key": "k"] && $0.params == ["a": 1] })
    let request = try #require(seen.last?.request)
    #expect(request.headers["Authorization"] == "Bearer abc" && request.query == "key=1")
    #expect(request.path == "/rooms" && request.remoteAddress == "127.0.0.1")
    client.close()
    await server.stop()
  }

  @Test("A server that is stopped while it begins to listen does not listen")
  func stoppedMeanwhile() async throws {
    let server = Server()
    var hasBegun = false
    let listening = Task {
      hasBegun = true
      return try await server.listen(host: "localhost", port: keptPort())
    }
    try await wait { hasBegun }
    await server.stop()
    switch await listening.result {
    case .failure(let error): #expect(error as? WebSocketError == .cancelled)
    case .success(let port):
      // The name was known at once.
      await #expect(throws: WebSocketError.self) {
        try await WebSocketClient.connect(to: "ws://localhost:\(port)")
      }
    }
    // It can listen again.
    let client = Client(url: "ws://127.0.0.1:\(try await server.listen())")
    try await client.connect()
    client.close()
    await server.stop()
  }

  @Test("A server that cannot be reached is tried again; the address needs no port")
  func unreachable() async throws {
    let client = Client(
      url: "ws://localhost", backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
    let attempt = Task { try await client.connect() }
    var failures = 0
    try await awaitCall { done in
      client.onDiagnostic.listen(client) { _, _ in
        failures += 1
        if failures == 2 || client.status == .online { done(()) }
      }
    }
    #expect(client.status != .online)
    client.close()
    await #expect(throws: SyncError.self) { try await attempt.value }
  }

  @Test("Who refuses a connection may say when to come back")
  func refusedForAWhile() async throws {
    let client = Client(
      transport: FailingTransport(
        error: .handshakeRefused(status: 503, retryAfter: .seconds(1000))),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
    let attempt = Task { try await client.connect() }
    let words = try await awaitCall { reply in client.onDiagnostic.listenOnce { reply("\($0)") } }
    // With jitter, so that not all who were refused come at one time.
    #expect(words.contains("503") && words.contains("trying again in 10"))
    client.close()
    await #expect(throws: SyncError.self) { try await attempt.value }
  }

  @Test(
    "What can never work ends at once, with a sentence",
    arguments: [
      ("ws://", "host is missing"), ("ws://localhost:99999", "not a number from 1 to 65535"),
      ("localhost:8080", "no scheme"), ("http://localhost", "neither ws nor wss"),
    ])
  func unusableAddress(url: String, words: String) async {
    let client = Client(url: url)
    await #expect {
      try await client.connect()
    } throws: {
      guard case SyncError.connectionFailed(let reason) = $0 else { return false }
      return reason.contains(words)
    }
    #expect(client.status == .offline)
  }

  #if !canImport(Darwin)
  @Test("Where there is no TLS, wss ends at once")
  func secureWithoutTLS() async {
    await #expect(throws: SyncError.self) { try await Client(url: "wss://localhost").connect() }
  }
  #endif

  @Test("What answers and speaks something else ends the attempt, and whoever waits for a scope")
  func somethingElse() async throws {
    let client = Client(transport: FailingTransport(error: .handshakeRefused(status: 404)))
    let scope = Scope(name: "Canvas", root: Canvas())
    let attempt = Task { try await client.connect() }
    let fetch = try await awaitCall { done in
      client.onStatusChange.listenOnce(filter: { $0 == .connecting }) { _ in
        done(Task { try await client.fetch(scope) })
      }
    }
    await #expect(throws: SyncError.self) { try await attempt.value }
    await #expect(throws: SyncError.self) { try await fetch.value }
    #expect(client.syncState(of: scope) == nil)
  }

  @Test("An address that has worked is tried again, whatever it answers later")
  func workedBefore() async throws {
    let server = QueueServer()
    let client = Client(
      transport: server.transport(refusing: 2, after: 1),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(5))
    ).patient
    try await client.connect()
    try await awaitCall { done in
      client.onStatusChange.listenOnce(filter: { $0 == .online }) { _ in done(()) }
      for connection in server.connections.values { connection.close(code: 0, reason: "") }
    }
    #expect(server.params.count == 2)
    client.close()
  }

  @Test(
    "A scope with a state in its log stays when connecting is given up, and goes on with the next call"
  )
  func logStays() async throws {
    let server = QueueServer()
    let directory = try TemporaryDirectory()
    do {
      let (client, log) = (Client(transport: server.transport()), try FragmentLog(directory.path))
      try await client.connect()
      let scope = Scope(name: "Canvas", root: Canvas())
      try client.fetch(scope, log: log)
      try await client.waitForDownload(of: scope)
      client.close()
      try await log.records.close()
    }
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let client = Client(transport: server.transport(refusing: 1))
    try client.fetch(scope, log: FragmentLog(directory.path))
    await #expect(throws: SyncError.self) { try await client.connect() }
    canvas.name = "named meanwhile"
    scope.flush()
    #expect(client.pendingCount == 1 && client.syncState(of: scope)?.connection == .offline)
    try await client.connect()
    try await client.waitForUpload(of: scope)
    #expect(server.canvas.name == "named meanwhile")
    client.close()
  }

  @Test("The app's own close is no denial")
  func ownClose() async throws {
    let server = QueueServer()
    let client = Client(transport: server.transport())
    var denials = 0
    client.onSessionDenied.listen(client) { _, _ in denials += 1 }
    try await client.connect()
    client.close()
    #expect(denials == 0 && client.status == .offline && !client.hasSession)
  }

  @Test("IPv6 addresses work where the system has them", .enabled(if: hasVersionSix))
  func versionSix() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    let port = try await server.listen(host: "::1")
    let client = Client(url: "ws://[::1]:\(port)")
    try await client.connect()
    #expect(client.status == .online && client.hasSession)
    client.close()
    await server.stop()
  }
}
