import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// Failures of storages while a server begins to host a scope, or ends it.
@Suite("Hosting with storages that fail", .live, .timeLimit(.minutes(3)))
@MainActor
struct HostingFaultTests {
  private func fetch(_ name: String, from server: Server) async throws -> (Client, Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    return (client, canvas)
  }

  @Test("A scope whose first state cannot be written can be hosted with its log once that is over")
  func firstState() async throws {
    let disk = SimulatedDisk()
    let log = FragmentLog(try RecordLog(disk))
    let canvas = Canvas()
    canvas.name = "first"
    let scope = Scope(name: "A", root: canvas)
    let server = Server()
    disk.inject([.rename(EIO)])
    await #expect(throws: LogError.self) { try await server.host(scope, log: log) }
    disk.clearFaults()
    #expect(!server.runner.engine.keepsHistory(of: scope))
    try await server.host(scope, log: log)
    let (client, copy) = try await fetch("A", from: server)
    #expect(copy.name == "first")
    client.close()
    try await server.remove(scope)
    let other = FragmentLog(try RecordLog(SimulatedDisk()))
    try await other.close()
    await #expect(throws: LogError.closed) { try await server.host(scope, log: other) }
    await server.stop()
  }
}
