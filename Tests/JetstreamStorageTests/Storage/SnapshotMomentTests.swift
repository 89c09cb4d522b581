import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

private final class Note: ModelObject {
  @Property var text = ""
}

private final class Desk: ModelObject {
  @Property var notes: ModelArray<Note> = []
  @Property(.local) var drawer: ModelArray<Note> = []
}

/// A client of an ``InMemoryWorld`` whose records are kept in memory.
private final class RecordingClient {
  let client: WorldClient
  private(set) var records: [ReplicaRecord] = []
  private(set) var replica: Replica?
  /// Called while a record is handed over.
  var onRecord: () -> Void = {}

  init(
    _ world: InMemoryWorld, configuration: ClientEngine.Configuration = .init(),
    root: ModelObject = Canvas()
  ) throws {
    client = world.addClient(configuration: configuration, root: root)
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
  let pending: [Int]
  let bases: [ScopePosition?]
  let conflicts: [ConflictName]
  let decided: Int
  let lastNumber: Int
  let authors: [PropertyKey: String]
  let writes: [OwnWrites.Entry]
  let errors: [String]

  init(_ history: ReplicaHistory) throws {
    let scope = Scope(name: "Canvas", root: Canvas(), ticker: .manual())
    var errors: [String] = []
    scope.onError.listen { errors.append("\($0)") }
    let replica = Replica(
      scope: scope, params: [:], clientID: UUID(), ownWrites: 1000,
      ReplicaDialect(version: 2, .init()))
    replica.journal.store = { _ in }
    try replica.restore(history)
    state = scope.canonicalJSON
    pending = replica.pending.map(\.number)
    bases = replica.pending.map(\.basis)
    conflicts = scope.conflicts.items.map(ConflictName.init)
    decided = replica.decided
    lastNumber = replica.pending.lastNumber
    authors = replica.overlay.authors
    writes = replica.losses.ownWrites.remaining
    self.errors = errors
    #expect(replica.checkInvariants() == [])
  }
}

@Suite("Snapshots of a client at any moment")
struct SnapshotMomentTests {
  /// What the records up to `count` come to, from the first one on.
  private func replayed(_ records: some Collection<ReplicaRecord>) throws -> Restarted {
    guard case .named(let name, let root) = records.first else {
      throw SyncError.invalidReply(problem: "the first record does not say whose it is")
    }
    var history = ReplicaHistory(client: name, root: root)
    history.records = Array(records)
    return try Restarted(history)
  }

  @Test(
    "No snapshot is taken while a record is handed over: the state is not what it says yet",
    arguments: [1, 2])
  func handingOver(version: Int) throws {
    let world = InMemoryWorld()
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = version
    let own = try RecordingClient(world, configuration: configuration)
    own.settle(world)
    var taken: [ReplicaHistory] = []
    own.onRecord = {
      if let history = own.replica?.history { taken.append(history) }
    }
    own.client.canvas.name = "mine"
    own.client.scope.flush()
    own.settle(world)
    own.client.canvas.likes += 1
    own.client.canvas.shapes.append(Shape())
    own.client.scope.flush()
    #expect(taken.isEmpty && own.records.count > 3)
    #expect(own.client.engine.pendingCount == 1)
  }

  @Test("What a local property holds is as the others know it, whatever was done to it since")
  func localHolder() throws {
    let world = InMemoryWorld()
    let desk = Desk()
    desk.notes.append(Note())
    desk.notes[0].text = "shared"
    world.replaced = Scope(name: "Canvas", root: desk, ticker: world.serverTicker)
    let own = try RecordingClient(world, root: Desk())
    own.settle(world)
    let mine = own.client.scope.root as! Desk
    let note = mine.notes[0]
    mine.drawer.append(note)
    mine.notes.remove(at: 0)
    own.client.scope.flush()
    note.text = "private"
    own.client.scope.flush()
    let history = try #require(own.replica?.history)
    let models = (history.base?.fragments ?? []) + history.departed
    #expect(history.pending.count == 1)
    #expect(models.first { $0.uuid == note.uuid }?.properties["text"] == "shared")
  }

  @Test(
    "A model that is put back shows after a restart what it showed, over what was written before")
  func putBack() throws {
    let world = InMemoryWorld()
    world.canvas.shapes.append(Shape())
    world.scope.flush()
    let own = try RecordingClient(world)
    own.settle(world)
    let shape = own.client.canvas.shapes[0]
    shape.label = "in a change set"
    own.client.scope.flush()
    shape.label = "right before the removal"
    own.client.canvas.shapes.remove(at: 0)
    own.client.scope.flush()
    own.client.canvas.shapes.append(shape)
    own.client.scope.flush()
    #expect(own.client.canvas.shapes.map(\.label) == ["right before the removal"])
    #expect(try replayed(own.records).state == own.client.scope.canonicalJSON)
    own.settle(world)
    #expect(world.canvas.shapes.map(\.label) == ["right before the removal"])
  }

  @Test("A snapshot carries pending change sets along, over what others have done since")
  func pendingAlong() throws {
    for seed in 1...15 as ClosedRange<UInt64> {
      let world = InMemoryWorld(seed: seed)
      for number in 0..<4 {
        let shape = Shape()
        shape.label = "\(number)"
        shape.parts = [Shape(), Shape()]
        world.canvas.shapes.append(shape)
      }
      world.scope.flush()
      let own = try RecordingClient(world)
      own.settle(world)
      var taken: [(count: Int, ReplicaHistory)] = []
      own.onRecord = {
        if let history = own.replica?.history { taken.append((own.records.count, history)) }
      }
      var isWhole = 0
      for step in 0..<24 {
        // Nothing is sent before it is stored, so that more and more is pending.
        if step % 8 == 7 { own.settle(world) }
        edit(own.client.canvas, step, &world.generator)
        own.client.scope.flush()
        edit(world.canvas, 100 + step, &world.generator)
        world.exchange()
        guard let history = own.replica?.history else { continue }
        isWhole += 1
        #expect(history.pending.count == own.client.engine.pendingCount)
        taken.append((own.records.count, history))
      }
      #expect(isWhole > 12, "seed \(seed)")
      let all = try replayed(own.records)
      #expect(all.state == own.client.scope.canonicalJSON, "seed \(seed)")
      for (count, history) in taken {
        let (here, known) = try (Restarted(history), replayed(own.records.prefix(count)))
        #expect(here == known, "seed \(seed), record \(count)")
        var longer = history
        longer.records = Array(own.records.dropFirst(count))
        #expect(try Restarted(longer) == all, "seed \(seed), from record \(count) on")
      }
    }
  }

  private func edit(_ canvas: Canvas, _ step: Int, _ generator: inout SeededGenerator) {
    let shapes = canvas.shapes
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: canvas.name = "\(step)"
    case 1: canvas.likes += step
    case 2:
      let shape = Shape()
      shape.label = "new \(step)"
      canvas.shapes.append(shape)
    case 3: if !shapes.isEmpty { canvas.shapes.remove(at: step % shapes.count) }
    case 4: shapes.first?.label = "first \(step)"
    case 5: shapes.last?.parts.append(Shape())
    case 6: if let first = shapes.first, !first.parts.isEmpty { first.parts.remove(at: 0) }
    case 7: canvas.selected = shapes.first
    default: if shapes.count > 1 { canvas.shapes.move(from: 0, to: shapes.count - 1) }
    }
  }
}
