import Jetstream
import JetstreamServer
import Pacing
import Testing

@Suite("Clients in the server's process", .live, .timeLimit(.minutes(5)))
@MainActor
struct InProcessTests {
  @Test("Two clients edit without a socket, and hear of the server's end")
  func edit() async throws {
    let server = Server(configuration: .init().patient)
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    server.host(scope)
    var seen: [SessionInfo] = []
    server.authenticate = {
      seen.append($0)
      return nil
    }
    let clients = (0..<2).map { _ in Client(transport: server.makeTransport()).patient }
    let scopes = (0..<2).map { _ in Scope(name: "Canvas", root: Canvas()) }
    for (client, scope) in zip(clients, scopes) {
      try await client.connect(params: ["key": 1])
      try await client.fetch(scope)
    }
    #expect(seen.map(\.params) == [["key": 1], ["key": 1]])
    let mine = try #require(scopes[0].root as? Canvas)
    mine.name = "shared"
    for _ in 0..<100 { mine.shapes.append(Shape()) }
    try await clients[0].waitForUpload(of: scopes[0])
    try await clients[1].sync(scopes[1])
    #expect(scopes[1].canonicalJSON == scope.canonicalJSON && canvas.shapes.count == 100)
    clients[0].close()
    try await awaitCall { done in
      clients[1].onStatusChange.listenOnce(filter: { $0 == .waiting }) { _ in done(()) }
      Task { await server.stop() }
    }
    clients[1].close()
  }

  @Test("A server that has stopped serves nobody until it is used again")
  func stopped() async throws {
    let server = Server()
    let scope = Scope(name: "Canvas", root: Canvas())
    server.host(scope)
    let transport = server.makeTransport()
    await server.stop()
    await #expect(throws: (any Error).self) { _ = try await transport.open(headers: []) }
    _ = server.makeTransport()
    server.host(scope)
    let client = Client(transport: transport)
    try await client.connect()
    try await client.fetch(Scope(name: "Canvas", root: Canvas()))
    client.close()
  }

  @Test("A scope without a log is served as the app has said, also once the server has stopped")
  func unknownAgain() async throws {
    let server = Server()
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    server.host(scope, unknown: .keep)
    _ = server.makeTransport()
    await server.stop()
    let client = Client(transport: server.makeTransport())
    let mine = Scope(name: "Canvas", root: NewCanvas())
    try await client.connect()
    try await client.fetch(mine)
    let handle = mine.modify { (mine.root as? NewCanvas)?.title = "new" }
    try? await handle.finished()
    #expect(handle.state == .accepted)
    #expect(scope.unknownProperties(of: canvas)["title"] == "new")
    client.close()
  }

  @Test("Who connects to a server that is gone is told so")
  func gone() async {
    var server: Server? = Server()
    let client = Client(transport: server!.makeTransport())
    server = nil
    await #expect(throws: SyncError.connectionFailed(reason: "the server of this process is gone"))
    {
      try await client.connect()
    }
  }
}

@Suite("Credentials and waits that are cancelled", .live, .timeLimit(.minutes(5)))
@MainActor
struct CredentialTests {
  private let server: Server
  private let scope: Scope

  init() {
    server = Server(configuration: .init().patient)
    scope = Scope(name: "Canvas", root: Canvas())
    server.host(scope)
  }

  /// Asks for the token "good", and counts the reasons.
  private func client(
    answers: [String]
  ) -> (Client, AsyncStream<Credentials.Reason>) {
    let client = Client(
      transport: server.makeTransport(),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2))
    ).patient
    server.authenticate = { session in
      guard session.request?.headers["Authorization"] == "good", session.params == ["room": 1]
      else { throw WireError.notYou("the token has expired") }
      return nil
    }
    let (reasons, continuation) = AsyncStream.makeStream(of: Credentials.Reason.self)
    let left = Remaining(answers)
    client.credentials = { reason in
      continuation.yield(reason)
      return Credentials(params: ["room": 1], headers: [("Authorization", await left.next())])
    }
    return (client, reasons)
  }

  private actor Remaining {
    private var answers: [String]
    init(_ answers: [String]) { self.answers = answers }
    func next() -> String { answers.count > 1 ? answers.removeFirst() : answers[0] }
  }

  @Test("Credentials that are refused are asked for once more, with the reason")
  func refusedOnce() async throws {
    let (client, reasons) = client(answers: ["old", "good"])
    try await client.connect()
    let mine = Scope(name: "Canvas", root: Canvas())
    try await client.fetch(mine)
    var asked = reasons.makeAsyncIterator()
    #expect(await asked.next() == .first)
    #expect(await asked.next() == .refused("the token has expired"))
    // The server forgets everybody: another session needs credentials, too.
    await server.stop()
    server.host(scope)
    _ = server.makeTransport()
    #expect(await asked.next() == .reconnect)
    (scope.root as? Canvas)?.name = "again"
    scope.flush()
    try await client.waitForDownload(of: mine)
    client.close()
  }

  @Test("Credentials that are refused twice end connecting")
  func refusedTwice() async {
    let (client, reasons) = client(answers: ["old"])
    var denials: [SyncError] = []
    client.onSessionDenied.listen(client) { _, error in denials.append(error) }
    await #expect(throws: SyncError.sessionDenied(reason: "the token has expired")) {
      try await client.connect()
    }
    #expect(denials == [.sessionDenied(reason: "the token has expired")])
    var asked = reasons.makeAsyncIterator()
    #expect(await asked.next() == .first)
    #expect(await asked.next() == .refused("the token has expired"))
  }

  @Test("A scope that is refused for them is asked for once more, in a session with others")
  func refusedScope() async throws {
    let (client, reasons) = client(answers: ["old", "good", "old"])
    server.authenticate = nil
    let scope = scope
    server.resolveScope = { session, _, _ in
      session.request?.headers["Authorization"] == "good"
        ? .success(scope) : .failure(.notYou("not your room"))
    }
    try await client.connect()
    let mine = Scope(name: "Canvas", root: Canvas())
    try await client.fetch(mine)
    var asked = reasons.makeAsyncIterator()
    #expect(await asked.next() == .first)
    #expect(await asked.next() == .refused("not your room"))
    // The next credentials are not good for it, and neither are those after them.
    server.resolveScope = { _, _, _ in .failure(.notYou("not your room any more")) }
    let other = Scope(name: "Canvas", root: Canvas())
    await #expect(
      throws: SyncError.scopeDenied(scope: "Canvas", error: .notYou("not your room any more"))
    ) {
      try await client.fetch(other, params: ["page": 2])
    }
    #expect(await asked.next() == .refused("not your room any more"))
    client.close()
  }

  @Test("A handshake that is refused for them asks for other credentials", arguments: [401, 403])
  func refusedHandshake(status: Int) async {
    let client = Client(
      transport: FailingTransport(error: .handshakeRefused(status: status)),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
    let (reasons, continuation) = AsyncStream.makeStream(of: Credentials.Reason.self)
    client.credentials = { reason in
      continuation.yield(reason)
      return Credentials()
    }
    let words = "the server refused the WebSocket with status \(status)"
    await #expect(throws: SyncError.sessionDenied(reason: words)) { try await client.connect() }
    var asked = reasons.makeAsyncIterator()
    #expect(await asked.next() == .first)
    #expect(await asked.next() == .refused(words))
  }

  @Test("A source that throws is asked again")
  func throwing() async throws {
    struct Offline: Error {}
    let client = Client(
      transport: server.makeTransport(),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
    let attempts = Attempts()
    client.credentials = { _ in
      if await attempts.next() < 3 { throw Offline() }
      return Credentials()
    }
    try await client.connect()
    // A connection that takes too long asks once more.
    #expect(await attempts.count >= 3)
    client.close()
  }

  private actor Attempts {
    private(set) var count = 0
    func next() -> Int {
      count += 1
      return count
    }
  }

  @Test("Waits end when their task is cancelled, and the client is as it was")
  func cancellation() async throws {
    // Nobody listens there, and attempts to connect go on.
    let client = Client(url: "ws://127.0.0.1:1")
    let connecting = Task { try await client.connect() }
    try await awaitCall { done in
      client.onStatusChange.listenOnce(filter: { $0 == .waiting }) { _ in done(()) }
    }
    let mine = Scope(name: "Canvas", root: Canvas())
    let fetching = Task { try await client.fetch(mine) }
    try await awaitCall { done in client.onSyncStateChange.listenOnce { _ in done(()) } }
    fetching.cancel()
    await #expect(throws: SyncError.cancelled) { try await fetching.value }
    #expect(client.syncState(of: mine) == nil && client.scopes.isEmpty)
    connecting.cancel()
    await #expect(throws: SyncError.cancelled) { try await connecting.value }
    #expect(client.status != .offline)
    let already = Task { try await client.connect() }
    already.cancel()
    await #expect(throws: SyncError.cancelled) { try await already.value }
    client.close()
  }

  @Test("A wait for a change set ends with its task, and the set is decided all the same")
  func finished() async throws {
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let mine = Scope(name: "Canvas", root: Canvas())
    try await client.fetch(mine)
    let handle = mine.modify { (mine.root as? Canvas)?.name = "decided" }
    let waiting = Task { try await handle.finished() }
    waiting.cancel()
    await #expect(throws: ChangeSetError.cancelled) { try await waiting.value }
    try await handle.finished()
    #expect(handle.state == .accepted)
    client.close()
  }
}
