import Jetstream
import JetstreamServer
import Observation
import Pacing
import Synchronization
import Testing

@Suite("Views that follow a client", .live, .timeLimit(.minutes(5)))
@MainActor
struct TrackedSyncTests {
  private let server: Server
  private let hosted: Scope
  private let client: Client
  private let canvas = Canvas()
  private let scope: Scope

  init() {
    server = Server()
    hosted = Scope(name: "Canvas", root: Canvas())
    client = Client(transport: server.makeTransport())
    scope = Scope(name: "Canvas", root: canvas)
    server.host(hosted)
  }

  /// Returns once something that `read` reads has changed.
  private func change(of read: @escaping () -> Void, after act: () -> Void = {}) async {
    let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
    withObservationTracking(read) { continuation.yield() }
    act()
    for await _ in changes { return }
  }

  @Test("A change of the client's status is tracked")
  func status() async throws {
    #expect(client.status == .offline)
    await change(of: { _ = client.status }) {
      Task { try await client.connect() }
    }
    try await client.connect()
    #expect(client.status == .online)
    await change(of: { _ = client.status }) { client.close() }
    #expect(client.status == .offline)
    await server.stop()
  }

  @Test("A change of a scope's sync state is tracked, also the end of its syncing")
  func syncState() async throws {
    try await client.connect()
    try await client.fetch(scope)
    #expect(client.syncState(of: scope)?.isSynced == true)
    await change(of: { _ = client.syncState(of: scope) }) {
      canvas.name = "a"
      scope.flush()
    }
    #expect(client.syncState(of: scope)?.pendingCount == 1)
    try await client.waitForUpload(of: scope)
    #expect(client.syncState(of: scope)?.sequence == 1)
    await change(of: { _ = client.syncState(of: scope) }) {
      #expect(throws: Never.self) { _ = try client.leave(scope) }
    }
    #expect(client.syncState(of: scope) == nil)
    client.close()
    await server.stop()
  }

  @Test("A model's pending changes are tracked, from the change set on to the server's decision")
  func pendingModel() async throws {
    try await client.connect()
    try await client.fetch(scope)
    #expect(!client.isPending(canvas))
    await change(of: { _ = client.isPending(canvas) }) {
      canvas.name = "a"
      scope.flush()
    }
    #expect(client.isPending(canvas))
    await change(of: { _ = client.isPending(canvas) })
    try await client.waitForUpload(of: scope)
    #expect(!client.isPending(canvas))
    client.close()
    await server.stop()
  }

  @Test("The conflicts in the ledger are tracked")
  func ledger() async throws {
    let shape = Shape()
    let canvas = try #require(hosted.root as? Canvas)
    canvas.shapes.append(shape)
    hosted.flush()
    try await client.connect()
    try await client.fetch(scope)
    try client.setMode(.pushOnly, of: scope)
    let mine = try #require(self.canvas.shapes.first)
    // The server removes the shape while the client, which takes nothing in, changes it.
    canvas.shapes.removeAll()
    hosted.flush()
    await change(of: { _ = scope.conflicts.items }) {
      mine.x = 5
      scope.flush()
    }
    #expect(scope.conflicts.items.map(\.property) == ["x"])
    await change(of: { _ = scope.conflicts.items }) {
      scope.conflicts.discard(scope.conflicts.items[0].id)
    }
    #expect(scope.conflicts.items.isEmpty)
    client.close()
    await server.stop()
  }

  @Test("A scope that is made at the address of a released one is tracked as well")
  func reusedAddress() async throws {
    try await client.connect()
    var addresses: Set<ObjectIdentifier> = []
    for _ in 0..<10_000 {
      let canvas = Canvas()
      let scope = Scope(name: "Canvas", root: canvas)
      guard addresses.contains(ObjectIdentifier(scope)) else {
        addresses.insert(ObjectIdentifier(scope))
        _ = client.isPending(canvas)
        continue
      }
      try await client.fetch(scope)
      let isTold = Atomic(false)
      withObservationTracking {
        _ = client.isPending(canvas)
      } onChange: {
        isTold.store(true, ordering: .relaxed)
      }
      canvas.name = "a"
      scope.flush()
      #expect(isTold.load(ordering: .relaxed) && client.isPending(canvas))
      client.close()
      await server.stop()
      return
    }
    Issue.record("No address was used again, so this has tested nothing.")
  }
}
