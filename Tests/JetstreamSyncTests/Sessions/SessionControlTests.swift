import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Synchronization
import Testing

/// Servers whose app finds out who its clients are, and puts some of them out.
@Suite("Principals and their sessions", .live, .timeLimit(.minutes(3)))
@MainActor
struct SessionControlTests {
  private let server: Server
  private let scope: Scope
  /// An app's answers, which the test lets come.
  @MainActor
  private final class Gate {
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var isOpen = false
    private(set) var wasCancelled = 0
    var isWaitedAt: Bool { !waiting.isEmpty }

    func pass() async {
      if isOpen { return }
      await withTaskCancellationHandler {
        await withCheckedContinuation { waiting.append($0) }
      } onCancel: {
        Task { @MainActor in self.wasCancelled += 1 }
      }
    }

    func open() {
      isOpen = true
      for waiter in waiting { waiter.resume() }
      waiting = []
    }
  }

  init() {
    server = Server(configuration: .init().patient)
    scope = Scope(name: "Canvas", root: Canvas())
    server.host(scope)
  }

  private func client(_ tokens: [String]) -> (client: Client, scope: Scope, canvas: Canvas) {
    let client = Client(
      transport: server.makeTransport(),
      backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2))
    ).patient
    let left = Mutex(tokens)
    client.credentials = { _ in
      let token = left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
      return Credentials(params: ["token": .string(token)])
    }
    let canvas = Canvas()
    return (client, Scope(name: "Canvas", root: canvas), canvas)
  }

  private nonisolated static func principal(of session: SessionInfo) throws -> Principal {
    guard case .object(let params) = session.params, case .string(let token)? = params["token"],
      token != "old"
    else { throw WireError.notYou("The token is not known") }
    return Principal(token, name: "The user \(token)")
  }

  @Test(
    "An asynchronous answer decides about a session, and its task is cancelled when the client goes"
  )
  func waiting() async throws {
    let gates = ["a": Gate(), "b": Gate(), "c": Gate()]
    server.authenticate = { session in
      let principal = try Self.principal(of: session)
      await gates[principal.id]?.pass()
      return principal
    }
    let (a, b, c) = (try #require(gates["a"]), try #require(gates["b"]), try #require(gates["c"]))
    let (client, scope, _) = client(["a"])
    let connected = Task { try await client.connect() }
    try await wait { a.isWaitedAt }
    #expect(server.sessions.isEmpty)
    a.open()
    try await connected.value
    try await client.fetch(scope)
    #expect(server.sessions.map(\.principal?.id) == ["a"])
    let (impatient, _, _) = self.client(["b"])
    let task = Task { try await impatient.connect() }
    try await wait { b.isWaitedAt }
    let cancelled = b.wasCancelled
    impatient.close()
    try await wait { b.wasCancelled > cancelled }
    b.open()
    _ = try? await task.value
    #expect(server.sessions.map(\.principal?.id) == ["a"])
    // A server that stops waits for no app.
    let (last, _, _) = self.client(["c"])
    let lost = Task { try await last.connect() }
    try await wait { c.isWaitedAt }
    let left = c.wasCancelled
    await server.stop()
    try await wait { c.wasCancelled > left }
    c.open()
    last.close()
    _ = try? await lost.value
  }

  @Test(
    "A client whose principal is revoked comes with other credentials, and each of its changes counts once"
  )
  func revoked() async throws {
    server.authenticate = { try Self.principal(of: $0) }
    let (client, scope, canvas) = client(["old", "a", "b", "c"])
    try await client.connect()
    try await client.fetch(scope)
    for (round, id) in ["a", "b"].enumerated() {
      canvas.likes += 1
      scope.flush()
      #expect(server.revoke(id) == 1)
      canvas.likes += 1
      scope.flush()
      try await wait { client.syncState(of: scope)?.isSynced == true && server.sessions.count == 1 }
      #expect((self.scope.root as? Canvas)?.likes == 2 * (round + 1))
    }
    #expect(server.sessions.map(\.principal?.name) == ["The user c"])
    client.close()
    await server.stop()
  }

  @Test("A client whose session the app ends with a refusal stays away, and others notice nothing")
  func ended() async throws {
    server.authenticate = { try Self.principal(of: $0) }
    let (client, scope, canvas) = client(["a"])
    let other = self.client(["b"])
    for (client, scope) in [(client, scope), (other.client, other.scope)] {
      try await client.connect()
      try await client.fetch(scope)
    }
    var closed: [SyncError] = []
    client.onSessionDenied.listen(client) { _, error in closed.append(error) }
    let session = try #require(server.sessions.first { $0.principal?.id == "a" })
    server.end(session, telling: .rejected("You are blocked"))
    server.end(session)
    canvas.likes += 1
    scope.flush()
    try await wait { !closed.isEmpty }
    #expect(closed == [.sessionClosed(reason: "You are blocked")])
    #expect(client.status == .offline && canvas.likes == 1)
    other.canvas.likes += 10
    try await other.client.sync(other.scope)
    #expect((self.scope.root as? Canvas)?.likes == 10 && server.sessions.count == 1)
    other.client.close()
    await server.stop()
  }

  @Test("An error of the app is reported, and the client comes back")
  func failure() async throws {
    struct Broken: Error {}
    var calls = 0
    var reports: [String] = []
    server.onDiagnostic.listen { reports.append("\($0)") }
    server.authenticate = { session in
      calls += 1
      if calls == 1 { throw Broken() }
      return try Self.principal(of: session)
    }
    let (client, scope, _) = client(["a"])
    try await client.connect()
    try await client.fetch(scope)
    #expect(calls == 2 && reports.contains { $0.contains("Broken") })
    client.close()
    await server.stop()
  }

  @Test(
    "Rights decide before a scope is opened, and hold in every channel, until they change",
    arguments: [0, 2])
  func access(scopeLoops: Int) async throws {
    let files = try TemporaryDirectory()
    var configuration = Server.Configuration()
    configuration.scopeLoops = scopeLoops
    let server = Server(configuration: configuration)
    let roles = Mutex(["a": ScopeAccess.readWrite, "b": .readOnly])
    var opened: [String] = []
    server.authenticate = { try Self.principal(of: $0) }
    server.access = { session, scope in
      await Task.yield()
      guard let id = session.principal?.id, let access = roles.withLock({ $0[id] }) else {
        throw WireError.notThere("There is no \(scope)")
      }
      return access
    }
    if scopeLoops > 0 {
      server.host("Canvas", schema: ScopeSchema(of: Canvas.self))
    } else {
      server.openScopes(in: try ScopeDirectory(files.path)) { request in
        opened.append(request.name)
        return .schema(ScopeSchema(of: Canvas.self))
      }
    }
    func join(_ token: String) async throws -> (client: Client, scope: Scope, canvas: Canvas) {
      let client = Client(transport: server.makeTransport())
      let canvas = Canvas()
      let scope = Scope(name: "Canvas", root: canvas)
      try await client.connect(params: ["token": .string(token)])
      try await client.fetch(scope)
      return (client, scope, canvas)
    }
    await #expect(throws: SyncError.self) { _ = try await join("c").client }
    #expect(opened.isEmpty)
    let (writer, reader) = (try await join("a"), try await join("b"))
    writer.canvas.name = "from a"
    try await writer.client.sync(writer.scope)
    try await reader.client.sync(reader.scope)
    #expect(reader.canvas.name == "from a")
    var rejections: [String] = []
    reader.scope.conflicts.onAdd.listen { rejections.append("\($0)") }
    reader.canvas.name = "from b"
    try await reader.client.sync(reader.scope)
    #expect(reader.canvas.name == "from a" && rejections.count == 1, "\(rejections)")
    // The roles are swapped, and the writer is put out.
    roles.withLock { $0 = ["b": .readWrite] }
    await server.updateAccess()
    reader.canvas.name = "b may now"
    try await reader.client.sync(reader.scope)
    #expect(reader.canvas.name == "b may now")
    writer.canvas.name = "too late"
    await #expect(throws: SyncError.self) { try await writer.client.sync(writer.scope) }
    try await reader.client.sync(reader.scope)
    #expect(reader.canvas.name == "b may now")
    // It may return.
    roles.withLock { $0["a"] = .readWrite }
    let again = try await join("a")
    #expect(again.canvas.name == "b may now")
    for client in [writer.client, reader.client, again.client] { client.close() }
    await server.stop()
  }

  @Test("Of two questions about rights, the answer to the later one counts")
  func overlappingAnswers() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    let asked = Mutex<[CheckedContinuation<ScopeAccess, Never>]>([])
    let answersAtOnce = Mutex(true)
    server.access = { _, _ in
      if answersAtOnce.withLock({ $0 }) { return .readWrite }
      return await withCheckedContinuation { answer in asked.withLock { $0.append(answer) } }
    }
    func question(_ number: Int) async throws -> CheckedContinuation<ScopeAccess, Never> {
      try await wait(until: { asked.withLock { $0.count } > number })
      return asked.withLock { $0[number] }
    }
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    answersAtOnce.withLock { $0 = false }
    let first = Task { await server.updateAccess() }
    let early = try await question(0)
    let second = Task { await server.updateAccess() }
    try await question(1).resume(returning: .readOnly)
    await second.value
    early.resume(returning: .readWrite)
    // The first call asks again, since its answer may be from before.
    try await question(2).resume(returning: .readOnly)
    await first.value
    canvas.name = "not allowed"
    try await client.sync(scope)
    #expect(canvas.name == nil && scope.conflicts.items.count == 1)
    client.close()
    await server.stop()
  }
}
