import Jetstream
import JetstreamServer
import Testing

/// An app that says when the network may be used, and a server that says when to come back.
@Suite("Scheduling", .paced)
struct ScheduleTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let app = App()

  private final class App {
    var answer = SyncPermission.granted
    var asked: [SyncActivity] = []
  }

  init() {
    var configuration = ClientEngine.Configuration()
    configuration.permission = { [app] activity in
      app.asked.append(activity)
      return app.answer
    }
    client = world.addClient(configuration: configuration)
  }

  private var state: SyncState { client.engine.state(of: client.scope)! }

  @Test("What was changed in an hour without permission is sent when there is one")
  func denied() {
    client.join()
    world.settle()
    #expect(app.asked == [.connecting])
    app.answer = .denied
    for number in 1...60 {
      client.canvas.likes = number
      client.canvas.shapes.append(Shape())
      world.exchange()
      world.pass(60)
    }
    #expect(app.asked.count == 2, "nobody is asked again before the app says so")
    #expect(world.canvas.likes == 0 && state.pendingCount == 60 && state.unsentCount == 60)
    #expect(state.stall == .deferred)
    app.answer = .granted
    client.engine.reconsider(now: world.now)
    world.exchange()
    #expect(world.canvas.likes == 60 && world.canvas.shapes.count == 60)
    #expect(state.pendingCount == 0 && state.stall == nil)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("What may be done later is done then")
  func later() {
    client.join()
    world.settle()
    app.answer = .later(.seconds(30))
    client.canvas.likes = 1
    world.exchange()
    world.pass(29)
    #expect(world.canvas.likes == 0 && state.stall == .deferred)
    app.answer = .granted
    world.pass(1)
    #expect(world.canvas.likes == 1 && state.stall == nil)
    #expect(app.asked == [.connecting, .sending(1), .sending(1)])
  }

  @Test("Without permission there is no connection")
  func noConnection() {
    app.answer = .denied
    client.join()
    world.pass(60)
    #expect(client.tokens.isEmpty && client.engine.status == .waiting && state.stall == .deferred)
    app.answer = .granted
    client.engine.reconsider(now: world.now)
    world.settle()
    #expect(client.engine.status == .online)
  }

  @Test("A sync that somebody asks for needs no permission, one that is due does")
  func forced() {
    client.join()
    world.settle()
    app.answer = .denied
    client.engine.setMode(.polling(every: .seconds(20)), of: client.scope, now: world.now)
    world.canvas.name = "theirs"
    client.canvas.likes = 1
    world.exchange()
    world.pass(60)
    #expect(client.canvas.name == nil && world.canvas.likes == 0)
    #expect(app.asked.contains(.polling))
    var isDone = false
    client.engine.sync(client.scope, now: world.now) { if case .success = $0 { isDone = true } }
    world.exchange()
    #expect(isDone && client.canvas.name == "theirs" && world.canvas.likes == 1)
  }

  @Test("A poll that may not be now is asked for again when the app says so, or after its time")
  func refusedPoll() {
    client.join()
    world.settle()
    client.engine.setMode(.polling(every: .seconds(3600)), of: client.scope, now: world.now)
    world.canvas.name = "theirs"
    world.exchange()
    app.answer = .later(.seconds(30))
    world.pass(3600)
    #expect(client.canvas.name == nil)
    app.answer = .granted
    world.pass(40)
    #expect(client.canvas.name == "theirs")
    world.canvas.name = "again"
    world.exchange()
    app.answer = .denied
    world.pass(3700)
    #expect(client.canvas.name == "theirs")
    app.answer = .granted
    client.engine.reconsider(now: world.now)
    world.exchange()
    #expect(client.canvas.name == "again")
  }

  @Test(
    "Who refuses the connection itself, such as a proxy, is not asked before it has said",
    arguments: [5, 30])
  func refusedConnection(seconds: Int) throws {
    client.join()
    let link = try #require(client.link)
    client.engine.closed(
      link.number, code: 0, reason: "busy", retryAfter: .seconds(seconds), now: world.now)
    let attempts = client.tokens.count
    #expect(client.engine.status == .waiting)
    world.pass(seconds)
    #expect(client.tokens.count == attempts)
    world.pass(max(1, seconds / 10))
    #expect(client.tokens.count == attempts + 1 && client.engine.status == .online)
  }

  @Test("A server that wants other credentials, but later, is not asked before")
  func otherCredentialsLater() {
    var configuration = ClientEngine.Configuration()
    configuration.hasCredentials = true
    let client = world.addClient(configuration: configuration)
    world.authenticate = { _ in
      .denied(WireError(message: "who?", type: "not-you", retryAfter: .seconds(30)))
    }
    client.join()
    world.exchange()
    world.authenticate = { _ in .accepted() }
    let attempts = client.tokens.count
    world.pass(30)
    #expect(client.tokens.count == attempts && client.engine.status == .waiting)
    world.pass(3)
    #expect(client.tokens.count == attempts + 1 && client.engine.status == .online)
  }

  @Test("A server that says when to come back is not asked before", arguments: [true, false])
  func retryAfter(hasSession: Bool) throws {
    let busy = WireError(message: "busy", type: "busy", retryAfter: .seconds(30))
    if hasSession {
      client.join()
      world.settle()
      let link = try #require(client.link)
      link.serverClose = (4096, busy.json.text)
      world.exchange()
    } else {
      world.authenticate = { _ in .denied(busy) }
      client.join()
      world.exchange()
      world.authenticate = { _ in .accepted() }
    }
    let attempts = client.tokens.count
    #expect(client.engine.status == .waiting)
    if case .connectionLost(let reason)? = state.stall { #expect(reason == "busy") }
    world.pass(30)
    #expect(client.tokens.count == attempts)
    world.pass(3)
    #expect(client.tokens.count == attempts + 1 && client.engine.status == .online)
    #expect(client.fetchResult.map { if case .success = $0 { true } else { false } } == true)
  }
}
