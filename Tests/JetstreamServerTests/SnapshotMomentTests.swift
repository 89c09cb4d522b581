import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client of an ``InMemoryWorld`` whose records are kept in memory.
private final class RecordingClient {
  let client: WorldClient
  private(set) var records: [ReplicaRecord] = []
  private(set) var replica: Replica?
  /// Called while a record is handed over.
  var onRecord: () -> Void = {}

  init(_ world: InMemoryWorld, configuration: ClientEngine.Configuration = .init()) throws {
    client = world.addClient(configuration: configuration)
    client.engine.connect(params: [:], now: world.now)
    replica = try client.engine.fetch(
      client.scope, params: [:], history: nil, now: world.now,
      store: { [unowned self] in
        records.append($0)
        onRecord()
      }, completion: { _ in })
    replica?.stored(records.count)
  }

  /// Makes all records durable, and lets everything arrive.
  func settle(_ world: InMemoryWorld) {
    for _ in 0..<20 {
      world.exchange()
      replica?.stored(records.count)
    }
  }
}

/// What a process begins with that finds this on its disk.
private struct Restarted: Equatable {
  let state: String
  let pending: [UUID]
  let nextNumber: Int?

  init(_ history: ReplicaHistory) throws {
    let scope = Scope(name: "Canvas", root: Canvas(), ticker: .manual())
    let engine = ClientEngine(random: { 0.5 }, perform: { _ in }, report: { _ in })
    let replica = try engine.fetch(
      scope, params: [:], history: history, now: .zero, store: { _ in }, completion: { _ in })
    state = scope.canonicalJSON
    pending = scope.pendingChangeSets.handles.map(\.set.id)
    nextNumber = replica?.history?.nextNumber
    #expect(engine.brokenInvariants() == [])
  }
}

@Suite("Snapshots of a client while a record is handed over")
struct SnapshotMomentTests {
  /// What the records up to `count` come to, from the first one on.
  private func replayed(_ records: some Collection<ReplicaRecord>) throws -> Restarted {
    guard case .named(let name, let root) = records.first else {
      throw SyncError.invalidReply("the first record does not say whose it is")
    }
    var history = ReplicaHistory(client: name, root: root)
    history.records = Array(records)
    return try Restarted(history)
  }

  @Test("A change set that is being handed over is not taken for confirmed", arguments: [1, 2])
  func handingOver(version: Int) throws {
    let world = InMemoryWorld()
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = version
    let own = try RecordingClient(world, configuration: configuration)
    var taken: [(count: Int, ReplicaHistory)] = []
    own.onRecord = {
      if let history = own.replica?.history { taken.append((own.records.count, history)) }
    }
    own.settle(world)
    own.client.canvas.name = "mine"
    own.client.scope.flush()
    own.settle(world)
    own.client.canvas.likes += 1
    own.client.canvas.shapes.append(Shape())
    own.client.scope.flush()
    own.settle(world)
    world.canvas.name = "theirs"
    own.settle(world)
    // The whole state comes again.
    world.server.advance(to: world.now + .seconds(3600))
    world.canvas.name = "later"
    for _ in 0..<30 {
      world.advance(by: .seconds(1))
      own.settle(world)
    }
    own.client.canvas.name = "last"
    own.client.scope.flush()
    for (count, history) in taken {
      #expect(try Restarted(history) == replayed(own.records.prefix(count)), "record \(count)")
    }
    #expect(own.client.engine.pendingCount == 1 && own.records.count > 5)
  }
}
