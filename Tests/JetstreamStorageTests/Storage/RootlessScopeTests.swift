import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Pacing
import Testing

/// Scopes without a root have no state with which a history could begin or from which one could go on.
@Suite("Histories of scopes without a root", .live, .timeLimit(.minutes(3)))
@MainActor
struct RootlessScopeTests {
  private let files = try! TemporaryDirectory()

  @Test(
    "A scope without a root is not hosted with a log, and leaves the log empty for one that has a root"
  )
  func hosted() async throws {
    let server = Server()
    let log = try FragmentLog(files.path)
    let scope = Scope(name: "A")
    await #expect(throws: ScopeError.self) { try await server.host(scope, log: log) }
    #expect(try LogReader(files.path).snapshot() == nil)
    let canvas = Canvas()
    scope.root = canvas
    try await server.host(scope, log: log)
    canvas.likes = 3
    try await server.remove(scope)
    let copy = Canvas()
    try await server.host(Scope(name: "A", root: copy), log: FragmentLog(files.path))
    #expect(copy.likes == 3)
    await server.stop()
  }

  @Test("A scope that is opened on demand without a root is refused, and is new the next time")
  func opened() async throws {
    var new: [Bool] = []
    var notes: [String] = []
    var root: Canvas?
    func makeServer() throws -> Server {
      let server = Server()
      server.openScopes(in: try ScopeDirectory(files.path)) { request in
        new.append(request.isNew)
        return .models(Scope(name: request.name, root: root))
      }
      return server
    }
    let server = try makeServer()
    let token = server.onDiagnostic.listen { notes.append($0.text()) }
    let client = Client(transport: server.makeTransport())
    try await client.connect()
    let fetching = Task { try await client.fetch(Scope(name: "A", root: Canvas())) }
    try await wait { notes.contains { $0.contains("opened") } }
    #expect(notes.contains { $0.contains("could not be opened") && $0.contains("has no root") })
    client.close()
    _ = await fetching.result
    await server.stop()
    token.cancel()
    for likes in 1...2 {
      root = Canvas()
      let next = try makeServer()
      let client = Client(transport: next.makeTransport())
      let copy = Canvas()
      let scope = Scope(name: "A", root: copy)
      try await client.connect()
      try await client.fetch(scope)
      copy.likes += 1
      try await client.sync(scope)
      #expect(copy.likes == likes)
      client.close()
      await next.stop()
    }
    #expect(new == [true, true, false])
  }

  @Test("There is no snapshot of a hosted scope while its root is taken off")
  func takenOff() throws {
    let hooks = ServerEngine.Hooks(
      fetch: { _, _, _ in .failure(.notThere("There is no other scope")) }, makeToken: { "" },
      random: { 0.5 })
    let engine = ServerEngine(configuration: .init(), hooks: hooks) { _ in }
    let scope = Scope(name: "A", root: Canvas(), ticker: .manual())
    try engine.host(scope, history: nil) { _ in }
    #expect(engine.history(of: scope)?.state.isEmpty == false)
    let root = scope.root
    scope.root = nil
    var isPrepared = false
    engine.prepareHistory(of: scope) { isPrepared = true }
    #expect(isPrepared && engine.history(of: scope) == nil)
    scope.root = root
    #expect(engine.history(of: scope)?.state.isEmpty == false)
  }

  /// Makes the log of a scope that was hosted without a root, as older servers did, with a decision on a change set.
  private func rootlessLog(_ path: String) async throws -> ServerLog {
    let log = try ServerLog(path)
    try await log.snapshot(ScopeHistory(epoch: "empty", state: []))
    let decision = ScopeRecord.Decision(
      client: UUID(), number: 1, checksum: 1,
      fragmentReplies: [FragmentReply(error: .rejected("no"))])
    try await log.append(ScopeRecord(sequence: nil, fragments: [], decision: decision)).durable()
    return log
  }

  @Test("A history that was begun without a root, and has no change set, counts as new")
  func begunBefore() async throws {
    let log = try await rootlessLog(files.path)
    #expect(try log.history() == nil)
    let server = Server()
    let canvas = Canvas()
    canvas.likes = 3
    let scope = Scope(name: "A", root: canvas)
    try await server.host(scope, log: FragmentLog(log.records))
    canvas.likes = 4
    try await server.remove(scope)
    let copy = Canvas()
    try await server.host(Scope(name: "A", root: copy), log: FragmentLog(files.path))
    #expect(copy.likes == 4)
    await server.stop()
  }

  @Test("A scope that is opened on demand is new while its history has no root and no change set")
  func openedBefore() async throws {
    let log = try await rootlessLog(files.path + "/scopes/a")
    try await log.records.close()
    var new: [Bool] = []
    for likes in 3...4 {
      let server = Server()
      server.openScopes(in: try ScopeDirectory(files.path)) { request in
        new.append(request.isNew)
        let canvas = Canvas()
        if request.isNew { canvas.likes = 3 }
        return .models(Scope(name: request.name, root: canvas))
      }
      let client = Client(transport: server.makeTransport())
      let copy = Canvas()
      let scope = Scope(name: "a", root: copy)
      try await client.connect()
      try await client.fetch(scope)
      #expect(copy.likes == likes)
      copy.likes += 1
      try await client.sync(scope)
      client.close()
      await server.stop()
    }
    #expect(new == [true, false])
  }

  @Test("A scope of a directory whose history has change sets and no root is not new")
  func openedWithChanges() async throws {
    let log = try await rootlessLog(files.path + "/scopes/a")
    let change = SyncFragment(
      .change, uuid: UUID(), className: "Canvas", properties: ["likes": 1])
    try await log.append(ScopeRecord(sequence: 1, fragments: [change])).durable()
    try await log.records.close()
    #expect(try await ScopeDirectory(files.path).find("a").isNew == false)
  }

  @Test("A history without a state that has change sets is left as it is")
  func lostState() async throws {
    let log = try ServerLog(files.path)
    try await log.snapshot(ScopeHistory(epoch: "empty", state: []))
    let change = SyncFragment(
      .change, uuid: UUID(), className: "Canvas", properties: ["likes": 1])
    try await log.append(ScopeRecord(sequence: 1, fragments: [change])).durable()
    #expect(try log.history()?.records.count == 1)
    let server = Server()
    let scope = Scope(name: "A", root: Canvas())
    await #expect(throws: ScopeError.self) {
      try await server.host(scope, log: FragmentLog(log.records))
    }
    #expect(log.records.lastSequence == 1)
    try await log.records.close()
    await server.stop()
  }
}
