import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("The author with which a log records a scope")
@MainActor struct LogAuthorTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func canvas(_ scope: Scope) throws -> Canvas { try #require(scope.root as? Canvas) }

  private func record(
    _ scope: Scope, as author: String, _ name: String
  ) async throws -> (log: FragmentLog, token: ObservationToken) {
    let log = try FragmentLog(directory.path + "/" + name)
    try await log.restore(into: scope)
    return (log, log.record(scope, author: author) { Issue.record("\($0)") })
  }

  @Test("Clients of a hosted scope are not told the author with which its app records it")
  func hosted() async throws {
    let (server, scope) = (Server(), Scope(name: "Canvas", root: Canvas()))
    server.host(scope)
    let (log, _) = try await record(scope, as: "archive", "archive")
    let history = UndoHistory(of: scope)
    let client = Client(transport: server.makeTransport())
    let copy = Scope(name: "Canvas", root: Canvas())
    try await client.connect()
    try await client.fetch(copy)
    var authors: [String?] = []
    copy.onRemoteChanges.listen { authors.append($0.author) }
    try canvas(scope).name = "new"
    scope.flush()
    try await client.sync(copy)
    #expect(try canvas(copy).name == "new")
    #expect(history.undo(by: "archive") != nil)
    try await client.sync(copy)
    #expect(try canvas(copy).name == nil)
    #expect(authors == [nil, nil])
    client.close()
    await server.stop()
    try await log.close()
  }

  @Test("What a procedure does for a client is no change of the author of a log")
  func procedure() async throws {
    let world = InMemoryWorld()
    world.procedures["Canvas.name"] = ServedProcedure(
      takesArguments: false, constraints: [Constraint(.change, "Canvas", ["name": .newValue])]
    ) { [unowned world] request in
      do {
        try request.commit { (canvas: Canvas) in canvas.likes += 1 }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
    let (log, _) = try await record(world.scope, as: "archive", "archive")
    let history = UndoHistory(of: world.scope, includingOthers: true)
    let client = world.addClient()
    client.join()
    world.settle()
    try client.scope.modify(procedure: "Canvas.name") { client.canvas.name = "tea" }
    world.settle()
    #expect(world.canvas.name == "tea" && world.canvas.likes == 1)
    #expect(history.canUndo && history.undo(by: "archive") == nil)
    try await log.close()
  }

  @Test(
    "A change drops what the author of the log could redo, whatever other logs record the scope",
    arguments: [false, true])
  func twoLogs(secondEnds: Bool) async throws {
    let scope = Scope(name: "Canvas", root: Canvas())
    let (first, _) = try await record(scope, as: "Ada", "own")
    let history = UndoHistory(of: scope)
    try canvas(scope).likes += 1
    history.undo()
    try await first.close()

    let restored = Scope(name: "Canvas", root: Canvas())
    let (log, _) = try await record(restored, as: "Ada", "own")
    let (copy, token) = try await record(restored, as: "copy", "copy")
    if secondEnds { token.cancel() }
    let rest = try UndoHistory(of: restored, log: log.reader)
    #expect(rest.canRedo)
    try canvas(restored).name = "new"
    restored.flush()
    #expect(!rest.canRedo)
    #expect(try rest.undo(by: "Ada") != nil && canvas(restored).name == nil)
    try await log.close()
    try await copy.close()
  }

  @Test("The authors of two logs are two")
  func namedAuthors() async throws {
    let scope = Scope(name: "Canvas", root: Canvas())
    let (log, _) = try await record(scope, as: "Ada", "own")
    let (copy, _) = try await record(scope, as: "copy", "copy")
    let history = UndoHistory(of: scope)
    let canvas = try canvas(scope)
    scope.modify(author: "copy") { canvas.likes += 1 }
    #expect(history.undo(by: "Ada") == nil && canvas.likes == 1)
    #expect(history.undo(by: "copy") != nil && canvas.likes == 0)
    try await log.close()
    try await copy.close()
  }
}
