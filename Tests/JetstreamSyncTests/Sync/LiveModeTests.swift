import Dispatch
import JetstreamServer
import Testing

@testable import Jetstream

@Suite("Sync modes over real sockets", .live, .timeLimit(.minutes(5)))
@MainActor
struct LiveModeTests {
  private final class App {
    var answer = SyncPermission.granted
  }

  @Test("Two manual scopes move with a sync, one at a time or all at once")
  func manual() async throws {
    let (drawing, notes) = (Canvas(), Canvas())
    let server = Server()
    server.host(Scope(name: "Canvas", root: drawing))
    server.host(Scope(name: "Notes", root: notes))
    let port = try await server.listen()
    let client = Client(url: "ws://127.0.0.1:\(port)")
    try await client.connect()
    let canvas = Scope(name: "Canvas", root: Canvas())
    let other = Scope(name: "Notes", root: Canvas())
    try await client.fetch(canvas, mode: .manual)
    try await client.fetch(other, mode: .manual)
    #expect(client.status == .resting && client.mode(of: canvas) == .manual)

    (canvas.root as? Canvas)?.name = "mine"
    (other.root as? Canvas)?.name = "mine too"
    drawing.likes = 4
    notes.likes = 5
    try await client.sync(canvas)
    #expect(drawing.name == "mine" && (canvas.root as? Canvas)?.likes == 4)
    #expect(notes.name == nil && (other.root as? Canvas)?.likes == 0)
    try await client.sync()
    #expect(notes.name == "mine too" && (other.root as? Canvas)?.likes == 5)
    #expect(client.status == .resting && client.pendingCount == 0)

    try client.setMode(.realtime, of: canvas)
    let second = try await Participant(port: port)
    second.canvas.likes = 9
    let seen = try #require(canvas.root as? Canvas)
    await second.observe(seen, until: { $0.likes == 9 })
    client.close()
    await #expect(throws: SyncError.notConnected) { try await client.sync(canvas) }
    await server.stop()
  }

  @Test("What a sync does first, it does on the actor of the client")
  func staysOnActor() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    let port = try await server.listen()
    let client = Client(url: "ws://127.0.0.1:\(port)")
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    try await client.connect()
    try await client.fetch(scope, mode: .manual)
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    #expect(DispatchQueue.getSpecific(key: key) == true)
    final class Seen { var isOnActor: [Bool?] = [] }
    let seen = Seen()
    scope.pendingChangeSets.onAdd.listen { _ in
      seen.isOnActor.append(DispatchQueue.getSpecific(key: key))
    }
    for number in 1...3 {
      canvas.likes = number
      try await client.sync(scope)
      canvas.likes += 10
      try await client.sync()
    }
    #expect(seen.isOnActor == [true, true, true, true, true, true])
    DispatchQueue.main.setSpecific(key: key, value: nil)
    client.close()
    await server.stop()
  }

  @Test("In push only mode, all is uploaded when the server has decided it")
  func pushOnly() async throws {
    let drawing = Canvas()
    let server = Server()
    server.host(Scope(name: "Canvas", root: drawing))
    let port = try await server.listen()
    let one = try await Participant(port: port)
    let two = try await Participant(port: port)
    try one.client.setMode(.pushOnly, of: one.scope)
    two.canvas.name = "theirs"
    try await two.client.waitForUpload(of: two.scope)
    one.canvas.likes = 3
    try await one.client.waitForUpload(of: one.scope)
    #expect(drawing.likes == 3 && one.canvas.name == nil)
    #expect(one.client.syncState(of: one.scope)?.decidedCount == 1)
    try await one.client.sync(one.scope)
    #expect(one.canvas.name == "theirs" && one.client.pendingCount == 0)
    await server.stop()
  }

  @Test("The time for which permission is refused begins when the app is asked")
  func refusedForAWhile() async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    let one = try await Participant(Client(transport: server.makeTransport()))
    one.client.permission = { _ in .later(.seconds(1000)) }
    let asked = one.client.ticker.now
    one.scope.modify { one.canvas.likes = 3 }
    let until = try #require(one.client.engine.deferral?.until)
    #expect(until >= asked + .seconds(1000))
    one.client.close()
    await server.stop()
  }

  @Test(
    "A cancelled task stops waiting; a sync without a server fails", arguments: [false, true])
  func cancelled(all: Bool) async throws {
    let server = Server()
    server.host(Scope(name: "Canvas", root: Canvas()))
    let port = try await server.listen()
    let one = try await Participant(port: port)
    let app = App()
    one.client.permission = { _ in app.answer }
    app.answer = .denied
    try one.client.setMode(.manual, of: one.scope)
    one.canvas.likes = 3
    // It waits for a scope that holds back what comes in.
    one.scope.pauseIncoming()
    let task = Task { () -> SyncError? in
      do throws(SyncError) {
        if all { try await one.client.sync() } else { try await one.client.sync(one.scope) }
        return nil
      } catch {
        return error
      }
    }
    await Task.yield()
    task.cancel()
    #expect(await task.value == .cancelled)
    one.scope.resumeIncoming()
    await server.stop()
    await #expect(throws: SyncError.self) {
      if all { try await one.client.sync() } else { try await one.client.sync(one.scope) }
    }
    #expect(one.canvas.likes == 3)
  }
}
