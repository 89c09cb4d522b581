import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

/// What a scope sends and takes in, and when.
@Suite("Sync modes", .paced)
struct SyncModeTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let other: WorldClient

  init() {
    client = world.addClient()
    other = world.addClient()
    for client in world.clients { client.join() }
    world.settle()
  }

  private func setMode(_ mode: SyncMode) {
    client.engine.setMode(mode, of: client.scope, now: world.now)
  }

  private var state: SyncState { client.engine.state(of: client.scope)! }

  /// Begins a sync; its result is there when that is over.
  private func sync() -> Outcome {
    let outcome = Outcome()
    outcome.waiter = client.engine.sync(client.scope, now: world.now) { outcome.result = $0 }
    return outcome
  }

  private final class Outcome {
    var result: Result<Void, SyncError>?
    var waiter: Int?
    var isSuccess: Bool { if case .success? = result { true } else { false } }
  }

  private func expectEqual() {
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(other.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.engine.pendingCount == 0 && client.engine.checkInvariants() == [])
  }

  @Test("Push only: what is changed here goes out, what others change stays there")
  func pushOnly() {
    setMode(.pushOnly)
    world.exchange()
    other.canvas.name = "theirs"
    world.exchange()
    client.canvas.likes = 7
    world.exchange()
    #expect(other.canvas.likes == 7 && world.canvas.likes == 7)
    #expect(client.canvas.name == nil && client.canvas.likes == 7)
    // Decided, but behind something that is not here.
    #expect(state.pendingCount == 1 && state.decidedCount == 1 && state.unsentCount == 0)
    setMode(.realtime)
    #expect(!state.isUpToDate, "what others have changed is yet to be asked for")
    world.exchange()
    #expect(state.isUpToDate)
    #expect(client.canvas.name == "theirs" && client.tokens == [nil])
    expectEqual()
  }

  @Test("In push only mode sets are confirmed at once as long as nobody else changes anything")
  func alone() {
    setMode(.pushOnly)
    for number in 1...5 {
      client.canvas.likes = number
      world.exchange()
      #expect(state.pendingCount == 0 && other.canvas.likes == number)
    }
    expectEqual()
  }

  @Test("In push only mode a rejection is told at once")
  func rejection() throws {
    setMode(.pushOnly)
    world.exchange()
    other.canvas.name = "theirs"
    world.exchange()
    try client.scope.modify(procedure: "none") { client.canvas.likes = 5 }
    world.exchange()
    #expect(client.rejections.count == 1 && client.canvas.likes == 0 && state.pendingCount == 0)
    #expect(client.canvas.name == nil)
    setMode(.realtime)
    world.exchange()
    expectEqual()
  }

  @Test("Manual: no traffic until a sync, and after it both sides are equal")
  func manual() {
    setMode(.manual)
    world.exchange()
    #expect(client.engine.status == .resting && client.link == nil)
    let sent = client.sent.count
    client.canvas.name = "mine"
    other.canvas.likes = 3
    world.exchange()
    world.pass(60)
    #expect(client.sent.count == sent && client.canvas.likes == 0 && other.canvas.name == nil)
    #expect(state.pendingCount == 1 && state.unsentCount == 1 && state.mode == .manual)
    let outcome = sync()
    #expect(outcome.result == nil)
    world.exchange()
    #expect(outcome.isSuccess && client.engine.status == .resting)
    #expect(client.tokens.last == "token1", "the session goes on")
    expectEqual()
  }

  @Test("A manual scope outlives its session")
  func expiredSession() {
    setMode(.manual)
    client.canvas.name = "mine"
    world.exchange()
    world.pass(700)
    #expect(world.endedSessions.count == 1)
    other.canvas.likes = 3
    world.exchange()
    // It goes on in a new one.
    let outcome = sync()
    world.exchange()
    #expect(outcome.isSuccess && client.tokens.count == 3)
    expectEqual()
  }

  @Test("A mode that holds back what others change does so too while a new session begins")
  func changedWhileResuming() throws {
    client.link!.serverClose = (4097, "expired")
    world.exchange()
    #expect(client.engine.status == .waiting)
    other.canvas.name = "theirs"
    world.exchange()
    for _ in 0..<5 where client.engine.status == .waiting { world.advance(by: .seconds(1)) }
    // The session is created, and the scope asked for; the answer is on its way.
    let link = try #require(client.link)
    for _ in 0..<5 where client.engine.status != .online {
      world.deliver(link, toServer: false)
      while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    }
    #expect(client.engine.status == .online && !link.toClient.isEmpty)
    setMode(.paused)
    world.exchange()
    #expect(client.canvas.name == nil)
    setMode(.realtime)
    world.exchange()
    expectEqual()
  }

  @Test("What an exchange brings that was given up meanwhile is left out, and comes with the next")
  func givenUp() {
    setMode(.polling(every: .seconds(3)))
    world.exchange()
    other.canvas.name = "theirs"
    world.exchange()
    world.advance(by: .seconds(3))
    let link = client.link!
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(!link.toClient.isEmpty)
    setMode(.paused)
    world.exchange()
    world.pass(10)
    #expect(client.canvas.name == nil && state.mode == .paused)
    let outcome = sync()
    world.exchange()
    #expect(outcome.isSuccess && client.canvas.name == "theirs")
    expectEqual()
  }

  @Test("The server keeps nothing for ever for the sake of a client that does not want to be told")
  func horizon() {
    let shape = Shape()
    world.canvas.shapes.append(shape)
    world.settle()
    setMode(.paused)
    world.settle()
    world.canvas.shapes = []
    world.scope.flush()
    #expect(world.server.departedCount(of: world.scope) == 1)
    for number in 1...9000 {
      world.canvas.likes = number
      world.scope.flush()
      if number.isMultiple(of: 50) { world.exchange() }
    }
    world.pass(12)
    #expect(world.server.departedCount(of: world.scope) == 0)
    setMode(.realtime)
    world.settle()
    expectEqual()
  }

  @Test("A client without a session goes on trying to get one, although no scope needs it")
  func noSession() throws {
    let scope = Scope(name: "Notes", root: Canvas(), ticker: client.ticker)
    world.moreScopes["Notes"] = Scope(name: "Notes", root: Canvas(), ticker: world.serverTicker)
    client.engine.close()
    let root = try #require(scope.root).uuid
    let history = ReplicaHistory(
      client: UUID(), root: root,
      base: ReplicaBase(position: nil, root: root, fragments: scope.fullState()))
    try client.engine.fetch(
      scope, params: [:], mode: .manual, history: history, now: world.now, store: { _ in },
      completion: { _ in })
    client.engine.connect(params: [:], now: world.now)
    world.cut(client.link!)
    #expect(client.engine.status == .waiting)
    world.pass(5)
    #expect(client.engine.status == .resting && client.tokens.last == .some(nil))
  }

  @Test("Paused: the connection stays, and nothing moves")
  func paused() {
    setMode(.paused)
    client.canvas.name = "mine"
    other.canvas.likes = 3
    world.exchange()
    world.pass(60)
    #expect(client.engine.status == .online && client.canvas.likes == 0)
    #expect(other.canvas.name == nil)
    let outcome = sync()
    world.exchange()
    #expect(outcome.isSuccess && client.engine.status == .online)
    expectEqual()
  }

  @Test(
    "Back in realtime, the backlog comes once and in order, and nothing came before")
  func backlog() {
    var seen: [String?] = []
    client.canvas.observeChangeImmediately(client, \.name) { _, _, new in seen.append(new) }
    var told = 0
    let applied = AppliedFragments(to: client.scope) { _ in told += 1 }
    defer { withExtendedLifetime(applied) {} }
    setMode(.manual)
    for number in 0..<5 {
      other.canvas.name = "\(number)"
      other.canvas.shapes.append(Shape())
      world.exchange()
      world.pass(5)
    }
    #expect(seen.isEmpty && told == 0)
    setMode(.realtime)
    world.exchange()
    #expect(seen.last == "4" && seen.count == Set(seen).count)
    #expect(client.canvas.shapes.count == 5)
    expectEqual()
  }

  @Test("What is on its way when the mode changes is not shown, and is not lost")
  func inFlight() {
    other.canvas.name = "theirs"
    other.flush()
    world.deliver(other.link!, toServer: true)
    #expect(!client.link!.toClient.isEmpty)
    setMode(.paused)
    world.exchange()
    #expect(client.canvas.name == nil)
    // To and fro, before the server has heard of it.
    setMode(.realtime)
    setMode(.paused)
    setMode(.realtime)
    world.exchange()
    #expect(client.canvas.name == "theirs")
    expectEqual()
  }

  @Test("Polling: what others change appears with the next round")
  func polling() {
    setMode(.polling(every: .seconds(30)))
    world.exchange()
    #expect(client.engine.status == .resting)
    other.canvas.name = "theirs"
    client.canvas.likes = 2
    world.exchange()
    world.pass(29)
    #expect(client.canvas.name == nil && other.canvas.likes == 0)
    world.pass(1)
    #expect(client.canvas.name == "theirs" && other.canvas.likes == 2)
    #expect(client.engine.status == .resting)
    other.canvas.name = "again"
    world.exchange()
    world.pass(30)
    #expect(client.canvas.name == "again")
    expectEqual()
  }

  @Test("Polling often keeps the connection")
  func pollingOften() {
    setMode(.polling(every: .seconds(3)))
    world.exchange()
    #expect(client.engine.status == .online)
    other.canvas.name = "theirs"
    world.exchange()
    #expect(client.canvas.name == nil)
    world.pass(3)
    #expect(client.canvas.name == "theirs" && client.tokens == [nil])
  }

  @Test("A sync in realtime brings what the server has by then")
  func realtimeSync() {
    other.canvas.name = "theirs"
    other.flush()
    world.deliver(other.link!, toServer: true)
    let outcome = sync()
    #expect(outcome.result == nil)
    world.exchange()
    #expect(outcome.isSuccess && client.canvas.name == "theirs")
    expectEqual()
  }

  @Test("A sync without a connection fails, says why, and leaves what is pending")
  func failingSync() {
    setMode(.manual)
    world.exchange()
    client.canvas.name = "mine"
    client.flush()
    let outcome = sync()
    world.cut(client.link!)
    #expect(outcome.result?.failure == .connectionFailed(reason: "cut"))
    #expect(client.engine.status == .resting && state.pendingCount == 1)
    let again = sync()
    world.exchange()
    #expect(again.isSuccess)
    expectEqual()
  }

  @Test("Who stops waiting leaves what was not sent pending")
  func cancelled() {
    setMode(.manual)
    world.exchange()
    client.canvas.name = "mine"
    client.flush()
    let outcome = sync()
    client.engine.cancelSync(outcome.waiter!, now: world.now)
    world.exchange()
    #expect(outcome.result?.failure == .cancelled)
    #expect(state.pendingCount == 1 && world.canvas.name == nil)
    #expect(client.engine.status == .resting)
  }

  @Test("What was missed may be more than the server remembers")
  func forgotten() {
    setMode(.pushOnly)
    world.exchange()
    for number in 1...9000 {
      world.canvas.likes = number
      world.scope.flush()
    }
    client.canvas.name = "mine"
    world.exchange()
    #expect(world.canvas.name == "mine" && client.canvas.likes == 0)
    #expect(state.decidedCount == 1)
    setMode(.realtime)
    world.exchange()
    #expect(client.canvas.likes == 9000 && world.endedSessions.isEmpty)
    expectEqual()
  }

  @Test(
    "A sync that begins while the modes change asks for what was missed when all is sent, and ends")
  func hasty() {
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow.messages = 1
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    func setMode(_ mode: SyncMode) {
      client.engine.setMode(mode, of: client.scope, now: world.now)
    }
    setMode(.paused)
    setMode(.realtime)
    // The server is asked for everything, and has not answered.
    while !client.link!.toServer.isEmpty { world.deliver(client.link!, toServer: true) }
    world.deliver(client.link!, toServer: false)
    #expect(!client.link!.toServer.isEmpty)
    setMode(.paused)
    for number in 1...3 {
      client.canvas.likes = number
      client.scope.flush()
      other.canvas.shapes.append(Shape())
      other.flush()
    }
    let outcome = Outcome()
    client.engine.sync(client.scope, now: world.now) { outcome.result = $0 }
    world.exchange()
    #expect(outcome.isSuccess && client.engine.pendingCount == 0)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("More sets than may be on their way at one time go out one batch after the other")
  func batches() {
    var configuration = ClientEngine.Configuration()
    configuration.limits.sendWindow.messages = 4
    let client = world.addClient(configuration: configuration)
    client.join()
    world.settle()
    client.engine.setMode(.pushOnly, of: client.scope, now: world.now)
    world.exchange()
    other.canvas.name = "theirs"
    world.exchange()
    for _ in 0..<50 {
      client.canvas.shapes.append(Shape())
      client.scope.flush()
    }
    #expect(client.engine.state(of: client.scope)?.unsentCount == 46)
    world.exchange()
    #expect(world.canvas.shapes.count == 50)
    #expect(client.engine.state(of: client.scope)?.decidedCount == 50)
    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.exchange()
    #expect(client.engine.pendingCount == 0)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
