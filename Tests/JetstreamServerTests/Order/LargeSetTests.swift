import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Rules of a canvas whose name decides about new shapes.
private func gateRules() -> ScopeRules {
  var rules = ScopeRules()
  rules.create(Shape.self, "The gate is closed") { _, shape in
    shape.x < 100
  }
  rules.insert(into: \Canvas.shapes, "The gate is closed") { _, canvas, _ in
    canvas.name != "closed"
  }
  rules.delete(Shape.self, "Shapes stay") { _, _ in false }
  return rules
}

@Suite("Large change sets, judged in slices")
struct LargeSetTests {
  private let world: InMemoryWorld
  private let shape = Shape()
  private let client = UUID()

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.rules = { _ in gateRules() }
    configuration.sliceSize = 4
    self.init(InMemoryWorld(configuration: configuration))
  }

  private init(_ world: InMemoryWorld) {
    self.world = world
    world.judgesAtOnce = false
    world.canvas.shapes.append(shape)
    world.scope.flush()
  }

  private func peer(_ client: UUID? = nil, version: Int = 2) -> RawPeer {
    let peer = RawPeer(world)
    let spoken = version > 1 ? #""protocol":2,"# : ""
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"1.0.0",\#(spoken)"params":{"author":"ann"}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: client))))
    return peer
  }

  private func change(_ model: ModelObject, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: model.uuid, className: model is Canvas ? "Canvas" : "Shape",
      properties: properties)
  }

  /// New shapes, with the same value, which the canvas is to hold.
  private func additions(x: Int64, version: Int = 2, count: Int = 10) -> [SyncFragment] {
    let uuids = (0..<count).map { _ in UUID() }
    var insertion = change(world.canvas, [:])
    if version == 1 {
      let all = (world.canvas.shapes.map(\.uuid) + uuids).map { JSONValue.string($0.wireText) }
      insertion.properties["shapes"] = .array(all)
    } else {
      insertion.operations["shapes"] = uuids.map { .insert($0, .end) }
    }
    return [insertion]
      + uuids.map {
        SyncFragment(.add, uuid: $0, className: "Shape", properties: ["x": .integer(x)])
      }
  }

  private func name(_ name: String) -> SyncFragment {
    change(world.canvas, ["name": .string(name)])
  }

  private func sync(
    _ peer: RawPeer, _ fragments: [SyncFragment], number: Int? = nil
  ) -> Message {
    var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: fragments)
    sync.number = number
    return peer.stamp(.scopeSync(sync))
  }

  private var isAllDecided: Bool {
    world.server.hosts.values.allSatisfy { $0.undecided.isEmpty }
  }

  private func expectAllIsDecided() {
    #expect(!world.judge())
    #expect(isAllDecided)
    #expect(world.server.work.judgements.isEmpty)
  }

  @Test("Others are answered between the slices of one that is denied", arguments: [1, 2])
  func denied(version: Int) {
    let (eve, bob) = (peer(version: version), peer())
    let index = eve.send(additions(x: 100, version: version))
    #expect(eve.replies(to: index) == nil)
    for x in Int64(1)...3 {
      #expect(world.judge())
      #expect(bob.submit([change(shape, ["x": .integer(x)])]) == [FragmentReply()])
    }
    #expect(world.judgeAll() > 5)
    let replies = eve.messages.compactMap { message -> ScopeSyncReply? in
      if case .scopeSyncReply(let reply) = message { reply } else { nil }
    }
    #expect(replies.count == 1 && replies[0].fragmentReplies.count == 11)
    for reply in replies[0].fragmentReplies.dropFirst() {
      #expect(reply.error == .rejected("The gate is closed") && reply.causedBy == nil)
    }
    #expect(replies[0].fragmentReplies[0].causedBy == 1)
    #expect(shape.x == 3 && world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test("One that is permitted is applied to the scope as it is by then", arguments: [1, 2])
  func permitted(version: Int) {
    let (ann, bob) = (peer(version: version), peer())
    let index = ann.send(additions(x: 5, version: version))
    #expect(ann.replies(to: index) == nil)
    #expect(world.judge())
    #expect(bob.submit([name("open")]) == [FragmentReply()])
    world.judgeAll()
    #expect(world.canvas.shapes.count == 11 && world.canvas.name == "open")
    #expect(bob.syncs.map(\.fragments.count) == [11])
    expectAllIsDecided()
  }

  @Test("One that the slices have let through is denied if the scope has changed since")
  func deniedAtLast() {
    // The same number of steps, whatever is in the scope.
    let dry = LargeSetTests()
    let (ann, bob) = (peer(), peer())
    let other = dry.peer()
    other.send(dry.sync(other, dry.additions(x: 5)))
    let slices = dry.world.judgeAll()
    #expect(slices > 5 && dry.world.canvas.shapes.count == 11)
    let message = sync(ann, additions(x: 5))
    ann.send(message)
    for _ in 1..<slices { #expect(world.judge()) }
    #expect(!isAllDecided)
    #expect(bob.submit([name("closed")]) == [FragmentReply()])
    #expect(world.judgeAll() == 1)
    let replies = ann.replies(to: message.index) ?? []
    #expect(
      replies.count == 11
        && replies.allSatisfy { $0.error == .rejected("The gate is closed") || $0.causedBy == 0 })
    #expect(world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test("What was wrong in one slice stays rejected, and the rest is applied")
  func partly() {
    let ann = peer()
    var fragments = additions(x: 5)
    fragments.append(change(shape, ["x": "nonsense"]))
    fragments.append(change(shape, ["label": "new"]))
    let message = sync(ann, fragments)
    ann.send(message)
    world.judgeAll()
    let replies = ann.replies(to: message.index) ?? []
    #expect(replies.map { $0.error == nil } == Array(repeating: true, count: 11) + [false, true])
    #expect(world.canvas.shapes.count == 11 && shape.label == "new")
    expectAllIsDecided()
  }

  @Test("All of an atomic one is rejected for one fragment")
  func atomic() {
    let ann = peer()
    let fragments = additions(x: 5) + [change(shape, ["x": "nonsense"])]
    let message = ann.stamp(
      .scopeSync(ScopeSync(scopeIndex: ann.scopeIndex, fragments: fragments, atomic: true)))
    ann.send(message)
    world.judgeAll()
    let replies = ann.replies(to: message.index) ?? []
    #expect(replies.count == 12 && replies.allSatisfy { $0.error != nil })
    #expect(replies.first?.causedBy == 11 && world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test("What a client sends behind it waits, and is decided in order", arguments: [1, 2])
  func order(version: Int) {
    let ann = peer(version: version)
    let messages = [
      sync(ann, additions(x: 5, version: version)), sync(ann, [name("a")]),
      sync(ann, additions(x: 100, version: version)),
      sync(ann, [name("b")]),
    ]
    for message in messages { ann.send(message) }
    #expect(world.canvas.name == nil)
    world.judgeAll()
    let answered = ann.messages.compactMap { message -> Int? in
      if case .scopeSyncReply(let reply) = message { reply.replyTo } else { nil }
    }
    #expect(answered == messages.map(\.index))
    #expect(world.canvas.name == "b" && world.canvas.shapes.count == 11)
    expectAllIsDecided()
  }

  @Test(
    "Another message with its number is refused, and the same one is answered once it is decided")
  func sentAgain() {
    let (first, second) = (peer(client), peer(client))
    let fragments = additions(x: 5)
    first.send(sync(first, fragments, number: 1))
    #expect(world.judge())
    let other = sync(second, [name("other")], number: 1)
    second.send(other)
    #expect(
      second.replies(to: other.index)?.first?.error?.type == WireError.setNumberReused(1).type)
    let again = sync(second, fragments, number: 1)
    second.send(again)
    world.judgeAll()
    #expect(second.replies(to: again.index)?.count == 11)
    #expect(world.canvas.shapes.count == 11)
    let late = sync(first, fragments, number: 1)
    first.send(late)
    #expect(first.replies(to: late.index)?.count == 11 && world.canvas.shapes.count == 11)
    expectAllIsDecided()
  }

  @Test("What is sent again while it waits behind one is answered once")
  func waitingSentAgain() {
    let ann = peer(client)
    ann.send(sync(ann, additions(x: 5), number: 1))
    let first = sync(ann, [name("a")], number: 2)
    let other = sync(ann, [name("b")], number: 2)
    let again = sync(ann, [name("a")], number: 2)
    for message in [first, other, again] { ann.send(message) }
    world.judgeAll()
    #expect(ann.replies(to: first.index) == nil)
    #expect(ann.replies(to: again.index) == [FragmentReply()])
    #expect(ann.replies(to: other.index)?.first?.error == .setNumberReused(2))
    #expect(world.canvas.name == "a")
    expectAllIsDecided()
  }

  @Test("What is sent again with a number does not take the place of what is judged")
  func forged() throws {
    let ann = peer(client)
    ann.send(sync(ann, additions(x: 5), number: 1))
    let set = try #require(world.server.hosts.values.first?.undecided.all.first)
    let subscription = try #require(set.subscription)
    // As if the checksums were the same.
    var other = ScopeSync(index: 77, scopeIndex: 0, fragments: [name("other")])
    other.number = 1
    set.sent(again: other, on: subscription)
    world.judgeAll()
    #expect(ann.replies(to: 77)?.count == 11)
    #expect(world.canvas.shapes.count == 11 && world.canvas.name == nil)
    expectAllIsDecided()
  }

  @Test("One that adds a model is judged again if another client adds it as something else")
  func otherClass() {
    let slices = LargeSetTests().addedAsAnother(after: nil)
    #expect(slices > 15)
    // The last one has decided it.
    for cut in 0..<slices { _ = LargeSetTests().addedAsAnother(after: cut) }
  }

  /// Sends a change set that adds a model, and has another client add it as one of another class after a number of slices.
  /// Returns the number of slices.
  private func addedAsAnother(after cut: Int?) -> Int {
    let plot = Plot()
    let scope = Scope(name: "Plot", root: plot, ticker: .manual())
    world.moreScopes["Plot"] = scope
    world.server.host(scope)
    let (eve, bob) = (peer(), peer())
    for peer in [eve, bob] { peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Plot")))) }
    let added = UUID()
    func addition(_ name: String) -> [SyncFragment] {
      let holding = SyncFragment(
        .change, uuid: plot.uuid, className: "Plot", properties: [:],
        operations: ["crops": [.insert(added, .end)]])
      return [holding, SyncFragment(.add, uuid: added, className: name, properties: [:])]
    }
    // Only a RareCrop has a price.
    let prices = (Int64(0)..<20).map { number in
      var change = SyncFragment(
        .change, uuid: added, className: "RareCrop",
        properties: ["price": ["a": .integer(number)]])
      change.bases = ["price": [:]]
      return change
    }
    let message = sync(eve, addition("RareCrop") + prices)
    eve.send(message)
    guard let cut else { return world.judgeAll() }
    for _ in 0..<cut { #expect(world.judge()) }
    #expect(bob.submit(addition("Crop")).map(\.error) == [nil, nil])
    let more = world.judgeAll()
    let replies = eve.replies(to: message.index) ?? []
    #expect(replies.count == 22 && replies.dropFirst().allSatisfy { $0.error != nil }, "\(cut)")
    #expect(plot.crops.map(\.uuid) == [added] && !(plot.crops[0] is RareCrop), "\(cut)")
    expectAllIsDecided()
    return cut + more
  }

  @Test("One that others add the models of, again and again, is judged in one piece in the end")
  func contested() {
    let (eve, bob) = (peer(), peer())
    let fragments = additions(x: 5)
    let added = fragments[5].uuid
    let message = sync(eve, fragments)
    eve.send(message)
    var rounds = 0
    while eve.replies(to: message.index) == nil, rounds < 100 {
      rounds += 1
      var edit = change(world.canvas, [:])
      edit.operations["shapes"] = [.insert(added, .end)]
      #expect(bob.submit([edit, fragments[5]]).map(\.error) == [nil, nil])
      let index = world.canvas.shapes.firstIndex { $0.uuid == added }
      if let index { world.canvas.shapes.remove(at: index) }
      world.scope.flush()
      #expect(world.judge())
      eve.take()
    }
    #expect(rounds == 4 && eve.replies(to: message.index)?.allSatisfy { $0.error == nil } == true)
    #expect(world.canvas.shapes.count == 11)
    expectAllIsDecided()
  }

  @Test(
    "A rule that ends its session ends it undecided, and an observer of it does not",
    arguments: [10, 1])
  func endedMeanwhile(count: Int) {
    for byRule in [true, false] {
      let tests = LargeSetTests()
      let ann = tests.peer()
      let world = tests.world
      let bob = tests.peer()
      if byRule {
        world.server.hosts.values.first?.order.policy.rules = RuleBook(
          { () -> ScopeRules in
            var rules = ScopeRules()
            let token = ann.token!
            nonisolated(unsafe) let server = world.server!
            rules.create(Shape.self, "never") { _, _ in
              server.endSession(token, telling: .rejected("Out"))
              return true
            }
            return rules
          }())
      }
      let observation = world.canvas.observeChangeImmediately(world, \.name) { world, _, _ in
        if !byRule { world.server.endSession(ann.token!, telling: .rejected("Out")) }
      }
      // One addition is not judged in slices.
      ann.send(tests.sync(ann, tests.additions(x: 5, count: count) + [tests.name("x")]))
      #expect(tests.world.judgeAll() > 0 || count == 1)
      #expect(ann.close != nil)
      #expect(world.canvas.shapes.count == (byRule ? 1 : 1 + count))
      #expect(bob.syncs.count == (byRule ? 0 : 1))
      tests.expectAllIsDecided()
      withExtendedLifetime(observation) {}
    }
  }

  @Test(
    "What has left a scope, or has another version, is dropped with the rights", arguments: [1, 2])
  func lostAfterLeaving(version: Int) {
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let ann = peer(version: version)
    ann.send(sync(ann, additions(x: 5, version: version)))
    if version == 2 { ann.send(ann.stamp(.scopeLeave(ScopeLeave(scopeIndex: ann.scopeIndex)))) }
    world.server.changeAccess(ann.token!, "Canvas", .failure(.rejected("Out")), now: world.now)
    world.judgeAll()
    #expect(world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test(
    "The rights of a session that has left count until it is decided, and are asked for again then")
  func rightsAfterLeaving() {
    for access in [ScopeAccess.readOnly, .readWrite] {
      let tests = LargeSetTests()
      let world = tests.world
      var asked = 0
      world.access = { _, _ in
        asked += 1
        return .decided(.success(.readWrite))
      }
      let ann = tests.peer()
      ann.send(tests.sync(ann, tests.additions(x: 5)))
      ann.send(ann.stamp(.scopeLeave(ScopeLeave(scopeIndex: ann.scopeIndex))))
      #expect(world.server.knownAccess(of: nil).map(\.name) == ["Canvas"])
      world.server.changeAccess(ann.token!, "Canvas", .success(access), now: world.now)
      tests.world.judgeAll()
      #expect(world.canvas.shapes.count == (access == .readOnly ? 1 : 11))
      #expect(asked == 1 && world.server.knownAccess(of: nil).isEmpty)
      ann.send(ann.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
      #expect(asked == 2)
      tests.expectAllIsDecided()
    }
  }

  @Test("It ends with the session that has sent it last")
  func endedWithTheLast() {
    let (first, second) = (peer(client), peer(client))
    let fragments = additions(x: 5)
    first.send(sync(first, fragments, number: 1))
    second.send(sync(second, fragments, number: 1))
    #expect(world.judge())
    second.send(second.stamp(.scopeLeave(ScopeLeave(scopeIndex: second.scopeIndex))))
    #expect(world.server.endSession(second.token!, telling: .rejected("Out")))
    world.judgeAll()
    #expect(world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test(
    "A waiting change of a client that does not rebase comes behind what the app has not told yet")
  func correctedForTheApp() {
    let old = peer(version: 1)
    old.acknowledge()
    let observation = world.scope.onRemoteChanges.listen { [world] _ in
      if world.canvas.name == nil { world.canvas.name = "app" }
    }
    old.send(sync(old, additions(x: 5, version: 1)))
    old.send(sync(old, [name("old")]))
    world.judgeAll()
    #expect(world.canvas.name == "old")
    let told = old.syncs.flatMap(\.fragments).compactMap { $0.properties["name"] }
    #expect(told == ["app", "old"])
    expectAllIsDecided()
    withExtendedLifetime(observation) {}
  }

  @Test("A further one is judged in one piece when those that are being judged take enough memory")
  func bounded() {
    var configuration = ServerEngine.Configuration()
    configuration.sliceSize = 4
    configuration.limits.bytesPerChangeSet = 4_000
    let world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
    let tests = LargeSetTests(world)
    let peers = (0..<4).map { _ in tests.peer() }
    for peer in peers { peer.send(tests.sync(peer, tests.additions(x: 5))) }
    let waiting = world.server.hosts.values.reduce(0) { $0 + $1.undecided.all.count }
    #expect(waiting > 0 && waiting < 4 && !world.server.hasRoomForLargeSets)
    #expect(world.canvas.shapes.count == 1 + 10 * (4 - waiting))
    tests.world.judgeAll()
    #expect(world.server.hasRoomForLargeSets && world.canvas.shapes.count == 41)
    tests.expectAllIsDecided()
  }

  @Test("Nothing more is read of a session until its large change set is decided")
  func unread() {
    let (ann, bob) = (peer(), peer())
    ann.send(sync(ann, additions(x: 5)))
    #expect(ann.link.pause > .zero)
    bob.send(.ping(Ping(ack: 0)))
    #expect(bob.link.pause == .zero)
    #expect(world.server.rests(on: ann.link.id, isOver: true, now: world.now) > .zero)
    world.judgeAll()
    #expect(world.server.rests(on: ann.link.id, isOver: true, now: world.now) == .zero)
  }

  @Test("A client that does not rebase is told again what others wrote over its waiting change")
  func corrected() {
    let (old, bob) = (peer(version: 1), peer())
    old.acknowledge()
    old.send(sync(old, additions(x: 5, version: 1) + [name("old")]))
    #expect(world.judge())
    #expect(bob.submit([name("new")]) == [FragmentReply()])
    old.take()
    #expect(old.syncs.last?.fragments.first?.properties["name"] == "new")
    old.acknowledge()
    world.judgeAll()
    // It shows "new", which the server does not have any more.
    #expect(world.canvas.name == "old")
    let told = old.syncs.flatMap(\.fragments).compactMap { $0.properties["name"] }
    #expect(told == ["new", "old"])
    expectAllIsDecided()
  }

  @Test("It is decided without its session")
  func left() {
    let ann = peer(client)
    ann.send(sync(ann, additions(x: 5), number: 1))
    ann.send(ann.stamp(.scopeLeave(ScopeLeave(scopeIndex: ann.scopeIndex))))
    world.judgeAll()
    #expect(world.canvas.shapes.count == 11)
    expectAllIsDecided()
  }

  @Test("It is dropped when its client loses the scope, with what has waited behind it")
  func lost() {
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let ann = peer(client)
    ann.send(sync(ann, additions(x: 5), number: 1))
    ann.send(sync(ann, [name("behind")], number: 2))
    #expect(world.judge())
    world.server.changeAccess(
      ann.token!, "Canvas", .failure(.rejected("Out")), now: world.now)
    world.judgeAll()
    #expect(world.canvas.shapes.count == 1 && world.canvas.name == nil)
    #expect(ann.messages.allSatisfy { if case .scopeSyncReply = $0 { false } else { true } })
    expectAllIsDecided()
  }

  @Test("It is rejected if its session may only read by then")
  func readOnly() {
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let ann = peer()
    let message = sync(ann, additions(x: 5))
    ann.send(message)
    #expect(world.judge())
    world.server.changeAccess(ann.token!, "Canvas", .success(.readOnly), now: world.now)
    world.judgeAll()
    #expect(
      ann.replies(to: message.index)?.map(\.error?.type) == Array(repeating: "read-only", count: 11)
    )
    #expect(world.canvas.shapes.count == 1)
    expectAllIsDecided()
  }

  @Test("It ends with its scope, and with its server")
  func ended() {
    let ann = peer()
    ann.send(sync(ann, additions(x: 5)))
    #expect(world.judge())
    world.server.remove(world.scope, .rejected("Gone"))
    #expect(!world.server.work.judgements.isEmpty)
    world.judgeAll()
    #expect(world.canvas.shapes.count == 1)
    expectAllIsDecided()
    let other = LargeSetTests()
    let bob = other.peer()
    bob.send(other.sync(bob, other.additions(x: 5)))
    other.world.server.stop()
    while other.world.judge() {}
    #expect(other.world.canvas.shapes.count == 1)
  }

  @Test("Sessions take turns, whatever each of them sends")
  func turns() {
    let eve = peer()
    let first = sync(eve, Array(repeating: name("x"), count: 40))
    eve.send(first)
    var others: [Message] = []
    for number in 1...5 {
      let scope = Scope(name: "Other\(number)", root: Canvas(), ticker: .manual())
      world.moreScopes[scope.name] = scope
      world.server.host(scope)
      eve.send(eve.stamp(.scopeFetch(ScopeFetch(name: scope.name))))
      let naming = SyncFragment(
        .change, uuid: scope.root!.uuid, className: "Canvas", properties: ["name": "x"])
      let other = sync(eve, Array(repeating: naming, count: 40))
      others.append(other)
      eve.send(other)
    }
    let alone = LargeSetTests()
    let single = alone.peer()
    single.send(alone.sync(single, alone.additions(x: 5)))
    let needed = alone.world.judgeAll()
    let bob = peer()
    let message = sync(bob, additions(x: 5))
    bob.send(message)
    var slices = 0
    while bob.replies(to: message.index) == nil, slices < 1_000 {
      #expect(world.judge())
      slices += 1
      bob.take()
    }
    // One for each of its own.
    #expect(slices <= 2 * needed + 1)
    world.judgeAll()
    for message in [first] + others { #expect(eve.replies(to: message.index)?.count == 40) }
    expectAllIsDecided()
  }

  @Test("The slices find what a judgement in one piece finds", arguments: UInt64(1)...12)
  func sameAsWhole(seed: UInt64) throws {
    var source = FragmentSource(seed: seed)
    let scope = Scope(name: "Plot", root: Plot(), ticker: .manual())
    let schema = try ScopeSchema(ScopeSchema(of: Plot.self).json).schema
    let document = Document(schema: schema, root: source.root)
    let content: any HostedContent =
      seed % 2 == 0 ? ModelContent(scope) : RowsContent(name: "Plot", document)
    var rules = ScopeRules()
    rules.create(Crop.self, "odd") { _, crop in crop.uuid.uuid.15 % 3 != 0 }
    rules.delete(Crop.self, "even") { _, crop in crop.uuid.uuid.15 % 2 != 0 }
    let host = ScopeOrder(
      content: content, epoch: "e", policy: .init(rules: RuleBook(rules)),
      streamLimit: .init(sets: 100, bytes: 100_000))
    _ = try content.restore([
      SyncFragment(
        .change, uuid: source.root, className: "Plot", properties: document.root.properties)
    ])
    let info = SessionInfo(
      token: "t", connectionParams: [:], params: [:], version: "1.0.0", client: nil, request: nil)
    var (rejected, accepted) = (0, 0)
    for _ in 0..<60 {
      let fragments = source.set(content.sharedState().map(\.uuid).sorted())
      var submitter = ScopeOrder.Submitter(
        session: 1, proven: host.sequence, rebases: true, missed: .init())
      submitter.usesOperations = source.chance(0.7)
      submitter.info = info
      let isAtomic = source.chance(0.2)
      let whole = host.judgedDraft(of: fragments, isAtomic: isAtomic, by: submitter)
      var judgement = Judgement(of: fragments, isAtomic: isAtomic, by: submitter, in: host)
      var sliced: ScopeOrder.Draft?
      while sliced == nil {
        var budget = WorkBudget(source.chance(0.5) ? 1 : 3)
        sliced = judgement.advance(&budget, by: submitter, in: host)
      }
      #expect(sliced?.replies == whole.replies, "seed \(seed)")
      #expect(sliced?.effective == whole.effective && sliced?.positions == whole.positions)
      #expect(sliced?.isRejected == whole.isRejected && sliced?.before == whole.before)
      rejected += whole.replies.count { $0.error != nil }
      accepted += whole.positions.count
      _ = host.submit(fragments, isAtomic: isAtomic, by: submitter)
    }
    #expect(rejected > 10 && accepted > 10)
  }
}
