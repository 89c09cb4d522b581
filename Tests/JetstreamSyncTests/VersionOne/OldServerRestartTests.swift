import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

private final class Board: ModelObject {
  @Property(.merge(.union)) var palette: [String: Int] = [:]
}

/// A server of version 1 is sent values, also for operations, and does what it is sent.
@Suite("Restarts of clients of a server of version 1")
struct OldServerRestartTests {
  private let world: InMemoryWorld
  private let client: WorldClient
  private let log = Log()
  private var canvas: Canvas { client.canvas }

  private final class Log {
    var records: [ReplicaRecord] = []
  }

  init() { self.init(InMemoryWorld(), root: Canvas()) }

  private init(_ world: InMemoryWorld, root: ModelObject) {
    self.world = world
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = 1
    client = world.addClient(configuration: configuration, root: root)
    client.engine.connect(params: [:], now: world.now)
  }

  private func fetch() throws -> Replica {
    let replica = try client.engine.fetch(
      client.scope, params: [:], history: nil, now: world.now,
      store: { [log] in log.records.append($0) }, completion: { _ in })
    return try #require(replica)
  }

  /// Makes all records durable, and lets everything arrive.
  private func settle(_ replica: Replica) {
    for _ in 0..<20 {
      world.exchange()
      replica.stored(log.records.count)
    }
  }

  /// What the next process shows that reads the log.
  private func restarted(root new: ModelObject = Canvas()) throws -> String {
    guard case .named(let name, let root) = log.records.first else {
      throw SyncError.invalidReply(problem: "the first record does not say whose it is")
    }
    var history = ReplicaHistory(client: name, root: root)
    history.records = log.records
    return try restarted(history, root: new)
  }

  private func restarted(
    _ history: ReplicaHistory, root: ModelObject = Canvas()
  ) throws -> String {
    let scope = Scope(name: "Canvas", root: root, ticker: .manual())
    let replica = Replica(scope: scope, params: [:], clientID: UUID(), ownWrites: 1000)
    try replica.restore(history)
    return scope.canonicalJSON
  }

  @Test("An accepted move counts as what was sent for it, also after a restart")
  func accepted() throws {
    for label in ["a", "b", "c", "d"] {
      let shape = Shape()
      shape.label = label
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    let replica = try fetch()
    settle(replica)
    canvas.shapes.move(from: 0, to: 2)
    client.scope.flush()
    replica.stored(log.records.count)
    world.canvas.shapes.move(from: 3, to: 0)
    world.scope.flush()
    settle(replica)
    #expect(
      client.engine.pendingCount == 0 && client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(try restarted() == client.scope.canonicalJSON)
  }

  @Test(
    "A pending step of a counter stands in front of what others have counted, also after a restart")
  func counter() throws {
    world.canvas.likes = 5
    world.scope.flush()
    _ = try fetch()
    canvas.likes += 2
    client.scope.flush()
    // Its record is not durable, so the set is not sent.
    world.exchange()
    #expect(client.engine.pendingCount == 1)
    #expect(try restarted() == client.scope.canonicalJSON)
  }

  @Test("What a counter was after a pending step is in a snapshot")
  func snapshot() throws {
    world.canvas.likes = 5
    world.scope.flush()
    let replica = try fetch()
    settle(replica)
    canvas.likes += 2
    client.scope.flush()
    world.canvas.likes = 9
    world.scope.flush()
    world.exchange()
    #expect(canvas.likes == 7 && client.engine.pendingCount == 1)
    let history = try #require(replica.history)
    #expect(try restarted(history) == client.scope.canonicalJSON)
  }

  @Test("What a rule had made of an accepted value when it was sent counts, also after a restart")
  func merged() throws {
    let (world, board) = (InMemoryWorld(), Board())
    let scope = Scope(name: "Canvas", root: board, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    let mine = Board()
    let peer = OldServerRestartTests(world, root: mine)
    let replica = try peer.fetch()
    peer.settle(replica)
    mine.palette["a"] = 1
    peer.client.scope.flush()
    board.palette["b"] = 2
    scope.flush()
    world.exchange()
    peer.settle(replica)
    #expect(board.palette == ["a": 1, "b": 2] && mine.palette == board.palette)
    #expect(try peer.restarted(root: Board()) == peer.client.scope.canonicalJSON)
  }

  @Test(
    "A snapshot whose counters cannot be read says which field is wrong",
    arguments: ["3", "[3]", #"[{"model":"a2b0c3d4-0000-4000-8000-000000000001","name":"likes"}]"#])
  func wrongCounters(counters: String) throws {
    let set = ChangeSet(fragments: [], undo: [])
    let entry = ReplicaHistory.Undecided(number: 1, set: set, basis: nil)
    #expect(try ReplicaHistory.Undecided(json: entry.json) == entry)
    let text = "\(entry.json)".dropLast() + #","counters":\#(counters)}"#
    let json = try JSONValue(parsing: String(text))
    #expect(throws: FragmentError.self) { try ReplicaHistory.Undecided(json: json) }
  }
}
