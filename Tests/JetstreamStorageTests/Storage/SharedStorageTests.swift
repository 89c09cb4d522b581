import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Pacing
import Testing

/// Servers that have their histories in one storage, each with a lease for the scopes that it serves.
@Suite("Servers that share a storage", .live, .timeLimit(.minutes(3)))
@MainActor
struct SharedStorageTests {
  private let storage = MemoryStorage()

  private func makeServer() -> Server {
    let server = Server()
    server.openScopes(kept: storage) { _ in .schema(ScopeSchema(of: Canvas.self)) }
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

  @Test("A scope that one server has released goes on at another")
  func handover() async throws {
    let (one, two) = (makeServer(), makeServer())
    let first = try await fetch("A", from: one)
    first.canvas.name = "from one"
    try await first.client.sync(first.scope)
    await one.stop()
    let second = try await fetch("A", from: two)
    #expect(second.canvas.name == "from one")
    await two.stop()
  }

  @Test(
    "A server whose lease is lost tells clients so, and nothing that it was sent meanwhile is lost or applied twice"
  )
  func lostLease() async throws {
    let (one, two) = (makeServer(), makeServer())
    let first = try await fetch("A", from: one)
    first.canvas.likes += 1
    try await first.client.sync(first.scope)
    // The first server's process was stopped for too long, and the second takes over.
    storage.expireLease(of: "A")
    let second = try await fetch("A", from: two)
    #expect(second.canvas.likes == 1)
    second.canvas.likes += 10
    second.canvas.name = "from two"
    try await second.client.sync(second.scope)
    // The first one learns of it when it writes. Its client's change set is in no history.
    first.canvas.likes += 100
    first.scope.flush()
    try await wait { one.openScopeCount == 0 }
    #expect(first.client.syncState(of: first.scope)?.pendingCount == 1)
    await two.stop()
    // A sync would fail if the client was refused once more meanwhile.
    try await wait { first.client.syncState(of: first.scope)?.isSynced == true }
    #expect(first.canvas.likes == 111 && first.canvas.name == "from two")
    await one.stop()
    let third = try await fetch("A", from: makeServer())
    #expect(third.canvas.likes == 111 && third.canvas.name == "from two")
  }

  @Test("Lost requests and answers delay what clients are told, and change nothing else")
  func faults() async throws {
    let server = makeServer()
    let (one, two) = (try await fetch("A", from: server), try await fetch("A", from: server))
    for round in 1...3 {
      storage.inject([[.lostAnswer], [.lostRequest, .lostAnswer], [.lateRequest]][round - 1])
      one.canvas.likes += 1
      two.canvas.likes += 1
      try await one.client.sync(one.scope)
      try await two.client.sync(two.scope)
    }
    #expect(one.canvas.likes == 6)
    await server.stop()
    let again = try await fetch("A", from: makeServer())
    #expect(again.canvas.likes == 6)
  }
}
