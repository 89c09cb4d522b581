import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("What can be undone after a restart, and what others have made", .paced)
struct UndoLogTests {
  @Test(
    "Logs of clients and of the server know in the end what could be undone and redone",
    arguments: 0..<12)
  func random(seed: Int) async throws {
    let logged = try await LoggedWorld(
      seed: UInt64(seed), clients: 3, authors: ["Ada", "Grace"])
    let world = logged.world
    logged.settle()
    let own = world.clients.map { Watched(UndoHistory(of: $0.scope)) }
    let ofServer = Watched(UndoHistory(of: world.scope))
    let ofAll = Watched(UndoHistory(of: world.scope, includingOthers: true))
    let people: [String?] = ["Ada", "Grace", nil]
    for step in 0..<160 {
      let number = Int.random(in: 0...2, using: &world.generator)
      let client = world.clients[number]
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<30:
        let author = Bool.random(using: &world.generator) ? people[number] : nil
        client.scope.modify(author: author) {
          RandomEdit.perform(on: client.canvas, step: step, &world.generator)
        }
      case 30..<40: own[number].undo()
      case 40..<46: own[number].redo()
      case 46..<50:
        world.scope.modify { RandomEdit.perform(on: world.canvas, step: step, &world.generator) }
      case 50..<53: ofServer.undo()
      case 53..<55: ofServer.redo()
      case 55..<58: ofAll.undo(by: people[number])
      case 58..<60: ofAll.redo()
      case 60..<90:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 90..<93:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      case 93..<95: logged.store()
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    logged.settle()
    try await logged.close()
    for client in world.clients {
      #expect(differences(client.scope, world.scope) == [], "seed \(seed), client \(client.number)")
      let log = try LogReader(logged.clientPath(client.number))
      try own[client.number].compare(client.scope, log, "seed \(seed), client \(client.number)")
    }
    let log = try LogReader(logged.serverPath)
    try ofServer.compare(world.scope, log, "seed \(seed), server")
    try ofAll.compare(world.scope, log, includingOthers: true, "seed \(seed), all on the server")
    #expect(own.contains { $0.count > 0 } && ofAll.count > 0, "seed \(seed)")
  }
}

/// A history, and what a log cannot know of it: the change sets whose undoing or redoing had no effect.
private final class Watched {
  let history: UndoHistory
  private var without: Set<UUID> = []
  /// The number of change sets that were undone or redone.
  private(set) var count = 0

  init(_ history: UndoHistory) { self.history = history }

  func undo(by author: String? = nil) { take { _ = history.undo(by: author) } }

  func redo() { take { _ = history.redo() } }

  private func take(_ action: () -> Void) {
    let before = history.undoStack + history.redoStack
    action()
    let after = history.undoStack + history.redoStack
    let there = Set(after.map(\.id))
    for set in before where !there.contains(set.id) {
      let isTaken = after.contains { $0.purpose == .undo(set.id) || $0.purpose == .redo(set.id) }
      if isTaken { count += 1 } else { without.insert(set.id) }
    }
  }

  func compare(
    _ scope: Scope, _ log: LogReader, includingOthers: Bool = false, _ place: String
  ) throws {
    // A client adds the known values of a model when it sends the addition.
    func content(_ fragments: [SyncFragment]) -> [String] {
      fragments.map { fragment in
        var fragment = fragment
        fragment.bases = [:]
        return fragment.json.text
      }
    }
    func words(_ sets: [ChangeSet]) -> [String] {
      sets.filter { !without.contains($0.id) }
        .map { "\($0.id) \($0.purpose) \(content($0.fragments)) \(content($0.undo))" }
    }
    func restored(_ limit: Int) throws -> UndoHistory {
      try UndoHistory(of: scope, log: log, includingOthers: includingOthers, limit: limit)
    }
    let all = try restored(1000)
    #expect(words(all.undoStack) == words(history.undoStack), "\(place), to be undone")
    #expect(words(all.redoStack) == words(history.redoStack), "\(place), to be redone")
    // With a limit it is the end of it: what was dropped does not come back when later ones are undone.
    let few = try restored(5).undoStack
    #expect(few == all.undoStack.suffix(few.count), "\(place), at most five")
  }
}

/// The log of a client that keeps no more than it needs, and whose root has got more than one name.
@Suite("Undoing with what the log of a client has kept", .paced)
struct UndoClientLogTests {
  private let roots = (0..<3).map { _ in UUID() }
  private let directory: TemporaryDirectory
  private let log: ClientLog
  private let client = UUID()
  private let canvas = Canvas()

  init() throws {
    directory = try TemporaryDirectory()
    log = try ClientLog(directory.path, configuration: LogConfiguration(history: .nothing))
  }

  private func set(_ name: String, _ root: Int) -> ChangeSet {
    func change(_ value: JSONValue) -> SyncFragment {
      SyncFragment(.change, uuid: roots[root], className: "Canvas", properties: ["name": value])
    }
    return ChangeSet(fragments: [change(.string(name))], undo: [change(.null)], message: name)
  }

  private func base(_ root: Int) -> ReplicaBase {
    ReplicaBase(
      position: ScopePosition(epoch: "e", sequence: 1), root: roots[root],
      fragments: [
        SyncFragment(.change, uuid: roots[root], className: "Canvas", properties: [:])
      ])
  }

  private func append(_ records: ReplicaRecord...) async throws {
    for record in records { try await log.append(record).durable() }
  }

  private func restored(limit: Int = 1000) throws -> UndoHistory {
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    try scope.applyFullState(base(2).fragments, rootUUID: roots[2])
    return try UndoHistory(of: scope, log: LogReader(directory.path), limit: limit)
  }

  @Test("Records in front of the first snapshot that is kept, and pending sets in it, are found")
  func compacted() async throws {
    let pending = set("pending", 2)
    try await append(.named(client: client, root: roots[2]), .base(base(2)))
    for round in 0..<3 {
      var history = ReplicaHistory(client: client, root: roots[2], nextNumber: 100, base: base(2))
      history.pending = [.init(number: 1, set: pending, basis: nil)]
      let place = log.records.lastSequence
      try await append(.made(number: 10 + round, set("made \(round)", 2)))
      try await log.snapshot(history, at: place)
    }
    try await append(
      .decided(.init(number: 12, replies: [FragmentReply(error: .rejected("no"))])))
    let kept = try #require(try LogReader(directory.path).firstSequence())
    #expect(kept > 1)
    let names = try restored().undoStack.map(\.message)
    #expect(names.first == "pending" && !names.contains("made 2"))
    try await append(.decided(.init(number: 1, replies: [FragmentReply(error: .rejected("no"))])))
    #expect(try !restored().undoStack.contains { $0.id == pending.id })
    try await log.records.close()
  }

  @Test("A change set that is pending in the snapshot is undone before those that are older")
  func pendingBehindHistory() async throws {
    let path = directory.path + "/all"
    let log = try ClientLog(path, configuration: LogConfiguration(history: .all))
    let (old, pending, later) = (set("old", 2), set("pending", 2), set("later", 2))
    for record: ReplicaRecord in [
      .named(client: client, root: roots[2]), .base(base(2)), .made(number: 1, old),
      .decided(.init(number: 1, replies: [FragmentReply()])), .made(number: 2, pending),
    ] {
      try await log.append(record).durable()
    }
    var history = ReplicaHistory(client: client, root: roots[2], nextNumber: 3, base: base(2))
    history.pending = [.init(number: 2, set: pending, basis: nil)]
    try await log.snapshot(history, at: log.records.lastSequence)
    try await log.append(.made(number: 3, later)).durable()
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    try scope.applyFullState(base(2).fragments, rootUUID: roots[2])
    let reader = try LogReader(path)
    #expect(
      try UndoHistory(of: scope, log: reader).undoStack.map(\.message)
        == ["old", "pending", "later"])
    let rejection = ReplicaRecord.Decided(
      number: 2, replies: [FragmentReply(error: .rejected("no"))])
    try await log.append(.decided(rejection)).durable()
    #expect(
      try UndoHistory(of: scope, log: LogReader(path)).undoStack.map(\.message)
        == ["old", "later"])
    try await log.records.close()
  }

  @Test("Initial content is nothing that a restarted app can take back")
  func initialContent() async throws {
    var initial = set("initial", 2)
    initial.procedure = InitialContent.procedure
    try await append(
      .named(client: client, root: roots[2]), .made(number: 1, initial), .base(base(2)),
      .made(number: 2, set("mine", 2)))
    #expect(try restored().undoStack.map(\.message) == ["mine"])
    try await log.records.close()
  }

  @Test(
    "The past before the server's first state, and what it has in common with the time after it")
  func beforeFirstState() async throws {
    try await append(
      .named(client: client, root: roots[0]), .made(number: 1, set("first", 0)), .base(base(1)),
      .made(number: 2, set("second", 1)))
    try await log.records.close()
    let reader = try LogReader(directory.path)
    let then = Scope(name: "Then", root: Canvas(), ticker: .manual())
    func name() -> String? { (then.root as? Canvas)?.name }
    try reader.restore(into: then, at: 2)
    #expect(name() == "first" && then.root?.uuid == roots[0])
    try reader.restore(into: then, at: 0)
    #expect(name() == nil && then.count == 1)
    let difference = try reader.difference(from: 2, to: 4, using: then)
    #expect(difference.fragments.map(\.uuid) == [roots[1]])
    #expect(difference.fragments.map(\.properties) == [["name": "second"]])
    for root in roots[0...1] {
      #expect(try reader.writes(to: "name", of: root).map(\.message) == ["first", "second"])
    }
    #expect(try reader.writes(to: "name", of: roots[2]).isEmpty)
    #expect(throws: LogError.notKept(sequence: 9, kept: 1...4)) {
      try reader.restore(into: then, at: 9)
    }
  }

  @Test(
    "A change set that was not answered fragment by fragment counts as rejected",
    arguments: [[FragmentReply(error: .rejected("unreadable"))], [FragmentReply()], []])
  func otherCount(of replies: [FragmentReply]) async throws {
    var two = set("mine", 2)
    let shape = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: ["x": 1])
    two = two.with([two.fragments[0], shape], undo: two.undo)
    try await append(
      .named(client: client, root: roots[2]), .base(base(2)), .made(number: 1, two))
    #expect(try restored().canUndo)
    let decided = ReplicaRecord.Decided(number: 1, replies: replies)
    try await append(.decided(decided))
    try await log.records.close()
    #expect(try !restored().canUndo)
    let reader = try LogReader(directory.path)
    #expect(try reader.writes(to: "name", of: roots[2]).isEmpty)
    #expect(try reader.writes(to: "x", of: shape.uuid).isEmpty)
    let then = Scope(name: "Then", root: Canvas(), ticker: .manual())
    try reader.restore(into: then)
    #expect((then.root as? Canvas)?.name == nil)
  }

  @Test(
    "Of initial content, the log tells the writes for which the server's first state had no content",
    arguments: [false, true])
  func writesOfInitialContent(isNamed: Bool) async throws {
    let (mine, theirs) = (UUID(), UUID())
    func shape(_ uuid: UUID) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Shape", properties: ["x": 1])
    }
    var made = set("Untitled", 0)
    made.procedure = InitialContent.procedure
    var change = made.fragments[0]
    change.operations["shapes"] = [.insert(mine, .end)]
    made = made.with([shape(mine), change], undo: made.undo)
    var state = base(1)
    let theirShapes: JSONValue = isNamed ? [] : [.string(theirs.wireText)]
    state.fragments[0].properties = ["name": isNamed ? "Theirs" : .null, "shapes": theirShapes]
    if !isNamed { state.fragments.append(shape(theirs)) }
    try await append(
      .named(client: client, root: roots[0]), .made(number: 1, made), .base(state))
    let reader = try LogReader(directory.path)
    // The server answers the fragments that the client has sent: the rest of the change set.
    let replies = Array(repeating: FragmentReply(), count: isNamed ? 2 : 1)
    for isDecided in [false, true] {
      if isDecided { try await append(.decided(.init(number: 1, replies: replies))) }
      for root in roots[0...1] {
        #expect(try reader.writes(to: "name", of: root).count == (isNamed ? 0 : 1))
        #expect(try reader.writes(to: "shapes", of: root).count == (isNamed ? 1 : 0))
      }
      #expect(try reader.writes(to: "x", of: mine).count == (isNamed ? 1 : 0))
    }
    try await log.records.close()
  }

  @Test("Change sets name the root as it is called now, whatever it was called")
  func renamedTwice() async throws {
    try await append(
      .named(client: client, root: roots[0]), .made(number: 1, set("first", 0)),
      .base(base(1)), .made(number: 2, set("second", 1)), .base(base(2)),
      .made(number: 3, set("third", 2)))
    let history = try restored()
    #expect(history.undoStack.flatMap(\.fragments).map(\.uuid) == [roots[2], roots[2], roots[2]])
    canvas.name = "third"
    history.undo()  // What the test has written.
    canvas.scope?.modify { canvas.name = "third" }
    history.undo()
    #expect(history.undo()?.isComplete == true && canvas.name == nil)
    try await log.records.close()
  }
}

/// The same through the interface of apps.
@Suite("Undoing with a log")
@MainActor struct UndoOverRestartTests {
  private func canvas(_ scope: Scope) throws -> Canvas { try #require(scope.root as? Canvas) }

  @Test(
    "A client goes on undoing where its last process has stopped, and the server agrees",
    arguments: [10_000, 0])
  func client(snapshotEvery: Int) async throws {
    let directory = try TemporaryDirectory()
    let hosted = Scope(name: "Canvas", root: Canvas())
    let server = Server()
    server.host(hosted)
    func open() throws -> (Client, Scope, FragmentLog) {
      let (client, scope) = (
        Client(transport: server.makeTransport()), Scope(name: "Canvas", root: Canvas())
      )
      let log = try FragmentLog(directory.path + "/client")
      try client.fetch(scope, log: log, snapshotEvery: snapshotEvery)
      return (client, scope, log)
    }
    let (client, scope, log) = try open()
    let history = UndoHistory(of: scope)
    let own = try canvas(scope)
    // Written before the root has the server's UUID.
    scope.modify("a name") { own.name = "first" }
    try await client.connect()
    try await client.waitForUpload(of: scope)
    scope.modify("a shape") { own.shapes.append(Shape()) }
    scope.modify("likes") { own.likes = 3 }
    history.undo()
    try await client.waitForUpload(of: scope)
    client.close()
    try await log.close()

    let (again, restored, secondLog) = try open()
    let rest = try UndoHistory(of: restored, log: secondLog.reader)
    #expect(rest.canUndo && rest.canRedo)
    rest.redo()
    #expect(try canvas(restored).likes == 3)
    for _ in 0..<3 { rest.undo() }
    #expect(!rest.canUndo)
    #expect(try canvas(restored).name == nil && canvas(restored).shapes.isEmpty)
    try await again.connect()
    try await again.waitForUpload(of: restored)
    #expect(restored.canonicalJSON == hosted.canonicalJSON)
    again.close()
    try await secondLog.close()
    await server.stop()
  }

  @Test("A change by the author of a log drops what the same author could redo before a restart")
  func authorOfLog() async throws {
    let directory = try TemporaryDirectory()
    func open() async throws -> (Scope, FragmentLog) {
      let scope = Scope(name: "Canvas", root: Canvas())
      let log = try FragmentLog(directory.path)
      try await log.restore(into: scope)
      log.record(scope, author: "Ada") { Issue.record("\($0)") }
      return (scope, log)
    }
    let (scope, log) = try await open()
    let history = UndoHistory(of: scope)
    let own = try canvas(scope)
    scope.modify { own.shapes.append(Shape()) }
    history.undo()
    scope.modify(author: "Grace") { own.name = "hers" }
    #expect(history.undo(by: "Grace") != nil)
    #expect(history.redoStack.map(\.author) == [nil, "Grace"])
    try await log.close()

    let (restored, secondLog) = try await open()
    let rest = try UndoHistory(of: restored, log: secondLog.reader)
    let canvas = try canvas(restored)
    #expect(rest.redoStack.map(\.author) == ["Ada", "Grace"])
    canvas.likes += 1
    restored.flush()
    #expect(rest.redoStack.map(\.author) == ["Grace"] && rest.redo(by: "Ada") == nil)
    #expect(rest.undo(by: "Ada") != nil && canvas.likes == 0)
    #expect(rest.redo(by: "Ada") != nil && canvas.likes == 1 && canvas.shapes.isEmpty)
    try await secondLog.close()
  }

  @Test("A server takes back all that one person has done, also after a restart, and no more")
  func byAuthor() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/server"
    func host() async throws -> (Server, Scope, FragmentLog) {
      let (server, scope) = (Server(), Scope(name: "Canvas", root: Canvas()))
      server.authenticate = { session in
        guard case .object(let params) = session.params, case .string(let name)? = params["user"]
        else { return nil }
        return Principal(name)
      }
      let log = try FragmentLog(path)
      try await server.host(scope, log: log)
      return (server, scope, log)
    }
    func join(_ server: Server, as name: String) async throws -> (Client, Scope) {
      let client = Client(transport: server.makeTransport())
      let scope = Scope(name: "Canvas", root: Canvas())
      try await client.connect(params: ["user": .string(name)])
      try await client.fetch(scope)
      return (client, scope)
    }
    let (server, scope, _) = try await host()
    let (ada, adas) = try await join(server, as: "Ada")
    let (mallory, mallorys) = try await join(server, as: "Mallory")
    let keep = Shape()
    keep.label = "keep"
    keep.parts = [Shape(), Shape()]
    try canvas(adas).shapes = [keep]
    try canvas(adas).likes = 2
    try await ada.waitForUpload(of: adas)
    let before = scope.fullState()
    try await mallory.sync(mallorys)
    mallorys.modify { try? canvas(mallorys).shapes.removeAll { _ in true } }
    mallorys.modify {
      guard let canvas = try? canvas(mallorys) else { return }
      canvas.likes += 100
      canvas.name = "mine"
      canvas.shapes.append(Shape())
      canvas.named["x"] = Shape()
    }
    try await mallory.waitForUpload(of: mallorys)
    try await ada.sync(adas)
    try canvas(adas).likes += 1
    try await ada.waitForUpload(of: adas)
    mallory.close()
    ada.close()
    try await server.remove(scope)

    let (next, again, log) = try await host()
    #expect(again.canonicalJSON == scope.canonicalJSON)
    let history = try UndoHistory(of: again, log: log.reader, includingOthers: true, limit: .max)
    var count = 0
    while history.undo(by: "Mallory") != nil { count += 1 }
    #expect(count == 2)
    // Ada's own like, which came later, stays.
    try canvas(again).likes -= 1
    again.flush()
    #expect(again.fullState().canonicalJSON == before.canonicalJSON)
    let (last, lasts) = try await join(next, as: "Ada")
    #expect(lasts.canonicalJSON == again.canonicalJSON)
    // Live, without a restart, too.
    try canvas(lasts).name = "once more"
    try await last.waitForUpload(of: lasts)
    #expect(try canvas(again).name == "once more")
    var authors: [String?] = []
    lasts.onRemoteChanges.listen { authors.append($0.author) }
    history.undo(by: "Ada")
    try await last.sync(lasts)
    #expect(try canvas(lasts).name == nil)
    #expect(authors == [nil], "the undo of Ada's change names no author")
    history.redo(by: "Ada")
    try await last.sync(lasts)
    #expect(try canvas(lasts).name == "once more")
    last.close()
    await next.stop()
  }
}
