import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Synchronization
import Testing

/// Servers that open scopes in a directory when clients fetch them.
@Suite("Scopes in a directory", .live, .timeLimit(.minutes(5)))
@MainActor
struct OpenedScopeTests {
  private let files = try! TemporaryDirectory()

  private func makeServer(
    open: Int = 100, idle: Duration = .seconds(60), opening: Duration = .seconds(30),
    resolve: ((ScopeOpening) async throws -> ScopeSource)? = nil
  ) throws -> Server {
    var configuration = Server.Configuration()
    configuration.maximumOpenScopes = open
    configuration.idleScopeTime = idle
    configuration.scopeOpeningTime = opening
    let server = Server(configuration: configuration)
    let directory = try ScopeDirectory(files.path)
    if let resolve {
      server.openScopes(in: directory, resolve: resolve)
    } else {
      server.openScopes(in: directory) { _ in .schema(ScopeSchema(of: Canvas.self)) }
    }
    return server
  }

  /// A client with a scope.
  private func fetch(
    _ name: String, from server: Server
  ) async throws -> (client: Client, scope: Scope) {
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: name, root: Canvas())
    try await client.connect()
    try await client.fetch(scope)
    return (client, scope)
  }

  private func name(of scope: Scope) -> String? { (scope.root as? Canvas)?.name }

  @Test("A scope goes on after its server was stopped, opened from rows or from models")
  func restart() async throws {
    for round in 0..<4 {
      let server = try makeServer { request in
        #expect(request.isNew == (round == 0))
        return round % 2 == 0
          ? .schema(ScopeSchema(of: Canvas.self))
          : .models(Scope(name: request.name, root: Canvas()))
      }
      let (client, scope) = try await fetch("Document 1", from: server)
      #expect(name(of: scope) == (round == 0 ? nil : "round \(round - 1)"))
      (scope.root as! Canvas).name = "round \(round)"
      try await client.sync(scope)
      await server.stop()
    }
  }

  @Test("A scope that was closed is opened again for the client that comes back, with everything")
  func reopened() async throws {
    let opened = Mutex(0)
    let server = try makeServer { _ in
      opened.withLock { $0 += 1 }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let (client, scope) = try await fetch("A", from: server)
    for round in 1...5 {
      (scope.root as! Canvas).name = "round \(round)"
      // Changes that are on their way when the scope is closed.
      scope.flush()
      try await server.remove("A", telling: .notNow("closed", retryAfter: .zero))
      try await client.sync(scope)
      let (other, copy) = try await fetch("A", from: server)
      #expect(name(of: copy) == "round \(round)")
      other.close()
    }
    #expect(opened.withLock { $0 } == 6)
    await server.stop()
  }

  @Test("At most as many scopes are open as may be, while ten times as many are asked for")
  func limit() async throws {
    let server = try makeServer(open: 3)
    let tasks = (0..<30).map { number in
      Task {
        let (client, scope) = try await fetch("Scope \(number)", from: server)
        (scope.root as! Canvas).name = "of \(number)"
        try await client.sync(scope)
        #expect(server.openScopeCount <= 3)
        client.close()
      }
    }
    for task in tasks { try await task.value }
    for number in 0..<30 {
      let (client, scope) = try await fetch("Scope \(number)", from: server)
      #expect(name(of: scope) == "of \(number)")
      client.close()
    }
    await server.stop()
  }

  @Test("A client is told why a scope is not opened")
  func refused() async throws {
    struct Failure: Error {}
    let server = try makeServer { request in
      if request.name == "none" { throw WireError.notThere("There is no such document") }
      throw Failure()
    }
    let notes = Mutex<[String]>([])
    let token = server.onDiagnostic.listen { note in
      notes.withLock { $0.append(note.text()) }
    }
    await #expect(throws: SyncError.self) { _ = try await fetch("none", from: server) }
    await #expect(throws: SyncError.self) {
      _ = try await fetch(String(repeating: "x", count: 513), from: server)
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let scope = Scope(name: "broken", root: Canvas())
    let fetching = Task { try await client.fetch(scope) }
    try await wait { client.syncState(of: scope)?.stall != nil }
    #expect(notes.withLock { $0.contains { $0.contains("Failure()") } })
    fetching.cancel()
    _ = await fetching.result
    await server.stop()
    _ = token
  }

  @Test("A server that stops while scopes are being opened gives that up, and is stopped")
  func stop() async throws {
    let begun = Mutex(0)
    let server = try makeServer { _ in
      begun.withLock { $0 += 1 }
      try await Task.sleep(for: .seconds(3_600))
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { begun.withLock { $0 } > 0 }
    await server.stop()
    client.close()
    await #expect(throws: SyncError.self) { try await fetching.value }
    // The directory is free.
    let next = try makeServer()
    _ = try await fetch("A", from: next)
    await next.stop()
  }

  @Test("A server that stops does not wait for ever for an app that goes on opening a scope")
  func stopWhileAsked() async throws {
    var asked: CheckedContinuation<Void, Never>?
    let resolve = { (_: ScopeOpening) async -> ScopeSource in
      await withCheckedContinuation { asked = $0 }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let server = try makeServer(opening: .milliseconds(100), resolve: resolve)
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { asked != nil }
    var isStopped = false
    let stopping = Task {
      await server.stop()
      isStopped = true
    }
    do {
      try await wait { isStopped }
    } catch {
      asked?.resume()
      throw error
    }
    client.close()
    _ = await fetching.result
    let next = try makeServer()
    _ = try await fetch("A", from: next)
    // The answer that comes late opens nothing.
    asked?.resume()
    await stopping.value
    let (_, scope) = try await fetch("A", from: next)
    #expect(name(of: scope) == nil && server.openScopeCount == 0)
    await next.stop()
  }

  @Test("A scope whose server stops before the first state is written is new the next time")
  func stoppedWhileNew() async throws {
    var server: Server?
    var stopping: Task<Void, Never>?
    var new: [Bool] = []
    let resolve = { (request: ScopeOpening) -> ScopeSource in
      new.append(request.isNew)
      if stopping == nil { stopping = Task { await server?.stop() } }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    server = try makeServer(resolve: resolve)
    let client = Client(transport: server!.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { stopping != nil }
    await stopping?.value
    client.close()
    _ = await fetching.result
    for _ in 0..<2 {
      let next = try makeServer(resolve: resolve)
      _ = try await fetch("A", from: next)
      await next.stop()
    }
    #expect(new == [true, true, false])
  }

  @Test("A scope that is removed while its first state is written is opened once more, with a log")
  func removedWhileOpened() async throws {
    let asked = Mutex(0)
    let opened = Mutex(false)
    var scope: Scope?
    let resolve = { (request: ScopeOpening) -> ScopeSource in
      asked.withLock { $0 += 1 }
      let opening = Scope(name: request.name, root: Canvas())
      scope = opening
      return .models(opening)
    }
    let server = try makeServer(resolve: resolve)
    server.onDiagnostic.listen { note in
      if note.text().contains("was opened") { opened.withLock { $0 = true } }
    }
    let editing = Task {
      let (client, copy) = try await fetch("A", from: server)
      (copy.root as! Canvas).name = "kept"
      try await client.sync(copy)
      client.close()
    }
    while asked.withLock({ $0 }) < 2, !opened.withLock({ $0 }) {
      // Does nothing before the scope is hosted.
      if let scope { try await server.remove(scope) }
      try Task.checkCancellation()
      await Task.yield()
    }
    try await editing.value
    await server.stop()
    let next = try makeServer(resolve: resolve)
    #expect(try await name(of: fetch("A", from: next).scope) == "kept")
    await next.stop()
  }

  @Test("A scope that is removed by its name while it is opened is closed once it is open")
  func removedByName() async throws {
    let gate = AsyncStream.makeStream(of: Void.self)
    let begun = Mutex(false)
    let server = try makeServer { _ in
      begun.withLock { $0 = true }
      for await _ in gate.stream { break }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let scope = Scope(name: "A", root: Canvas())
    let fetching = Task { try await client.fetch(scope) }
    try await wait { begun.withLock { $0 } }
    let removing = Task {
      try await server.remove("A")
      return server.openScopeCount
    }
    await Task.yield()
    gate.continuation.yield()
    #expect(try await removing.value == 0)
    _ = await fetching.result
    client.close()
    await server.stop()
  }

  @Test("Removing a scope does not wait for ever for an app that goes on opening it")
  func removedWhileAsked() async throws {
    var asked: [CheckedContinuation<Void, Never>] = []
    let resolve = { (_: ScopeOpening) async -> ScopeSource in
      await withCheckedContinuation { asked.append($0) }
      return .schema(ScopeSchema(of: Canvas.self))
    }
    let server = try makeServer(opening: .milliseconds(100), resolve: resolve)
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { !asked.isEmpty }
    var isRemoved = false
    let removing = Task {
      try await server.remove("A")
      isRemoved = true
    }
    defer { for next in asked { next.resume() } }
    try await wait { isRemoved }
    try await removing.value
    client.close()
    _ = await fetching.result
    await server.stop()
  }

  @Test("A scope of the same name that is removed takes nothing from the one that is open")
  func removedOther() async throws {
    let server = try makeServer()
    let (client, scope) = try await fetch("A", from: server)
    try await server.remove(Scope(name: "A", root: Canvas()))
    #expect(server.openScopeCount == 1)
    // One that the app hosts takes precedence for those who come now.
    let own = Scope(name: "A", root: Canvas(), ticker: .manual())
    server.host(own)
    let (other, copy) = try await fetch("A", from: server)
    try await server.remove(own)
    await #expect(throws: SyncError.self) { try await other.sync(copy) }
    (scope.root as! Canvas).name = "kept"
    try await client.sync(scope)
    #expect(server.openScopeCount == 1)
    await server.stop()
  }

  private final class Dial: ModelObject {
    @Property(.minSyncInterval(.seconds(3_600))) var angle = 0
  }

  @Test(
    "A change that waits for its minimal sync interval is in the log when the scope is closed",
    arguments: [true, false])
  func throttled(stops: Bool) async throws {
    var scope: Scope?
    let resolve = { (request: ScopeOpening) -> ScopeSource in
      let opened = Scope(name: request.name, root: Dial())
      scope = opened
      return .models(opened)
    }
    var server = try makeServer(resolve: resolve)
    for angle in [0, 2, 2] {
      let client = Client(transport: server.makeTransport())
      try await client.connect()
      let copy = Scope(name: "Dial", root: Dial())
      try await client.fetch(copy)
      #expect((copy.root as! Dial).angle == angle)
      let dial = scope?.root as! Dial
      for angle in 1...2 {
        dial.angle = angle
        scope?.sealChanges()
      }
      if stops {
        await server.stop()
        server = try makeServer(resolve: resolve)
      } else {
        try await server.remove(try #require(scope))
      }
      client.close()
    }
    await server.stop()
  }

  @Test(
    "Names that only differ in case, or by what paths are made of, are those of different scopes")
  func names() async throws {
    let server = try makeServer()
    let names = [
      "A", "a", "=41", "..", ".", "a/b", "a\\b", "=+", "scope.json", "e\u{301}", "\u{1F600}",
      String(repeating: "x", count: 512), String(repeating: "x", count: 511), " ", "\u{0}",
    ]
    for name in names {
      let (client, scope) = try await fetch(name, from: server)
      #expect(self.name(of: scope) == nil, "\(name)")
      (scope.root as! Canvas).name = "of \(name)"
      try await client.sync(scope)
      client.close()
    }
    // Of one name, composed differently, there is one scope.
    for name in names + ["\u{E9}"] {
      let (client, scope) = try await fetch(name, from: server)
      #expect(self.name(of: scope) == "of \(name)")
      client.close()
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: self.files.path)
    #expect(Set(files) == ["lock", "scopes"])
    await server.stop()
  }

  @Test("A second server cannot use the directory")
  func secondServer() throws {
    let first = try ScopeDirectory(files.path)
    #expect(throws: LogError.inUse(path: files.path)) { try ScopeDirectory(files.path) }
    _ = first
  }
}
