import Jetstream
import Pacing
import Testing

@testable import JetstreamServer

/// Real servers, whose app does not say who a client is, or what it may do.
@Suite("Questions that an app never answers", .live)
@MainActor
struct UnansweredQuestionTests {
  /// The app that is asked.
  private final class App {
    var waiting: [CheckedContinuation<Void, Never>] = []
    var cancelled = 0
    /// False once it says no more what a session may do.
    var answers = true

    func rights(of _: SessionInfo, in _: String) async -> ScopeAccess {
      if !answers { await ignore() }
      return .readWrite
    }

    /// Goes on when the test says so, whether or not the task is cancelled.
    func ignore() async { await withCheckedContinuation { waiting.append($0) } }

    /// Goes on once the task is cancelled.
    func hear() async throws {
      do {
        try await Task.sleep(for: .seconds(3600))
      } catch {
        cancelled += 1
        throw error
      }
    }

    func release() {
      for next in waiting { next.resume() }
      waiting = []
    }
  }
  private let app = App()

  private func makeServer(opening: Duration = .seconds(30)) -> Server {
    var configuration = Server.Configuration()
    configuration.scopeOpeningTime = opening
    // It ends no question here.
    configuration.handshakeTimeout = .seconds(3600)
    let server = Server(configuration: configuration)
    server.host(Scope(name: "Canvas", root: Canvas()))
    return server
  }

  @Test("They keep no server alive", arguments: [true, false])
  func keepsNoServer(aboutRights: Bool) async throws {
    var server: Server? = makeServer()
    weak var kept: Server?
    kept = server
    let app = app
    defer { app.release() }
    if aboutRights {
      server?.access = { _, _ in
        await app.ignore()
        return .readWrite
      }
    } else {
      server?.authenticate = { _ in
        await app.ignore()
        return nil
      }
    }
    let client = Client(transport: try #require(server?.makeTransport())).patient
    let fetching = Task {
      try await client.connect()
      try await client.fetch(Scope(name: "Canvas", root: Canvas()))
    }
    try await wait { !app.waiting.isEmpty }
    server = nil
    try await wait { kept == nil }
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
  }

  @Test("One about a client that resumes its session keeps no server alive")
  func resumes() async throws {
    var server: Server? = makeServer()
    weak var kept: Server?
    kept = server
    let app = app
    defer { app.release() }
    let transport = try #require(server?.makeTransport())
    let first = try await transport.open(headers: [])
    try first.send(Array(#"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#.utf8))
    _ = try await first.receive()
    let token = try #require(server?.sessions.first?.token)
    server?.authenticate = { _ in
      await app.ignore()
      return nil
    }
    let second = try await transport.open(headers: [("X-Jetstream-SessionToken", token)])
    try await wait { !app.waiting.isEmpty }
    server = nil
    try await wait { kept == nil }
    #expect(try await second.receive() == nil)
  }

  @Test("They are given up when the server stops, or the session ends", arguments: [true, false])
  func givenUp(stops: Bool) async throws {
    let server = makeServer()
    let app = app
    var isAsked = false
    server.access = { _, _ in
      isAsked = true
      try await app.hear()
      return .readWrite
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "Canvas", root: Canvas())) }
    try await wait { isAsked }
    if stops {
      await server.stop()
    } else {
      server.end(try #require(server.sessions.first))
    }
    try await wait { app.cancelled == 1 }
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    await server.stop()
  }

  @Test("A question for rights that has expired is given up")
  func expired() async throws {
    let server = makeServer(opening: .milliseconds(50))
    let app = app
    server.access = { _, _ in
      try await app.hear()
      return .readWrite
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let scope = Scope(name: "Canvas", root: Canvas())
    let fetching = Task { try await client.fetch(scope) }
    try await wait { app.cancelled > 0 }
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    await server.stop()
  }

  @Test(
    "New rights that the app does not tell take the scope from the session", .timeLimit(.minutes(5))
  )
  func updated() async throws {
    let server = makeServer(opening: .milliseconds(50))
    let app = app
    defer { app.release() }
    server.access = app.rights
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "Canvas", root: Canvas())
    try await client.connect()
    try await client.fetch(scope)
    app.answers = false
    var isUpdated = false
    let updating = Task {
      await server.updateAccess()
      isUpdated = true
    }
    try await wait { isUpdated }
    try await wait { client.syncState(of: scope)?.stall != nil }
    await updating.value
    client.close()
    await server.stop()
  }

  @Test("An app that does not answer about one session is asked about the others meanwhile")
  func updatedTogether() async throws {
    let server = makeServer()
    let app = app
    defer { app.release() }
    server.access = app.rights
    let clients = (0..<3).map { _ in Client(transport: server.makeTransport()) }
    for client in clients {
      try await client.connect()
      try await client.fetch(Scope(name: "Canvas", root: Canvas()))
    }
    app.answers = false
    let updating = Task { await server.updateAccess() }
    try await wait { app.waiting.count == clients.count }
    app.release()
    await updating.value
    for client in clients { client.close() }
    await server.stop()
  }

  @Test("Answers about many sessions leave nothing on the server's ticker")
  func answered() async throws {
    let jobs = try await Desk().jobs(afterUpdating: 20)
    #expect(jobs < 20)
  }
}

/// A server with a ticker of its own.
private actor Desk {
  /// Returns the number of jobs of the server's ticker after the app has told the rights of so many sessions anew.
  func jobs(afterUpdating count: Int) async throws -> Int {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    server.access = { _, _ in .readWrite }
    let transport = server.makeTransport()
    var connections: [any TransportConnection] = []
    for _ in 0..<count {
      let connection = try await transport.open(headers: [])
      try connection.send(Array(#"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#.utf8))
      _ = try await connection.receive()
      try connection.send(Array(#"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#.utf8))
      connections.append(connection)
    }
    try await wait { server.runner.engine.knownAccess(of: nil).count == count }
    await server.updateAccess()
    let jobs = server.runner.ticker.jobCount
    await server.stop()
    withExtendedLifetime(connections) {}
    return jobs
  }
}
