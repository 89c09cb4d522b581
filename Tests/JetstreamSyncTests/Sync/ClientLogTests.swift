import Foundation
import JetstreamServer
import Pacing
import Testing

@testable import Jetstream

@Suite("What a client has on disk")
struct ClientLogTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  private let root = UUID()
  private var canvas: SyncFragment {
    SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": "a"])
  }

  @Test("A log whose end is missing is opened by those who accept that, and by nobody else")
  func missingEnd() async throws {
    let log = try ClientLog(path)
    try await log.append(.named(client: UUID(), root: root)).durable()
    try await log.append(.named(client: UUID(), root: root)).durable()
    try await log.records.close()
    let file = URL(fileURLWithPath: path + "/" + LogNames.segment(1))
    try Data(contentsOf: file).dropLast(5).write(to: file)
    #expect(throws: LogError.self) { try ClientLog(path) }
    let again = try ClientLog(
      path, configuration: LogConfiguration(history: .nothing, acceptsLoss: true))
    #expect(again.records.opening.losses.map(\.sequence) == [2])
    #expect(try again.history() != nil)
    try await again.records.close()
  }

  @Test(
    "A state that is larger than a message may be is kept as any other, and so is what comes behind it"
  )
  func largeState() async throws {
    let log = try ClientLog(path)
    let text = String(repeating: "x", count: 1 << 20)
    let fragments = (0..<70).map { number in
      SyncFragment(
        .add, uuid: UUID(), className: "Shape",
        properties: ["label": .string(text), "x": .integer(number)])
    }
    var expected = ReplicaHistory(client: UUID(), root: root)
    expected.records = [
      .named(client: expected.client, root: root),
      .base(ReplicaBase(position: nil, root: root, fragments: [canvas] + fragments)),
      .confirmed([canvas], sequence: nil),
    ]
    for record in expected.records { try await log.append(record).durable() }
    #expect(try log.history() == expected)
    try await log.records.close()
  }

  @Test("What is appended is read again, with and without a snapshot")
  func roundTrip() async throws {
    let log = try ClientLog(path)
    #expect(try log.history() == nil)
    let client = UUID()
    var expected = ReplicaHistory(client: client, root: root)
    let set = ChangeSet(
      fragments: [
        SyncFragment(
          .change, uuid: root, className: "Canvas", properties: ["name": "b"],
          operations: ["shapes": [.insert(UUID(), .start)], "likes": [.add(2)]])
      ], undo: [canvas], author: "me", isAtomic: true)
    expected.records = [
      .named(client: client, root: root),
      .base(
        ReplicaBase(
          position: ScopePosition(epoch: "e", sequence: 3), root: root, fragments: [canvas])),
      .made(number: 1, set),
      .confirmed([canvas], sequence: 4),
      .confirmed([], sequence: nil),
      .decided(
        .init(
          number: 1, replies: [FragmentReply(error: .rejected("no"))], effective: [canvas],
          sequence: 5)),
      .decided(.init(number: 2, replies: [FragmentReply()], effective: nil, sequence: nil)),
      .discarded([.init(conflicts[0]), .init(conflicts[2])]),
    ]
    for record in expected.records { try await log.append(record).durable() }
    #expect(try log.history() == expected)
    var later = ReplicaHistory(
      client: UUID(), root: root, nextNumber: 7,
      base: ReplicaBase(
        position: ScopePosition(epoch: "e", sequence: 5), root: root, fragments: [canvas]))
    try await log.snapshot(later, at: log.records.lastSequence)
    #expect(try log.history() == later)
    later.conflicts = conflicts
    let keys: Set = [PropertyKey(uuid: root, name: "name"), PropertyKey(uuid: root, name: "likes")]
    later.pending = [
      .init(number: 5, set: set, basis: ScopePosition(epoch: "e", sequence: 4)),
      .init(
        number: 6, set: set, basis: nil,
        counters: [PropertyKey(uuid: root, name: "likes"): .integer(9)]),
    ]
    later.departed = [
      SyncFragment(.add, uuid: UUID(), className: "Shape", properties: ["label": "gone"])
    ]
    later.authors = [PropertyKey(uuid: root, name: "name"): "you"]
    later.writes = [
      OwnWrites.Entry(set, number: 3, at: 4, properties: keys),
      OwnWrites.Entry(set, number: 0, at: 5),
    ]
    try await log.append(.named(client: client, root: root)).durable()
    try await log.snapshot(later, at: log.records.lastSequence)
    try await log.records.close()
    let again = try ClientLog(path)
    var read = try #require(try again.history())
    // They get other names in each process.
    #expect(read.conflicts.map(\.json.text) == conflicts.map(\.json.text))
    read.conflicts = later.conflicts
    #expect(read == later)
    try await again.records.close()
  }

  /// One of each kind.
  private var conflicts: [Conflict] {
    func conflict(
      _ property: String?, base: JSONValue? = nil, _ mine: Conflict.Change,
      theirs: JSONValue? = nil,
      _ reason: Conflict.Reason, author: String? = nil
    ) -> Conflict {
      Conflict(
        id: UUID(), model: root, className: "Canvas", property: property, base: base, mine: mine,
        theirs: theirs, reason: reason, theirAuthor: theirs == nil ? nil : "you", changeSet: root,
        author: author,
        message: author.map { "for \($0)" })
    }
    return [
      conflict("name", base: .null, .value("a"), theirs: "b", .rejected(.rejected("no"))),
      conflict("likes", .operations([.add(2)]), theirs: 7, .modified, author: "me"),
      conflict("shapes", .operations([.remove(root)]), .moveLost),
      conflict("name", .value("a"), theirs: "b", .overwritten),
      conflict(nil, .addition(["name": "c", "likes": 1]), .rejected(.tooManySessions)),
    ]
  }

  @Test("A conflict that is none says which field is wrong")
  func badConflicts() throws {
    let good = conflicts[0].json
    guard case .object(let object) = good else {
      Issue.record("A conflict is no object.")
      return
    }
    #expect(try Conflict(json: good).mine == .value("a"))
    let bad: [(String, JSONValue?, FragmentError)] = [
      ("mine", nil, .missing(field: "mine")),
      (
        "reason", "bad luck",
        .invalid(field: "reason", problem: "should be a known reason, or an error")
      ),
      ("changeSet", "x", .invalid(field: "changeSet", problem: "should be a UUID")),
      (
        "mine", canvasTwice,
        .invalid(field: "mine", problem: "should change one property")
      ),
    ]
    for (field, value, error) in bad {
      var wrong = object
      wrong[field] = value
      #expect(throws: error) { try Conflict(json: .object(wrong)) }
    }
  }

  /// A fragment that changes more than one property.
  private var canvasTwice: JSONValue {
    SyncFragment(
      .change, uuid: root, className: "Canvas", properties: ["name": "a", "likes": 1]
    ).json
  }

  @Test("A log of something else is refused, with the place")
  func otherLog() async throws {
    let records = try RecordLog(path)
    try await records.append(.set, Array(#"{"id":"x"}"#.utf8)).durable()
    #expect(
      throws: LogError.unreadable(sequence: 1, problem: "\(FragmentError.missing(field: "number"))")
    ) {
      try ClientLog(records).history()
    }
    try await records.close()
  }
}

/// A class that servers do not know.
private final class Sketch: Shape {}

@Suite("An app that ends and starts again", .live, .serialized, .timeLimit(.minutes(5)))
@MainActor
struct ClientRestartTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  /// An app with its log.
  @MainActor
  private struct App {
    let canvas = Canvas()
    let scope: Scope
    let client: Client
    let log: FragmentLog

    init(_ path: String, port: UInt16, models: [ModelObject.Type] = []) throws {
      scope = Scope(name: "Canvas", root: canvas, models: models)
      client = Client(
        url: "ws://127.0.0.1:\(port)",
        backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(20)))
      log = try FragmentLog(path)
    }

    /// Everything that is in memory is gone.
    func end() async throws { try await log.records.close() }

    func settle() async {
      scope.flush()
      await client.settle()
    }
  }

  @Test("It shows what it showed, and sends once what was not decided", arguments: [1, 2, 10_000])
  func restart(snapshotEvery: Int) async throws {
    let server = Server()
    let shared = Canvas()
    let scope = Scope(name: "Canvas", root: shared)
    server.host(scope)
    let port = try await server.listen()
    var app = try App(path, port: port)
    try await app.client.connect()
    try app.client.fetch(app.scope, log: app.log, snapshotEvery: snapshotEvery)
    try await app.client.waitForDownload(of: app.scope)
    #expect(app.canvas.uuid == shared.uuid)
    var labels: [String] = []
    for round in 0..<6 {
      for number in 0..<3 {
        let shape = Shape()
        shape.label = "\(round) \(number)"
        labels.append(shape.label)
        app.canvas.shapes.append(shape)
        app.canvas.likes += 1
        app.scope.flush()
        // Others go on.
        shared.likes += 10
        scope.flush()
      }
      if round.isMultiple(of: 2) { await app.settle() }
      let shown = app.scope.canonicalJSON
      let pending = app.client.pendingCount
      try await app.end()
      app = try App(path, port: port)
      try app.client.fetch(app.scope, log: app.log, snapshotEvery: snapshotEvery)
      #expect(app.scope.canonicalJSON == shown)
      #expect(app.client.pendingCount == pending)
      #expect(app.scope.pendingChangeSets.count == pending)
      // What is changed without a connection is one of them.
      app.canvas.likes += 100
      app.scope.flush()
      #expect(app.client.pendingCount == pending + 1)
      if round < 4 { try await app.client.connect() }
    }
    try await app.client.connect()
    await app.settle()
    #expect(shared.likes == 6 * (3 + 30 + 100))
    #expect(shared.shapes.map(\.label) == labels)
    app.scope.flush()
    #expect(app.scope.canonicalJSON == scope.canonicalJSON)
    try await app.end()
    await server.stop()
  }

  @Test(
    "What does not count is in the ledger of the next process, until it is discarded or settled",
    arguments: [1, 10_000])
  func ledger(snapshotEvery: Int) async throws {
    let server = Server()
    let shared = Canvas()
    server.host(Scope(name: "Canvas", root: shared))
    let port = try await server.listen()
    var app = try App(path, port: port, models: [Sketch.self])
    func start() async throws {
      try app.client.fetch(app.scope, log: app.log, snapshotEvery: snapshotEvery)
      try await app.client.connect()
    }
    func restart() async throws {
      try await app.end()
      app.client.close()
      app = try App(path, port: port, models: [Sketch.self])
      try await start()
    }
    try await start()
    try await app.client.waitForDownload(of: app.scope)
    // The server does not know the class.
    let sketch = Sketch()
    sketch.label = "a first idea"
    app.scope.modify("draw", author: "Ada") {
      app.canvas.shapes.append(sketch)
    }
    await app.settle()
    let items = app.scope.conflicts.items.flatMap(\.parts)
    #expect(items.map(\.property) == [nil, "shapes"] && app.scope.conflicts.items.count == 1)
    // Snapshots are made of what has no end, too.
    for number in 0..<3 {
      app.canvas.likes = number + 1
      await app.settle()
    }
    try await restart()
    let again = app.scope.conflicts.items.flatMap(\.parts)
    #expect(again.map(ConflictName.init) == items.map(ConflictName.init))
    #expect(again.map(\.fragment.json.text) == items.map(\.fragment.json.text))
    #expect(again.map(\.reason) == items.map(\.reason))
    #expect(again.map(\.author) == ["Ada", "Ada"] && again.map(\.message) == ["draw", "draw"])
    #expect(again.map(\.theirs) == [nil, []])
    // Another client reads the same log into the scope that has them already.
    app.client.close()
    let other = Client(url: "ws://127.0.0.1:\(port)")
    try other.fetch(app.scope, log: app.log)
    let known = app.scope.conflicts.items.flatMap(\.parts)
    #expect(known.map(ConflictName.init) == items.map(ConflictName.init))
    other.close()
    try await restart()
    app.canvas.shapes.append(Shape())
    await app.settle()
    let left = app.scope.conflicts.items.flatMap(\.parts)
    #expect(left.map(\.property) == [nil], "what is written anew is settled")
    try await restart()
    #expect(app.scope.conflicts.items.flatMap(\.parts).map(\.property) == [nil])
    app.scope.conflicts.discard(app.scope.conflicts.items[0].id)
    try await restart()
    #expect(app.scope.conflicts.isEmpty && app.canvas.shapes.count == 1)
    try await app.end()
    await server.stop()
  }

  @Test("What is changed before there was ever a connection is sent with the first one")
  func beforeTheFirst() async throws {
    let server = Server()
    let shared = Canvas()
    shared.likes = 5
    let scope = Scope(name: "Canvas", root: shared)
    server.host(scope)
    let port = try await server.listen()
    var app = try App(path, port: port)
    try app.client.fetch(app.scope, log: app.log)
    #expect(throws: SyncError.alreadyFetched(scope: "Canvas")) {
      try app.client.fetch(app.scope, log: app.log)
    }
    app.canvas.name = "mine"
    app.canvas.likes += 1
    app.scope.flush()
    try await app.end()
    app.client.close()
    app = try App(path, port: port)
    try app.client.fetch(app.scope, log: app.log)
    #expect(app.canvas.name == "mine")
    #expect(app.client.pendingCount == 1)
    try await app.client.connect()
    await app.settle()
    #expect(shared.name == "mine" && shared.likes == 6)
    try await app.end()
    await server.stop()
  }
}
