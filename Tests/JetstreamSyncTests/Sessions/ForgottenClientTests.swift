import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A server does not remember for ever what it has decided for clients that never come back.
@Suite("Clients that a server forgets", .paced)
struct ForgottenClientTests {
  private let world: InMemoryWorld
  /// Whether time passes for the clients as it does for the server.
  private var keepsPace = false

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.rememberedClients = 2
    configuration.streamLimit.sets = 8
    world = InMemoryWorld(configuration: configuration)
  }

  private func join(_ policy: HistoryLoss = .recover) -> WorldClient {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = policy
    let client = world.addClient(configuration: configuration)
    client.join()
    world.exchange()
    return client
  }

  /// A client goes, and its session ends, as do those of all who are silent.
  private func leave(_ client: WorldClient) {
    if let link = client.link { world.cut(link) }
    world.server.advance(to: world.now + .seconds(3600))
  }

  /// Others come, change something and go; their sessions go on until somebody lets time pass.
  private func visit(_ count: Int) {
    for number in 0..<count {
      let visitor = RawPeer(world)
      visitor.send(
        #"{"type":"SessionCreate","index":0,"version":"0.1.0","protocol":2,"client":"\#(UUID())","params":{}}"#
      )
      visitor.send(visitor.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
      var sync = ScopeSync(
        scopeIndex: 0,
        fragments: [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["name": .string("visitor \(number)")])
        ])
      sync.number = 1
      visitor.send(visitor.stamp(.scopeSync(sync)))
      world.cut(visitor.link)
      silence()
    }
  }

  /// So much time passes that sessions end of whose clients nothing is heard.
  private func silence() {
    guard keepsPace else { return world.server.advance(to: world.now + .seconds(3600)) }
    for _ in 0..<70 {
      world.advance(by: .seconds(10))
      world.exchange()
    }
  }

  private func losses(_ client: WorldClient) -> Int {
    client.events.count { $0.hasPrefix("historyLost") }
  }

  @Test("What a client knows of its own change sets is not done again")
  func known() {
    let one = join()
    one.engine.setMode(.pushOnly, of: one.scope, now: world.now)
    world.exchange()
    world.canvas.name = "theirs"
    world.scope.flush()
    world.exchange()
    one.canvas.likes += 1
    world.exchange()
    #expect(one.engine.state(of: one.scope)?.decidedCount == 1 && world.canvas.likes == 1)
    leave(one)
    visit(5)
    one.engine.setMode(.realtime, of: one.scope, now: world.now)
    world.settle()
    #expect(world.canvas.likes == 1 && losses(one) == 0)
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("What is still in the stream is not forgotten", arguments: [HistoryLoss.recover, .discard])
  func inTheStream(policy: HistoryLoss) throws {
    world.canvas.shapes.append(Shape())
    let one = join(policy)
    world.canvas.shapes.removeAll()
    world.scope.flush()
    let rejected = one.scope.modify { one.canvas.shapes[0].label = "too late" }
    let accepted = one.scope.modify { one.canvas.likes += 1 }
    let partly = one.scope.modify {
      one.canvas.name = "kept"
      one.canvas.shapes[0].label = "too late again"
    }
    let link = try #require(one.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    leave(one)
    visit(6)
    world.settle()
    #expect(world.canvas.likes == 1 && losses(one) == 0)
    #expect(rejected.state == .rejected && accepted.state == .accepted)
    #expect(rejected.outcomes == [.rejected(.reasonForgotten)])
    #expect(partly.state == .partlyRejected)
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("That is so for one that does not want to be told, too", arguments: [8, 24])
  func notTold(visitors: Int) throws {
    let one = join()
    one.canvas.likes += 1
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    leave(one)
    one.engine.setMode(.manual, of: one.scope, now: world.now)
    visit(visitors)
    one.wantsOnline = false
    for _ in 0..<5 {
      world.advance(by: .seconds(1))
      world.exchange()
    }
    // What is not in the stream any more may have been done, or not.
    #expect(losses(one) == (visitors == 8 ? 0 : 1))
    one.engine.setMode(.realtime, of: one.scope, now: world.now)
    one.wantsOnline = true
    world.settle()
    #expect(world.canvas.likes == (visitors == 8 ? 1 : 2) && one.rejections.isEmpty)
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Nobody has to be forgotten")
  func unlimited() throws {
    var configuration = ServerEngine.Configuration()
    configuration.rememberedClients = .max
    let world = InMemoryWorld(configuration: configuration)
    let client = world.addClient()
    client.join()
    world.settle()
    client.canvas.likes += 1
    world.settle()
    #expect(world.canvas.likes == 1 && world.server.rememberedClients(of: world.scope) == 1)
  }

  @Test(
    "Who does not know what was decided is told, and sends it again or takes it back",
    arguments: [HistoryLoss.recover, .discard])
  func forgotten(policy: HistoryLoss) throws {
    let one = join(policy)
    one.canvas.likes += 1
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    #expect(world.canvas.likes == 1)
    // The reply is lost, and by the time it could be asked for there were too many others.
    leave(one)
    visit(24)
    #expect(world.server.rememberedClients(of: world.scope) == 3)
    world.settle()
    #expect(losses(one) == 1)
    #expect(one.rejections.count == (policy == .discard ? 1 : 0))
    // Nobody can say whether that was done: whoever sends it again takes the risk.
    #expect(world.canvas.likes == (policy == .discard ? 1 : 2))
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test(
    "A client that has never sent anything has lost nothing, however long it was away",
    arguments: [HistoryLoss.recover, .discard])
  func neverSent(policy: HistoryLoss) throws {
    let one = join(policy)
    one.wantsOnline = false
    leave(one)
    one.canvas.likes += 1
    one.flush()
    visit(24)
    one.wantsOnline = true
    world.settle()
    #expect(losses(one) == 0 && one.rejections.isEmpty)
    #expect(world.canvas.likes == 1)
    #expect(one.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Who is not forgotten is not told, nor is one who waits for nothing")
  func remembered() throws {
    let (one, idle) = (join(), join())
    idle.canvas.name = "before"
    world.exchange()
    one.canvas.likes += 1
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    leave(idle)
    leave(one)
    visit(1)
    world.settle()
    #expect(world.canvas.likes == 1 && losses(one) == 0)
    visit(6)
    leave(idle)
    world.settle()
    #expect(losses(idle) == 0)
    #expect(idle.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Whoever has a session is not forgotten, however many others come")
  mutating func present() throws {
    keepsPace = true
    let one = join()
    one.canvas.likes += 1
    world.exchange()
    visit(8)
    one.canvas.likes += 1
    one.flush()
    world.deliver(try #require(one.link), toServer: true)
    // The reply is lost.
    world.cut(try #require(one.link))
    world.settle()
    #expect(losses(one) == 0 && world.canvas.likes == 2)
  }

  @Test("What is forgotten is so after a restart, too")
  func restart() throws {
    visit(6)
    let history = try #require(world.server.history(of: world.scope))
    #expect(history.clients.count == 2 && history.forgottenUpTo > 0)
    let again = InMemoryWorld()
    try again.server.host(again.scope, history: history) { _ in }
    let next = try #require(again.server.history(of: again.scope))
    #expect(next.forgottenUpTo == history.forgottenUpTo && next.clients == history.clients)
  }

  @Test(
    "A scope that the app has not hosted keeps its history while no session has it",
    arguments: [HistoryLoss.recover, .discard])
  func namedScope(policy: HistoryLoss) throws {
    let canvas = Canvas()
    let named = Scope(name: "Canvas", root: canvas, ticker: world.serverTicker)
    world.replaced = named
    let one = join(policy)
    #expect(one.fetchResult != nil && world.server.isHosted(named))
    let positions = world.server.positions.map(\.epoch)
    let set = one.scope.modify { one.canvas.likes += 1 }
    let link = try #require(one.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(canvas.likes == 1)
    leave(one)
    #expect(world.server.sessionCount == 0)
    one.canvas.name = "offline"
    world.settle()
    #expect(canvas.likes == 1 && one.canvas.likes == 1 && canvas.name == "offline")
    #expect(set.state == .accepted && losses(one) == 0)
    #expect(world.server.positions.map(\.epoch) == positions)
  }

  @Test("A scope that only the server holds is let go of with its last session")
  func abandonedScope() {
    weak let named: Scope? = {
      let scope = Scope(name: "Canvas", root: Canvas(), ticker: world.serverTicker)
      world.replaced = scope
      return scope
    }()
    let one = join()
    one.canvas.likes += 1
    world.settle()
    one.engine.close()
    world.replaced = nil
    #expect(named.map(world.server.isHosted) == true)
    leave(one)
    #expect(world.server.sessionCount == 0 && named == nil)
    #expect(world.server.checkInvariants() == [])
  }
}
