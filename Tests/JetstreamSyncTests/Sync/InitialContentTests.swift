import Jetstream
@testable import JetstreamServer
import JetstreamWebSocket
import Testing

@Suite("Initial content", .live, .timeLimit(.minutes(5)))
@MainActor
struct InitialContentTests {
  private let directory: TemporaryDirectory
  private let server = Hosting()

  init() throws { directory = try TemporaryDirectory() }

  /// A server with one scope.
  @MainActor
  private final class Hosting {
    let server: Server
    let canvas = Canvas()
    let scope: Scope

    init() {
      server = Server()
      scope = Scope(name: "Canvas", root: canvas)
    }
  }

  /// A client of that server, with a log.
  @MainActor
  private final class Guest {
    let canvas = Canvas()
    let scope: Scope
    let client: Client
    let log: FragmentLog

    init(_ path: String, of server: Server, initial: ((Canvas) throws -> Void)?) throws {
      scope = Scope(name: "Canvas", root: canvas)
      client = Client(transport: server.makeTransport())
      log = try FragmentLog(path)
      let canvas = canvas
      try client.fetch(scope, log: log, initial: initial.map { write in { try write(canvas) } })
    }

    func join() async throws {
      try await client.connect()
      try await settle()
    }

    func settle() async throws {
      try await client.waitForDownload(of: scope)
      try await client.waitForUpload(of: scope)
      try await client.sync(scope)
    }

    func leave() async throws {
      client.close()
      try await log.records.close()
    }
  }

  private func guest(
    _ name: String, initial: ((Canvas) throws -> Void)? = nil
  ) throws -> Guest {
    try Guest(directory.path + "/" + name, of: server.server, initial: initial)
  }

  private func sample(_ name: String, shapes count: Int) -> (Canvas) -> Void {
    { canvas in
      canvas.name = name
      for _ in 0..<count {
        let shape = Shape()
        shape.label = name
        shape.parts = [Shape()]
        canvas.shapes.append(shape)
      }
    }
  }

  @Test("If the closure throws, the scope is not synced, and can be fetched with the same log")
  func throwing() async throws {
    struct Oops: Error {}
    server.server.host(server.scope)
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let client = Client(transport: server.server.makeTransport())
    let log = try FragmentLog(directory.path + "/a")
    #expect(throws: Oops.self) {
      try client.fetch(scope, log: log) {
        canvas.name = "mine"
        throw Oops()
      }
    }
    #expect(canvas.name == nil && client.syncState(of: scope) == nil)
    try client.fetch(scope, log: log) { canvas.name = "again" }
    try await client.connect()
    try await client.waitForDownload(of: scope)
    try await client.waitForUpload(of: scope)
    #expect(canvas.name == "again" && server.canvas.name == "again")
    client.close()
    try await log.records.close()
    await server.server.stop()
  }

  @Test("It is visible at once, and the server has it once there is a connection")
  func first() async throws {
    server.server.host(server.scope)
    let guest = try guest("a", initial: sample("mine", shapes: 2))
    #expect(guest.canvas.name == "mine" && guest.canvas.shapes.count == 2)
    let shape = guest.canvas.shapes[0]
    shape.x = 5
    try await guest.join()
    #expect(server.canvas.shapes.map(\.label) == ["mine", "mine"])
    #expect(server.canvas.shapes.map(\.x) == [5, 0])
    #expect(guest.canvas.shapes.first === shape && guest.scope.conflicts.isEmpty)
    #expect(guest.scope.canonicalJSON == server.scope.canonicalJSON)
    try await guest.leave()
  }

  @Test("Where the server has content, that stays, property by property")
  func second() async throws {
    server.server.host(server.scope)
    server.canvas.shapes = [Shape()]
    server.scope.flush()
    let guest = try guest("a") { canvas in
      canvas.shapes = [Shape(), Shape()]
      canvas.likes = 3
      canvas.selected = canvas.shapes[0]
    }
    var counts: Set<Int> = []
    guest.canvas.observeChange(guest, \.shapes) { _ in counts.insert(guest.canvas.shapes.count) }
    let mine = guest.canvas.shapes[1]
    mine.x = 1
    try await guest.join()
    #expect(guest.canvas.shapes.count == 1 && guest.canvas.likes == 3 && server.canvas.likes == 3)
    #expect(counts.isSubset(of: [1, 2]), "never both")
    #expect(guest.scope.canonicalJSON == server.scope.canonicalJSON)
    #expect(guest.scope.conflicts.items.map(\.model) == [mine.uuid], "the edit, not the content")
    try await guest.leave()
    let again = try self.guest("a")
    #expect(again.canvas.shapes.count == 1 && again.canvas.likes == 3)
    #expect(again.scope.canonicalJSON == server.scope.canonicalJSON)
    try await again.leave()
  }

  @Test("Of two clients that bring it at the same time, the first one counts")
  func race() async throws {
    server.server.host(server.scope)
    let guests = try ["a", "b"].map { try guest($0, initial: sample($0, shapes: 3)) }
    for guest in guests { try await guest.client.connect() }
    for _ in 0..<2 { for guest in guests { try await guest.settle() } }
    let names = Set(server.canvas.shapes.map(\.label))
    #expect(
      server.canvas.shapes.count == 3 && names.count == 1 && names.first == server.canvas.name)
    for guest in guests {
      #expect(guest.scope.canonicalJSON == server.scope.canonicalJSON)
      #expect(guest.scope.conflicts.isEmpty)
      try await guest.leave()
    }
  }

  @Test("What was emptied stays empty, also after the server's restart", arguments: [0, 1])
  func emptied(snapshotEvery: Int) async throws {
    let path = directory.path + "/server"
    try await server.server.host(
      server.scope, log: FragmentLog(path), snapshotEvery: snapshotEvery)
    let author = try guest("a", initial: sample("first", shapes: 1))
    try await author.join()
    author.canvas.shapes = []
    author.canvas.name = nil
    try await author.settle()
    try await author.leave()
    try await server.server.remove(server.scope)
    let again = Hosting()
    try await again.server.host(again.scope, log: FragmentLog(path))
    let late = try Guest(
      directory.path + "/b", of: again.server, initial: sample("late", shapes: 2))
    try await late.join()
    #expect(again.canvas.shapes.isEmpty && again.canvas.name == nil)
    #expect(late.scope.canonicalJSON == again.scope.canonicalJSON)
    try await late.leave()
    try await again.server.remove(again.scope)
  }

  @Test("It is written once, over restarts before the first connection and after it")
  func restarts() async throws {
    server.server.host(server.scope)
    var calls = 0
    for _ in 0..<3 {
      let guest = try guest("a") { canvas in
        calls += 1
        sample("mine", shapes: 2)(canvas)
      }
      #expect(guest.canvas.shapes.count == 2 && guest.canvas.name == "mine")
      try await guest.leave()
    }
    let guest = try guest("a")
    try await guest.join()
    #expect(calls == 1 && server.canvas.shapes.count == 2)
    #expect(guest.scope.canonicalJSON == server.scope.canonicalJSON)
    try await guest.leave()
    let last = try self.guest("a", initial: sample("other", shapes: 5))
    #expect(last.canvas.shapes.count == 2)
    try await last.leave()
  }

  @Test("If writing it fails, nothing of it stays, and it is written the next time")
  func failing() async throws {
    struct Failure: Error {}
    #expect(throws: Failure.self) {
      try self.guest("a") { canvas in
        canvas.name = "half"
        throw Failure()
      }
    }
    let guest = try guest("b", initial: sample("whole", shapes: 1))
    #expect(guest.canvas.name == "whole")
    try await guest.leave()
  }

  @Test("One call opens a scope, whether there is a server or not")
  func open() async throws {
    #expect(throws: WebSocketError.self) {
      try Client.open("Canvas", Canvas(), at: "http://localhost", log: directory.path + "/x")
    }
    server.server.host(server.scope)
    let port = try await server.server.listen()
    server.server.authenticate = {
      if $0.params != ["key": 1] { throw WireError.notYou("no key") }
      return nil
    }
    let canvas = Canvas()
    let (client, scope) = try Client.open(
      "Canvas", canvas, at: "ws://127.0.0.1:\(port)", log: directory.path + "/a",
      initial: { canvas.name = "Untitled" },
      credentials: { _ in Credentials(params: ["key": 1]) })
    canvas.shapes.append(Shape())
    #expect(canvas.name == "Untitled" && scope.root === canvas)
    try await client.waitForDownload(of: scope)
    try await client.waitForUpload(of: scope)
    #expect(server.canvas.name == "Untitled" && server.canvas.shapes.count == 1)
    client.close()
    await server.server.stop()
  }
}

@Suite("What a server takes of initial content")
struct InitialContentJudgementTests {
  @Test("Of two sets that meet on the server, the later one counts where the first says nothing")
  func race() throws {
    let world = InMemoryWorld()
    let clients = (0..<2).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    for (at, client) in clients.enumerated() {
      try client.scope.modify(procedure: InitialContent.procedure) {
        client.canvas.shapes = [Shape(), Shape()]
        client.canvas.shapes[0].parts = [Shape()]
        if at == 1 { client.canvas.selected = Shape() }
      }
      // An edit of what may not count.
      client.canvas.shapes[1].x = 7
    }
    world.settle()
    #expect(world.canvas.shapes.count == 2 && world.canvas.selected != nil)
    #expect(world.scope.count == 5, "nothing is left of what did not count")
    for client in clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.engine.pendingCount == 0)
    }
    #expect(clients[0].scope.conflicts.isEmpty && clients[1].scope.conflicts.items.count == 1)
  }

  @Test("A property that was written counts as content, even with its default")
  func written() throws {
    let world = InMemoryWorld()
    let client = world.addClient()
    client.join()
    world.settle()
    world.canvas.likes = 1
    world.scope.flush()
    world.canvas.likes = 0
    world.scope.flush()
    world.settle()
    try client.scope.modify(procedure: InitialContent.procedure) {
      client.canvas.likes = 5
      client.canvas.name = "new"
    }
    world.settle()
    #expect(world.canvas.likes == 0 && world.canvas.name == "new")
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("A rule that ends the session ends the content of it, too")
  func endedByRule() throws {
    let world = InMemoryWorld()
    let client = world.addClient()
    client.join()
    world.settle()
    var rules = ScopeRules()
    // The rule is asked on the thread of the test.
    nonisolated(unsafe) let server = world.server!
    rules.create(Shape.self, "never") { _, _ in
      for session in server.sessions.keys { server.endSession(session, telling: .rejected("Out")) }
      return true
    }
    try #require(world.server.hosts.values.first).order.policy.rules = RuleBook(rules)
    try client.scope.modify(procedure: InitialContent.procedure) {
      client.canvas.shapes = [Shape()]
    }
    client.flush()
    world.deliver(try #require(client.link), toServer: true)
    #expect(world.server.sessionCount == 0 && world.canvas.shapes.isEmpty)
  }

  @Test("A server of version 1 is sent what its state has no content for")
  func oldServer() throws {
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = 1
    let world = InMemoryWorld(configuration: configuration)
    world.canvas.name = "theirs"
    world.scope.flush()
    let client = world.addClient()
    client.join()
    try client.scope.modify(procedure: InitialContent.procedure) {
      client.canvas.name = "mine"
      client.canvas.shapes = [Shape()]
    }
    world.settle()
    #expect(world.canvas.name == "theirs" && world.canvas.shapes.count == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.scope.conflicts.isEmpty && client.engine.pendingCount == 0)
  }
}
