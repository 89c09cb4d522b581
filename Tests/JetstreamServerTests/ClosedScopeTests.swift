import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Pacing
import Testing

/// Servers that close scopes which they have opened on demand, when the server stops.
@Suite("Closing scopes that were opened on demand", .live, .timeLimit(.minutes(3)))
@MainActor
struct ClosedScopeTests {
  private let storage = MemoryStorage()

  private func makeServer(
    resolve: ((ScopeOpening) async throws -> ScopeSource)? = nil
  ) -> Server {
    let server = Server()
    server.openScopes(
      kept: storage, resolve: resolve ?? { _ in .schema(ScopeSchema(of: Canvas.self)) })
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

  @Test("Of two calls that stop a server at once, each returns when everything is closed")
  func stoppedTwice() async throws {
    let server = makeServer()
    let port = try await server.listen()
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
}
