import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("The content of logs without classes", .paced)
struct LoggedRowsTests {
  private func compare(_ path: String, from first: Int, _ place: String) throws {
    let reader = try LogReader(path)
    let last = try #require(try reader.verify().records?.upperBound)
    for sequence in first...last {
      let then = Scope(name: "Then", root: Canvas(), ticker: .manual())
      try reader.restore(into: then, at: sequence)
      let rows = Scope(name: "Rows", root: Canvas(), ticker: .manual())
      let state = try reader.rows(at: sequence).fullState()
      try rows.applyFullState(state, rootUUID: #require(state.first?.uuid))
      #expect(differences(then, rows) == [], "\(place), at \(sequence)")
      #expect(try reader.rows(at: sequence).canonicalJSON == then.canonicalJSON)
    }
  }

  /// The first record of a client's log that has a state of the server.
  private func firstState(_ path: String) throws -> Int {
    var cursor = try LogReader(path).read()
    while let record = try cursor.next() {
      if record.kind == ReplicaRecord.Kind.base { return record.sequence }
    }
    return 1
  }

  @Test(
    "At each record of a server's log, and of its clients' logs, it is what the classes make of it",
    arguments: 0..<6)
  func random(seed: Int) async throws {
    let logged = try await LoggedWorld(seed: UInt64(seed), clients: 3)
    let world = logged.world
    logged.settle()
    var cut: [[Shape]] = [[], [], []]
    // Rows and models differ for a moment where one client puts a model back twice: see `ClientRows`.
    var wasCut: [Set<UUID>] = [[], [], []]
    for step in 0..<140 {
      let client = Int.random(in: 0...2, using: &world.generator)
      switch Int.random(in: 0..<120, using: &world.generator) {
      case 100..<108:
        let canvas = world.clients[client].canvas
        guard let shape = canvas.shapes.randomElement(using: &world.generator),
          wasCut[client].insert(shape.uuid).inserted
        else { continue }
        canvas.shapes.remove(shape)
        world.clients[client].scope.flush()
        cut[client].append(shape)
      case 108..<120:
        // A model that was cut is put back, perhaps changed, while other clients go on changing it.
        let scope = world.clients[client].scope
        guard let shape = cut[client].popLast(), scope.model(shape.uuid) == nil else { continue }
        if Bool.random(using: &world.generator) { shape.label = "pasted in step \(step)" }
        if Bool.random(using: &world.generator) { shape.parts.append(Shape()) }
        world.clients[client].canvas.shapes.append(shape)
        scope.flush()
      case 0..<42:
        RandomEdit.perform(on: world.clients[client].canvas, step: step, &world.generator)
        if Bool.random(using: &world.generator) { world.clients[client].scope.flush() }
      case 42..<47: world.clients[client].canvas.likes += 2
      case 47..<50: RandomEdit.perform(on: world.canvas, step: step, &world.generator)
      case 50..<86:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 86..<90:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      case 90..<92: try await logged.snapshotClient(client)
      case 92: try await logged.snapshotServer()
      case 93..<96: logged.store()
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    logged.settle()
    try await logged.close()
    try compare(logged.serverPath, from: 0, "seed \(seed), server")
    for number in 0...2 {
      let path = logged.clientPath(number)
      let reader = try LogReader(path)
      try compare(path, from: firstState(path), "seed \(seed), client \(number)")
      #expect(
        try reader.rows().canonicalJSON == world.scope.canonicalJSON,
        "seed \(seed), client \(number)")
    }
  }

  @Test("Before the server's state there is what was written here, under the root's first name")
  func beforeState() async throws {
    let directory = try TemporaryDirectory()
    let log = try ClientLog(directory.path)
    let (old, new) = (UUID(), UUID())
    let shape = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: ["x": 1])
    func change(_ root: UUID, _ values: JSONObject) -> SyncFragment {
      SyncFragment(.change, uuid: root, className: "Canvas", properties: values)
    }
    let made = ChangeSet(
      fragments: [shape, change(old, ["name": "mine", "selected": .string(shape.uuid.wireText)])],
      undo: [])
    let base = ReplicaBase(
      position: ScopePosition(epoch: "e", sequence: 1), root: new,
      fragments: [change(new, ["name": "theirs", "likes": 3])])
    let records: [ReplicaRecord] = [
      .named(client: UUID(), root: old), .made(number: 1, made), .base(base),
      .decided(
        .init(
          number: 1, replies: [FragmentReply(error: .rejected("no")), FragmentReply()],
          effective: [change(new, ["name": "mine"])], sequence: 2)),
    ]
    for record in records { _ = try log.append(record) }
    try await log.records.close()
    let reader = try LogReader(directory.path)
    #expect(try reader.rows(at: 1).fullState().isEmpty)
    let first = try reader.rows(at: 2)
    #expect(first.root == old && first[old]?.properties["name"] == "mine")
    #expect(first.reachable() == [old, shape.uuid])
    let pending = try reader.rows(at: 3)
    #expect(pending.reachable() == [new, shape.uuid])
    #expect(pending[new]?.properties["name"] == "mine" && pending[new]?.properties["likes"] == 3)
    let decided = try reader.rows(at: 4)
    #expect(decided.reachable() == [new] && decided[new]?.properties["selected"] == nil)
    #expect(try reader.difference(from: 2, to: 3).changed.map(\.uuid) == [new])
  }

  @Test("Of initial content stays what the server's first state has none for")
  func initialContent() async throws {
    let directory = try TemporaryDirectory()
    let log = try ClientLog(directory.path)
    let root = UUID()
    let scope = Scope(name: "Canvas", root: Canvas(), ticker: .manual())
    let canvas = try #require(scope.root as? Canvas)
    scope.renameRoot(to: root)
    canvas.name = "mine"
    canvas.likes = 5
    canvas.shapes.append(Shape())
    var sets: [ChangeSet] = []
    scope.collectContent()
    let token = scope.onChanges.listen { sets.append($0) }
    scope.flush()
    token.cancel()
    let content = try #require(sets.first)
    let initial = ChangeSet(
      fragments: content.fragments, undo: content.undo, procedure: InitialContent.procedure)
    let state = SyncFragment(
      .change, uuid: root, className: "Canvas",
      properties: ["name": "theirs", "shapes": [], "hidden": [], "selected": .null, "likes": 0])
    let base = ReplicaBase(
      position: ScopePosition(epoch: "e", sequence: 1), root: root, fragments: [state])
    let records: [ReplicaRecord] = [
      .named(client: UUID(), root: root), .made(number: 1, initial), .base(base),
    ]
    for record in records { _ = try log.append(record) }
    try await log.records.close()
    let then = Scope(name: "Then", root: Canvas(), ticker: .manual())
    try LogReader(directory.path).restore(into: then, at: 3)
    let rows = try LogReader(directory.path).rows(at: 3)
    #expect(rows[root]?.properties["name"] == "theirs" && rows[root]?.properties["likes"] == 5)
    #expect(rows.canonicalJSON == then.canonicalJSON)
  }

  @Test(
    "The operator is told once of each class and property of a history that a schema lacks",
    arguments: [false, true])
  func leftOut(isRestored: Bool) throws {
    let root = NewCanvas()
    root.name = "kept"
    root.title = "lost"
    let group = Group()
    group.members = [NewShape(), NewShape()]
    root.groups = [group]
    root.shapes = [NewShape(), Circle()]
    let scope = Scope(name: "Canvas", root: root, ticker: .manual())
    var history = ScopeHistory(epoch: "e", sequence: 1, state: scope.fullState(), clients: [:])
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Canvas",
      properties: ["title": "again", "name": "changed"])
    history.records = (2...3).map { ScopeRecord(sequence: $0, fragments: [change]) }
    let schema = ScopeSchema(of: Canvas.self)
    let content =
      isRestored
      ? try RowsContent(name: "Canvas", schema, from: history)
      : RowsContent(name: "Canvas", schema)
    var reports: [Diagnostic] = []
    let engine = ServerEngine(
      configuration: .init(),
      hooks: .init(
        fetch: { _, _, _ in .success(content) }, report: { reports.append($0) },
        makeToken: { "" }, random: { 0.5 }),
      perform: { _ in })
    try engine.host(content, history: history, isRestored: isRestored) { _ in }
    #expect(content.document.root.properties["name"] == "changed")
    #expect(content.document.root.properties["shapes"] == [.string(root.shapes[0].uuid.wireText)])
    #expect(reports.allSatisfy { $0.level == .warning && $0.scope == "Canvas" })
    for name in ["Canvas.title", "Canvas.groups", "Shape.rotation", "class Group", "class Circle"] {
      #expect(reports.count { $0.text().contains(" \(name),") } == 1, "\(name): \(reports)")
    }
  }
}
