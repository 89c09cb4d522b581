import Foundation
import Jetstream
import JetstreamSimulation
import Pacing
import Testing

@testable import JetstreamServer

/// Openings in which the app is asked long after they began, and does not answer.
@Suite("Openings that are asked late", .live, .timeLimit(.minutes(3)))
@MainActor
final class LateOpeningTests {
  private let storage = MemoryStorage()
  /// Those who look for a scope.
  private var looking: [CheckedContinuation<Void, Never>] = []
  /// The calls of an app that does not answer.
  private var asked: [CheckedContinuation<Void, Never>] = []
  private var holds = true

  /// A storage that finds a scope when the test says so.
  private struct SlowStorage: ScopeStorage {
    let base: MemoryStorage
    let hold: @Sendable () async -> Void

    func find(_ name: String) async throws(StorageError) -> StoredScope {
      await hold()
      return try await base.find(name)
    }

    func keep(_ schema: ScopeSchema, of name: String) async throws(StorageError) {
      try await base.keep(schema, of: name)
    }

    func lease(_ name: String) async throws(StorageError) -> any ScopeLease {
      try await base.lease(name)
    }

    func follow(_ name: String, after sequence: Int) -> StoredRecords {
      base.follow(name, after: sequence)
    }
  }

  private func hold() async {
    if holds { await withCheckedContinuation { looking.append($0) } }
  }

  private func makeServer() -> Server {
    var configuration = Server.Configuration()
    configuration.scopeOpeningTime = .milliseconds(50)
    let server = Server(configuration: configuration)
    let storage = SlowStorage(base: storage) { [weak self] in await self?.hold() }
    server.openScopes(kept: storage) { [weak self] _ in
      await withCheckedContinuation { self?.asked.append($0) }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    return server
  }

  private func release() {
    holds = false
    for next in looking + asked { next.resume() }
    (looking, asked) = ([], [])
  }

  @Test("Removing the scope returns although the app was asked after the time that it may take")
  func removed() async throws {
    let server = makeServer()
    defer { release() }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { looking.count == 1 }
    var isRemoved = false
    let removing = Task {
      try await server.remove("A")
      isRemoved = true
    }
    // The time of an opening passes several times before the app is asked.
    let start = server.runner.ticker.now
    try await wait { server.runner.ticker.now > start + .milliseconds(200) }
    #expect(!isRemoved && asked.isEmpty && looking.count == 1)
    holds = false
    looking.removeLast().resume()
    try await wait { asked.count == 1 }
    try await removing.value
    #expect(server.openScopeCount == 0)
    // An answer that comes now opens nothing.
    asked.removeLast().resume()
    _ = try await storage.lease("A")
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    await server.stop()
  }

  @Test("A server that stops does not ask the app any more, however late the scope is found")
  func stopped() async throws {
    let server = makeServer()
    defer { release() }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { looking.count == 1 }
    let stopping = Task { await server.stop() }
    try await wait { server.sessionCount == 0 }
    looking.removeLast().resume()
    await stopping.value
    #expect(asked.isEmpty && server.openScopeCount == 0)
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
  }
}
