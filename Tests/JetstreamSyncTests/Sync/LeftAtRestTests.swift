import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("Scopes that are left while the client rests")
struct LeftAtRestTests {
  private let world = InMemoryWorld()
  private let client: WorldClient

  init() {
    client = world.addClient()
    client.join()
    world.settle()
    client.engine.setMode(.manual, of: client.scope, now: world.now)
    world.exchange()
    #expect(client.engine.status == .resting)
  }

  private var subscriptions: Int {
    world.server.hosts.values.reduce(0) { $0 + $1.audience.subscriptions.count }
  }

  @Test("The server is told when the client connects for another scope")
  func another() {
    let notes = Scope(name: "Notes", root: Canvas(), ticker: world.serverTicker)
    world.moreScopes["Notes"] = notes
    #expect(subscriptions == 1)
    _ = client.engine.leave(client.scope, now: world.now)
    let scope = Scope(name: "Notes", root: Canvas(), ticker: client.ticker)
    client.engine.fetch(scope, params: [:], now: world.now) { _ in }
    world.pass(3)
    #expect(client.engine.status == .online && subscriptions == 1)
    (notes.root as? Canvas)?.name = "heard"
    world.pass(1)
    #expect((scope.root as? Canvas)?.name == "heard" && world.server.sessionCount == 1)
  }

  @Test("The server is told at once if no scope is left for which the client could connect")
  func last() {
    #expect(subscriptions == 1)
    _ = client.engine.leave(client.scope, now: world.now)
    world.pass(3)
    #expect(subscriptions == 0 && world.server.sessionCount == 1)
  }
}
