import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client that has missed more than the full state gets the full state, although the stream has what it has missed.
@Suite("Clients for which the full state is less than what they have missed", .paced)
struct LapseTests {
  private static let kilobyte = 1 << 10

  private let world: InMemoryWorld
  private let reader: WorldClient

  /// - Parameters:
  ///   - window: the number of change sets that a client is sent before it acknowledges them.
  ///   - sets: the number of change sets that the stream keeps.
  ///   - held: the number of messages that the client keeps while its app pauses incoming changes.
  private init(window: Int = 10_000, sets: Int = 4096, version: Int = 2, held: Int = 1000) {
    var configuration = ServerEngine.Configuration()
    configuration.window.sets = window
    configuration.streamLimit.sets = sets
    world = InMemoryWorld(configuration: configuration)
    var quick = ClientEngine.Configuration()
    quick.limits.acknowledgeAfter.messages = 4
    quick.limits.pausedLimit.messages = held
    quick.highestVersion = version
    reader = world.addClient(configuration: quick)
  }

  init() { self.init(window: 10_000) }

  private func join() {
    reader.join()
    world.settle()
    // Each connection's first ping acknowledges what came.
    world.pass(11)
    reader.heard = []
  }

  /// Changes so much that the state is measured, which is when there is something to keep.
  private func haveStateMeasured() throws {
    addAndRemove(10)
    world.settle()
    let host = try #require(world.server.hosts.values.first)
    #expect(host.order.stream.bytesWorthState != nil)
    reader.heard = []
  }

  private static func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }

  /// The app adds shapes of 10 KB and removes them again: no change set replaces another one, and nothing is left.
  private func addAndRemove(_ count: Int) {
    for number in 1...count {
      let shape = Shape()
      shape.label = Self.text(10 * Self.kilobyte)
      world.canvas.shapes.append(shape)
      world.scope.flush()
      world.canvas.shapes.remove(shape)
      world.canvas.name = "\(number)"
      world.scope.flush()
    }
  }

  private func goOffline(endsSession: Bool) throws {
    world.cut(try #require(reader.link))
    reader.wantsOnline = false
    if endsSession { world.server.advance(to: world.now + .seconds(3600)) }
  }

  private func comeBack() {
    reader.wantsOnline = true
    world.settle()
  }

  /// The number of full states that came.
  private var states: Int {
    reader.heard.count {
      if case .scopeState(let state) = $0 { state.more != true } else { false }
    }
  }

  private var syncs: [ScopeSync] {
    reader.heard.compactMap { if case .scopeSync(let sync) = $0 { sync } else { nil } }
  }

  /// The size of all that came.
  private var bytesHeard: Int { reader.heard.reduce(0) { $0 + $1.roughSize } }

  private func expectAgreement() {
    world.settle()
    #expect(reader.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(reader.engine.pendingCount == 0 && reader.engine.checkInvariants() == [])
    #expect(world.server.checkInvariants() == [])
    // It is told what follows.
    let count = states
    world.canvas.likes += 100
    world.settle()
    #expect(reader.canvas.likes == world.canvas.likes && states == count)
  }

  @Test(
    "One that comes back is told the state once, and its observers hear of one change",
    arguments: [false, true])
  func comesBack(endsSession: Bool) throws {
    join()
    var told: [String?] = []
    let canvas = reader.canvas
    canvas.observeChange(\.name, isolation: Ticker.manual().isolation) { told.append(canvas.name) }
    try goOffline(endsSession: endsSession)
    addAndRemove(20)
    // The stream has all of it.
    #expect(try #require(world.server.streamBytes(of: world.scope)) > 200 * Self.kilobyte)
    comeBack()
    #expect(states == 1 && bytesHeard < 5 * Self.kilobyte)
    #expect(told == ["20"])
    #expect(reader.tokens == (endsSession ? [nil, "token1", nil] : [nil, "token1"]))
    expectAgreement()
  }

  @Test(
    "What is overwritten 100 times, 1 MiB each, is told at most twice to one that comes back",
    arguments: [false, true])
  func overwritten(endsSession: Bool) throws {
    join()
    try goOffline(endsSession: endsSession)
    for number in 1...100 {
      world.canvas.name = "\(number) " + Self.text(1 << 20)
      world.scope.flush()
    }
    #expect(try #require(world.server.streamBytes(of: world.scope)) <= 5 << 20)
    comeBack()
    #expect(bytesHeard < 2 << 20 + 64 * Self.kilobyte)
    expectAgreement()
  }

  @Test("One that has missed little of a large scope is told the change sets")
  func largeScope() throws {
    let shape = Shape()
    shape.label = Self.text(1 << 20)
    world.canvas.shapes.append(shape)
    join()
    try haveStateMeasured()
    try goOffline(endsSession: true)
    addAndRemove(40)
    comeBack()
    #expect(states == 0 && syncs.count == 80)
    expectAgreement()
  }

  @Test("One that has missed a few changes of a small scope is told the change sets")
  func little() throws {
    join()
    try haveStateMeasured()
    try goOffline(endsSession: true)
    addAndRemove(6)
    comeBack()
    #expect(states == 0 && syncs.count == 12)
    expectAgreement()
  }

  @Test("Values that later ones replace do not count")
  func replaced() throws {
    let shape = Shape()
    shape.label = Self.text(200 * Self.kilobyte)
    world.canvas.shapes.append(shape)
    join()
    try haveStateMeasured()
    try goOffline(endsSession: true)
    for number in 1...45 {
      world.canvas.name = "\(number) " + Self.text(10 * Self.kilobyte)
      world.scope.flush()
    }
    let host = try #require(world.server.hosts.values.first)
    #expect(host.order.stream.bytesWorthState.map { $0 < 450 * Self.kilobyte } == true)
    comeBack()
    #expect(states == 0 && syncs.count == 45 && bytesHeard < 100 * Self.kilobyte)
    expectAgreement()
  }

  @Test("One that is slow is told the state in its session, and every reply to its own change sets")
  func slow() throws {
    let test = LapseTests(window: 8)
    try test.lapsesInItsSession()
  }

  private func lapsesInItsSession() throws {
    join()
    var handles: [ChangeSetHandle] = []
    let link = try #require(reader.link)
    for _ in 1...6 {
      addAndRemove(5)
      handles.append(reader.scope.modify { reader.canvas.likes += 1 })
      reader.flush()
      while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    }
    #expect(world.canvas.likes == 6 && reader.engine.pendingCount == 6)
    world.settle()
    #expect(states == 1 && bytesHeard < 150 * Self.kilobyte && world.now < .seconds(20))
    #expect(handles.allSatisfy { $0.state == .accepted } && reader.rejections.isEmpty)
    #expect(reader.canvas.likes == 6 && reader.tokens == [nil] && world.endedSessions.isEmpty)
    expectAgreement()
  }

  @Test("One that is slow, but not far behind, is told the change sets in its session")
  func slowButNear() throws {
    let test = LapseTests(window: 8)
    test.join()
    try test.haveStateMeasured()
    test.addAndRemove(7)
    test.expectAgreement()
    #expect(test.states == 0 && test.syncs.count >= 14)
  }

  @Test("One that is slow can name what was removed after the last that it has acknowledged")
  func removed() throws {
    let test = LapseTests(window: 8, sets: 6)
    try test.namesRemoved()
  }

  private func namesRemoved() throws {
    let shape = Shape()
    world.canvas.shapes.append(shape)
    join()
    let (link, mine) = (try #require(reader.link), reader.canvas.shapes[0])
    let host = try #require(world.server.hosts.values.first)
    world.canvas.shapes.remove(shape)
    world.scope.flush()
    let removal = host.sequence
    for number in 1...13 {
      world.canvas.name = "\(number)"
      world.scope.flush()
    }
    // The stream goes on from what the client was sent, but not from what it has acknowledged.
    let subscription = try #require(host.audience.subscriptions.values.first)
    let start = try #require(host.order.stream.start)
    #expect(subscription.isBehind && removal <= start && start <= subscription.told)
    world.server.advance(to: world.now + .seconds(1))
    let handle = reader.scope.modify { reader.canvas.selected = mine }
    reader.flush()
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    expectAgreement()
    #expect(handle.state == .accepted && world.canvas.selected?.uuid == mine.uuid && states == 0)
  }

  /// The outcome for a client whose change sets meet those of others that it has missed.
  private struct Outcome: Equatable {
    var conflicts: [String] = []
    var rejections = 0
    var states: [String] = []
    var canvas = ""
  }

  /// Lets a client come back that has written something before it lost its connection, and something since.
  private func meetOthers() throws -> Outcome {
    let shapes = [Shape(), Shape()]
    for (number, shape) in shapes.enumerated() { shape.label = "\(number)" }
    world.canvas.shapes.append(contentsOf: shapes)
    join()
    // Accepted, but the reply is lost.
    let accepted = reader.scope.modify {
      reader.canvas.name = "mine"
      reader.canvas.likes += 1
    }
    reader.flush()
    let link = try #require(reader.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(world.canvas.name == "mine")
    try goOffline(endsSession: true)
    let (first, second) = (reader.canvas.shapes[0], reader.canvas.shapes[1])
    let late = reader.scope.modify { first.label = "late" }
    let pending = reader.scope.modify { second.x = 7 }
    reader.flush()
    world.canvas.shapes.remove(shapes[0])
    shapes[1].x = 3
    addAndRemove(20)
    comeBack()
    #expect(states == 1)
    expectAgreement()
    return Outcome(
      conflicts: reader.scope.conflicts.items.map {
        // A rejection has the UUID of a model that differs.
        let reason = $0.reason == .overwritten ? "overwritten" : "rejected"
        return "\(reason) \($0.property ?? ""): \($0.mine)"
      }.sorted(),
      rejections: reader.rejections.count,
      states: [accepted, late, pending].map { "\($0.state)" },
      canvas: "\(reader.canvas.name ?? "") \(reader.canvas.likes) \(reader.canvas.shapes.map(\.x))")
  }

  @Test("Its pending change sets meet those of others as if the stream did not reach back")
  func pendingChangeSets() throws {
    let chosen = try meetOthers()
    let forced = try LapseTests(sets: 1).meetOthers()
    #expect(chosen == forced)
    #expect(chosen.states == ["accepted", "rejected", "accepted"])
    #expect(chosen.conflicts.count == 2 && chosen.rejections == 1)
    #expect(chosen.conflicts.first == #"overwritten name: value("mine")"#)
    #expect(chosen.canvas == "20 101 [7.0]")
  }

  @Test("One that has only sent for a while is told the state when it takes in again")
  func pushOnly() throws {
    join()
    reader.engine.setMode(.pushOnly, of: reader.scope, now: world.now)
    world.settle()
    addAndRemove(20)
    reader.canvas.likes += 1
    world.exchange()
    #expect(world.canvas.likes == 1 && states == 0 && reader.canvas.name == nil)
    reader.engine.setMode(.realtime, of: reader.scope, now: world.now)
    world.settle()
    #expect(states == 1 && bytesHeard < 10 * Self.kilobyte && reader.canvas.likes == 1)
    expectAgreement()
  }

  @Test("One that syncs when it is told to gets the state, and nothing behind it")
  func manual() throws {
    join()
    reader.engine.setMode(.manual, of: reader.scope, now: world.now)
    // Nothing is to be sent, so that it does without a connection.
    reader.wantsOnline = false
    world.settle()
    addAndRemove(20)
    var result: Result<Void, SyncError>?
    reader.engine.sync(reader.scope, now: world.now) { result = $0 }
    world.exchange()
    try #require(result).get()
    #expect(states == 1 && reader.canvas.name == "20")
    addAndRemove(1)
    world.exchange()
    #expect(states == 1 && reader.canvas.name == "20")
    reader.engine.setMode(.realtime, of: reader.scope, now: world.now)
    reader.wantsOnline = true
    expectAgreement()
  }

  @Test("One that pauses is told the state when it has dropped what came meanwhile")
  func paused() throws {
    let test = LapseTests(held: 10)
    try test.pauses()
  }

  private func pauses() throws {
    join()
    reader.scope.pauseIncoming()
    reader.canvas.likes += 1
    addAndRemove(20)
    world.pass(11)
    #expect(reader.canvas.name == nil && world.canvas.likes == 1 && states == 0)
    reader.scope.resumeIncoming()
    world.settle()
    #expect(states == 1 && reader.canvas.name == "20" && reader.rejections.isEmpty)
    expectAgreement()
  }

  @Test("A client of version 1 goes on with its session unless it was away for long")
  func oldClient() throws {
    let test = LapseTests(version: 1)
    test.join()
    // Change sets that it does not miss leave only as much of the stream as a small scope keeps.
    test.addAndRemove(100)
    test.world.settle()
    #expect(try #require(test.world.server.streamBytes(of: test.world.scope)) < 600 * Self.kilobyte)
    for (count, goesOn) in [(8, true), (20, false)] {
      test.reader.heard = []
      let tokens = test.reader.tokens.count
      try test.goOffline(endsSession: false)
      test.addAndRemove(count)
      test.comeBack()
      #expect(test.world.endedSessions.isEmpty == goesOn && (test.states == 0) == goesOn)
      #expect(test.reader.tokens.count > tokens)
      test.expectAgreement()
    }
  }
}
