import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Pacing
import Testing

/// Servers that close scopes which they have opened on demand: when the app removes one, and when the server stops.
@Suite("Closing scopes that were opened on demand", .live, .timeLimit(.minutes(3)))
@MainActor
final class ClosedScopeTests {
  private let storage = MemoryStorage()
  private var notes: [String] = []

  private func makeServer(
    _ configuration: Server.Configuration = .init(),
    resolve: ((ScopeOpening) async throws -> ScopeSource)? = nil
  ) -> Server {
    let server = Server(configuration: configuration)
    server.openScopes(
      kept: storage, resolve: resolve ?? { _ in .schema(ScopeSchema(of: Canvas.self)) })
    server.onDiagnostic.listen(self) { $0.notes.append($1.text()) }
    return server
  }

  private func fetch(
    _ name: String, from server: Server
  ) async throws -> (client: Client, scope: Scope, canvas: Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    return (client, scope, canvas)
  }

  private func hasNote(_ text: String) -> Bool { notes.contains { $0.contains(text) } }

  /// Opens a scope that has a change set which the storage does not take.
  private func openUnwritable(_ name: String, on server: Server) async throws -> Client {
    let (client, scope, canvas) = try await fetch(name, from: server)
    storage.inject(Array(repeating: .lostRequest, count: 100))
    canvas.name = "kept"
    scope.flush()
    try await wait { hasNote("cannot be kept") }
    return client
  }

  // MARK: Removing

  @Test(
    "Removing a scope whose storage fails returns once the scope is written and released")
  func removed() async throws {
    let server = makeServer()
    let client = try await openUnwritable("A", on: server)
    let removing = Task {
      try await server.remove("A")
      return storage.hasFaults
    }
    try await wait { hasNote("cannot be closed") }
    #expect(!hasNote("was closed"))
    storage.clearFaults()
    #expect(try await removing.value == false)
    client.close()
    // Another server can have it at once, with everything.
    let next = makeServer()
    #expect(try await fetch("A", from: next).canvas.name == "kept")
    await next.stop()
    await server.stop()
  }

  @Test("Removing a scope whose storage fails throws the error when the server stops")
  func stoppedWhileRemoving() async throws {
    let server = makeServer()
    let client = try await openUnwritable("A", on: server)
    let removing = Task { try await server.remove("A") }
    try await wait { hasNote("cannot be closed") }
    await server.stop()
    let error = StorageError.unavailable("the request was lost")
    await #expect(throws: error) { try await removing.value }
    #expect(hasNote("could not be closed") && !hasNote("was closed"))
    client.close()
  }

  /// Opens a scope of models that has a change set which the storage does not take.
  private func openUnwritableModels() async throws -> (Server, Client, Scope) {
    var opened: Scope?
    let server = makeServer { request in
      let scope = Scope(name: request.name, root: Canvas())
      opened = scope
      return .models(scope)
    }
    let client = try await openUnwritable("A", on: server)
    return (server, client, try #require(opened))
  }

  @Test("Removing a scope that is being closed returns once it is written and released")
  func removedWhileClosing() async throws {
    let (server, client, scope) = try await openUnwritableModels()
    let closing = Task { try await server.remove("A") }
    try await wait { hasNote("cannot be closed") }
    var isBegun = false
    let removing = Task {
      isBegun = true
      try await server.remove(scope)
      return storage.hasFaults
    }
    try await wait { isBegun }
    storage.clearFaults()
    #expect(try await removing.value == false)
    #expect(hasNote("was closed"))
    try await closing.value
    client.close()
    _ = try await storage.lease("A")
    await server.stop()
  }

  @Test("Removing a scope that is hosted again with a log while it is closed also closes the log")
  func removedWhileHostedAgain() async throws {
    let (server, client, scope) = try await openUnwritableModels()
    let closing = Task { try await server.remove("A") }
    try await wait { hasNote("cannot be closed") }
    let files = try TemporaryDirectory()
    let log = try FragmentLog(files.path)
    try await server.host(scope, log: log)
    storage.clearFaults()
    try await server.remove(scope)
    #expect(log.records.isClosed && hasNote("was closed"))
    try await closing.value
    client.close()
    _ = try await storage.lease("A")
    await server.stop()
  }

  @Test("Removing a scope whose closing is about to begin leaves the closing to try again")
  func removedBeforeClosing() async throws {
    let (server, client, scope) = try await openUnwritableModels()
    let removals = [Task { try await server.remove("A") }, Task { try await server.remove(scope) }]
    try await wait { hasNote("cannot be closed") || hasNote("was closed") }
    #expect(!hasNote("was closed"))
    storage.clearFaults()
    for removal in removals { await #expect(throws: Never.self) { try await removal.value } }
    client.close()
    let next = makeServer()
    #expect(try await fetch("A", from: next).canvas.name == "kept")
    await next.stop()
    await server.stop()
  }

  // MARK: Stopping

  @Test("A history that is given up when the server stops is reported with the name of its scope")
  func givenUp() async throws {
    let server = makeServer()
    var scopes: [String?] = []
    server.onDiagnostic.listen {
      if $0.text().contains("could not be closed") { scopes.append($0.scope) }
    }
    let client = try await openUnwritable("A", on: server)
    await server.stop()
    client.close()
    #expect(scopes == ["A"])
  }

  @Test("Of two calls that stop a server at once, each returns when everything is closed")
  func stoppedTwice() async throws {
    let server = makeServer()
    let port = try await server.listen(port: keptPort())
    var clients: [Client] = []
    for number in 0..<10 { clients.append(try await fetch("\(number)", from: server).client) }
    let first = Task { await server.stop() }
    let second = Task {
      await server.stop()
      for number in 0..<10 { _ = try await storage.lease("\(number)") }
      let next = Server()
      #expect(try await next.listen(port: port) == port)
      await next.stop()
    }
    await first.value
    try await second.value
    for client in clients { client.close() }
  }

  /// A server that cannot end to stop before its app has answered.
  private func stopSlowly(
    _ server: Server, _ answer: () -> CheckedContinuation<Void, Never>?
  ) async throws -> Task<Void, Never> {
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { answer() != nil }
    let stopping = Task { await server.stop() }
    try await wait { server.sessionCount == 0 }
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    return stopping
  }

  @Test("A server that is told to listen while it stops listens once it has stopped")
  func listenWhileStopping() async throws {
    var answer: CheckedContinuation<Void, Never>?
    let server = makeServer { _ in
      await withCheckedContinuation { answer = $0 }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    server.host("B", schema: ScopeSchema(of: Canvas.self))
    let port = try await server.listen()
    let stopping = try await stopSlowly(server) { answer }
    var isListening = false
    let listening = Task {
      isListening = true
      return try await server.listen(port: port)
    }
    try await wait { isListening }
    answer?.resume()
    await stopping.value
    #expect(try await listening.value == port)
    let client = Client(url: "ws://127.0.0.1:\(port)")
    try await client.connect()
    try await client.fetch(Scope(name: "B", root: Canvas()))
    client.close()
    await server.stop()
  }

  @Test("A session that begins while the server stops goes on in all channels")
  func sessionWhileStopping() async throws {
    var answer: CheckedContinuation<Void, Never>?
    var configuration = Server.Configuration()
    configuration.scopeLoops = 2
    let server = makeServer(configuration) { _ in
      await withCheckedContinuation { answer = $0 }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    server.host("B", schema: ScopeSchema(of: Canvas.self))
    let stopping = try await stopSlowly(server) { answer }
    let (client, scope, canvas) = try await fetch("B", from: server)
    var changes: [ClientStatus] = []
    client.onStatusChange.listen(self) { changes.append($1) }
    var ended = 0
    server.onSessionEnd.listen(self) { _, _ in ended += 1 }
    answer?.resume()
    await stopping.value
    canvas.name = "kept"
    try await client.sync(scope)
    #expect(changes.isEmpty && ended == 0 && server.sessionCount == 1)
    client.close()
    await server.stop()
  }

  @Test("A server whose app ignores that an opening is given up ends its sessions before it waits")
  func deafResolver() async throws {
    var isAsked = false
    var isCancelled = false
    var answer: CheckedContinuation<Void, Never>?
    let server = makeServer { _ in
      isAsked = true
      await withCheckedContinuation { answer = $0 }
      isCancelled = Task.isCancelled
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { isAsked && answer != nil }
    var hasAnswered = false
    let stops = (0..<2).map { _ in
      Task {
        await server.stop()
        return hasAnswered
      }
    }
    try await wait { server.sessionCount == 0 && server.connectionCount == 0 }
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    hasAnswered = true
    answer?.resume()
    for stop in stops { #expect(await stop.value) }
    #expect(isCancelled && server.openScopeCount == 0)
    // Nothing was opened for it.
    _ = try await storage.lease("A")
  }

  // MARK: While the server stops

  @Test("Scopes are opened in another storage once a server that stops has closed its own")
  func openedElsewhere() async throws {
    var asked: [CheckedContinuation<Void, Never>] = []
    let server = makeServer { _ in
      await withCheckedContinuation { asked.append($0) }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { asked.count == 1 }
    var isStopping = false
    let stopping = Task {
      isStopping = true
      await server.stop()
    }
    try await wait { isStopping }
    let other = MemoryStorage()
    server.openScopes(kept: other) { _ in .schema(ScopeSchema(of: Canvas.self)) }
    for next in asked { next.resume() }
    await stopping.value
    client.close()
    _ = await fetching.result
    let later = try await fetch("A", from: server).client
    #expect(server.openScopeCount == 1)
    later.close()
    await server.stop()
    #expect(try await storage.find("A").isNew)
    #expect(try await !other.find("A").isNew)
  }

  @Test(
    "Removing a scope of a server that stops throws the error with which closing it was given up",
    arguments: [true, false])
  func removedWhileStopping(byName: Bool) async throws {
    let (server, client, scope) = try await openUnwritableModels()
    let stopping = Task { await server.stopScopes() }
    let removing = Task {
      if byName { try await server.remove("A") } else { try await server.remove(scope) }
    }
    let error = StorageError.unavailable("the request was lost")
    await #expect(throws: error) { try await removing.value }
    #expect(await stopping.value == ["A"])
    client.close()
  }
}
