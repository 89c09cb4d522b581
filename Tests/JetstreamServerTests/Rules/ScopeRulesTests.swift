import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Rules of a canvas on which each shape belongs to the user whose name is its label.
private func ownerRules() -> ScopeRules {
  var rules = ScopeRules()
  rules.create(Shape.self, "A shape begins in your own name") { session, shape in
    shape.label == session.principal?.id
  }
  rules.update(Shape.self, "Only its owner changes a shape") { session, old, _ in
    old.label == session.principal?.id
  }
  rules.delete(Shape.self, "Only its owner deletes a shape") { session, shape in
    shape.label == session.principal?.id
  }
  return rules
}

/// The classes of another app.
private final class OddCanvas: ModelObject {
  override class var wireName: String { "Canvas" }
  @Property var shapes: ModelArray<OddShape> = []
  @Property var selected = "none"
  @Property var named: ModelArray<OddShape> = []
}

private final class OddShape: ModelObject {
  override class var wireName: String { "Shape" }
  @Property var x: Float = 0
  @Property var label = 3
}

@Suite("Rules for changes")
struct ScopeRulesTests {
  private let world: InMemoryWorld
  private let shape = Shape()

  private init(_ rules: ScopeRules, unknown: UnknownContent = .reject) {
    var configuration = ServerEngine.Configuration()
    configuration.rules = { $0 == "Canvas" ? rules : nil }
    world = InMemoryWorld(configuration: configuration, unknown: unknown)
    shape.label = "ann"
    world.canvas.shapes.append(shape)
    world.scope.flush()
  }

  init() { self.init(ownerRules()) }

  /// The diagnostics that rules have caused.
  private var complaints: [String] { world.log.filter { $0.contains("could not judge") } }

  private func peer(_ user: String, version: Int = 2) -> RawPeer {
    let peer = RawPeer(world)
    let spoken = version > 1 ? #""protocol":2,"# : ""
    peer.send(
      #"{"type":"SessionCreate","index":0,"version":"1.0.0",\#(spoken)"params":{"author":"\#(user)"}}"#
    )
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    return peer
  }

  private func change(_ model: ModelObject, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: model.uuid, className: model is Canvas ? "Canvas" : "Shape",
      properties: properties)
  }

  private func edit(
    _ model: ModelObject, _ key: String, _ operations: PropertyOperation...
  ) -> SyncFragment {
    var fragment = change(model, [:])
    fragment.operations[key] = operations
    return fragment
  }

  private func add(_ uuid: UUID, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Shape", properties: properties)
  }

  private func list(_ uuids: UUID...) -> JSONValue { .array(uuids.map { .string($0.wireText) }) }

  @Test("A denied change leaves no trace, and its client gets the reason", arguments: [1, 2])
  func denied(version: Int) {
    let (ann, bob, eve) = (
      peer("ann", version: version), peer("bob", version: version), peer("eve")
    )
    let before = world.scope.canonicalJSON
    let replies = bob.submit([change(shape, ["x": 5]), change(world.canvas, ["name": "bob's"])])
    #expect(replies.map(\.error) == [.rejected("Only its owner changes a shape"), nil])
    #expect(shape.x == 0 && world.canvas.name == "bob's")
    #expect(bob.submit([change(shape, ["label": "bob"])]).map { $0.error == nil } == [false])
    for peer in [ann, eve] { peer.take() }
    #expect(eve.syncs.flatMap(\.fragments) == [change(world.canvas, ["name": "bob's"])])
    #expect(ann.submit([change(shape, ["x": 6])]) == [FragmentReply()])
    #expect(shape.x == 6 && world.scope.canonicalJSON != before)
    #expect(complaints.isEmpty)
  }

  @Test("A value that stays the same is no change")
  func unchanged() {
    #expect(peer("bob").submit([change(shape, ["x": 0, "label": "ann"])]) == [FragmentReply()])
  }

  @Test("A model is deleted by an array without it, and by its removal", arguments: [1, 2])
  func deletion(version: Int) {
    let (ann, bob) = (peer("ann", version: version), peer("bob", version: version))
    func removal() -> SyncFragment {
      version == 1
        ? change(world.canvas, ["shapes": []]) : edit(world.canvas, "shapes", .remove(shape.uuid))
    }
    for peer in [ann, bob] { peer.acknowledge() }
    #expect(bob.submit([removal()]).map(\.error) == [.rejected("Only its owner deletes a shape")])
    #expect(world.canvas.shapes == [shape])
    #expect(ann.submit([removal()]).map(\.error) == [nil] && world.canvas.shapes.isEmpty)
  }

  @Test("A model is deleted with the one that has led to it")
  func nestedDeletion() {
    let (outer, inner) = (Shape(), Shape())
    (outer.label, inner.label) = ("bob", "ann")
    outer.parts.append(inner)
    world.canvas.shapes.append(outer)
    world.scope.flush()
    let bob = peer("bob")
    let removal = edit(world.canvas, "shapes", .remove(outer.uuid))
    #expect(bob.submit([removal]).map(\.error) == [.rejected("Only its owner deletes a shape")])
    // Something else leads to it now.
    let other = edit(world.canvas, "hidden", .insert(inner.uuid, .end))
    #expect(bob.submit([removal, other]).map(\.error) == [nil, nil])
    #expect(world.canvas.shapes == [shape] && world.canvas.hidden == [inner])
  }

  @Test("A second addition of a model is a change of it", arguments: [1, 2])
  func addedAgain(version: Int) {
    let bob = peer("bob", version: version)
    let reply = bob.submit([add(shape.uuid, ["label": "bob", "x": 9])])
    #expect(reply.map(\.error) == [.rejected("Only its owner changes a shape")])
    #expect(shape.label == "ann" && shape.x == 0)
  }

  @Test(
    "A new model is judged by the values that the whole change set gives it", arguments: [1, 2])
  func newInSeveralFragments(version: Int) {
    let (bob, uuid) = (peer("bob", version: version), UUID())
    let change = SyncFragment(
      .change, uuid: uuid, className: "Shape", properties: ["label": "ann"])
    let insertion = self.change(world.canvas, ["hidden": list(uuid)])
    let replies = bob.submit([add(uuid, ["label": "bob"]), change, insertion])
    #expect(replies[0].error == .rejected("A shape begins in your own name"))
    #expect(replies.allSatisfy { $0.error != nil } && world.canvas.hidden.isEmpty)
    #expect(bob.submit([add(uuid, ["label": "bob"]), insertion]).map(\.error) == [nil, nil])
    #expect(world.canvas.hidden.map(\.label) == ["bob"])
  }

  @Test("A model that comes back is created, and what is new about it was changed")
  func comesBack() {
    let (ann, bob) = (peer("ann"), peer("bob"))
    _ = ann.submit([edit(world.canvas, "shapes", .remove(shape.uuid))])
    let insertion = edit(world.canvas, "shapes", .insert(shape.uuid, .end))
    #expect(
      bob.submit([insertion]).map(\.error) == [.rejected("A shape begins in your own name")])
    let stolen = add(shape.uuid, ["label": "bob", "x": 9])
    let replies = bob.submit([stolen, insertion])
    #expect(replies.map(\.error).first == .rejected("Only its owner changes a shape"))
    #expect(world.canvas.shapes.isEmpty)
    #expect(ann.submit([insertion]).map(\.error) == [nil] && world.canvas.shapes == [shape])
  }

  @Test("A rejected addition takes with it what refers to it, for one reason")
  func consequences() {
    let uuid = UUID()
    let replies = peer("bob").submit([
      edit(world.canvas, "shapes", .insert(uuid, .end)), add(uuid, ["label": "ann"]),
      change(world.canvas, ["name": "new"]),
    ])
    #expect(replies.map { $0.error == nil } == [false, false, true])
    #expect(replies[1].error == .rejected("A shape begins in your own name"))
    #expect(replies.map(\.causedBy) == [1, nil, nil])
  }

  @Test("An atomic change set is rejected as a whole, with the reason")
  func atomic() {
    let replies = peer("bob").submit(
      [change(world.canvas, ["name": "new"]), change(shape, ["x": 1])], atomic: true)
    #expect(replies.map { $0.error?.type } == ["rejected", "rejected"])
    #expect(replies.map(\.causedBy) == [1, nil] && world.canvas.name == nil)
    #expect(world.server.positions.map(\.sequence) == [1])
  }

  @Test("What is left of a change set is judged again")
  func leftover() {
    var rules = ownerRules()
    rules.insert(into: \Canvas.hidden, "Nothing is hidden here") { _, _, _ in false }
    let tests = ScopeRulesTests(rules)
    let (world, shape) = (tests.world, tests.shape)
    // Without the insertion, the removal would delete the shape.
    let replies = tests.peer("bob").submit([
      tests.edit(world.canvas, "shapes", .remove(shape.uuid)),
      tests.edit(world.canvas, "hidden", .insert(shape.uuid, .end)),
    ])
    #expect(replies.allSatisfy { $0.error != nil || $0.lost == ["shapes"] })
    #expect(world.canvas.shapes == [shape] && world.canvas.hidden.isEmpty)
  }

  @Test("What no rule speaks of is denied where that is the default", arguments: [1, 2])
  func denyByDefault(version: Int) {
    var rules = ScopeRules(otherwise: .deny)
    rules.update(\Shape.x, "Never") { _, _, new in new.x < 10 }
    rules.move(in: \Canvas.shapes, "Never") { _, _, _ in true }
    let tests = ScopeRulesTests(rules, unknown: .keep)
    let (world, shape) = (tests.world, tests.shape)
    let bob = tests.peer("bob", version: version)
    func error(_ fragments: SyncFragment...) -> String? {
      bob.submit(fragments).compactMap(\.error).first?.message
    }
    #expect(error(tests.change(shape, ["x": 5])) == nil && shape.x == 5)
    #expect(error(tests.change(shape, ["x": 11])) == "Never")
    #expect(error(tests.change(shape, ["y": 5])) == "You may not change 'y' of a Shape")
    bob.acknowledge()
    #expect(
      error(tests.change(world.canvas, ["shapes": []]))
        == "You may not remove from 'shapes' of a Canvas")
    #expect(
      error(tests.change(world.canvas, ["hidden": tests.list(shape.uuid)]))
        == "You may not insert into 'hidden' of a Canvas")
    #expect(
      error(tests.change(world.canvas, ["selected": .string(shape.uuid.wireText)]))
        == "You may not change 'selected' of a Canvas")
    #expect(
      error(tests.change(world.canvas, ["named/a": .string(shape.uuid.wireText)]))
        == "You may not insert into 'named/a' of a Canvas")
    #expect(
      error(tests.change(shape, ["unheardOf": 1]))
        == "You may not write what the scope does not know")
    #expect(world.canvas.shapes == [shape] && world.scope.count == 2)
  }

  @Test(
    "Where no rule can speak of unknown content, a model of it gets into no known property",
    arguments: [false, true])
  func unknownElements(areAllowed: Bool) throws {
    var rules = ScopeRules()
    rules.allowsUnknownContent = areAllowed
    let tests = ScopeRulesTests(rules, unknown: .keep)
    let (world, bob, circle) = (tests.world, tests.peer("bob"), UUID())
    let host = try #require(world.server.hosts.values.first)
    let book = host.order.policy.rules
    // An unknown property holds it, from the time before the rules.
    host.order.policy.rules = nil
    let replies = bob.submit([
      SyncFragment(.add, uuid: circle, className: "Circle", properties: [:]),
      tests.change(world.canvas, ["extra": tests.list(circle)]),
    ])
    host.order.policy.rules = book
    #expect(replies.map(\.error) == [nil, nil] && world.scope.unknownModel(circle) != nil)
    let expected =
      areAllowed ? nil : WireError.notPermitted(to: "write what the scope does not know")
    for fragment in [
      tests.change(world.canvas, ["selected": .string(circle.wireText)]),
      tests.edit(world.canvas, "hidden", .insert(circle, .end)),
      tests.change(world.canvas, ["named/b": .string(circle.wireText)]),
    ] {
      #expect(bob.submit([fragment]).map(\.error) == [expected])
    }
    // So does one that a new model would hold.
    let new = UUID()
    let added = bob.submit([
      tests.add(new, ["parts": tests.list(circle)]),
      tests.edit(world.canvas, "shapes", .insert(new, .end)),
    ])
    #expect(added.first?.error == expected)
  }

  @Test("A model of a known class that only unknown content has held is judged when it comes in")
  func keptOfKnownClass() {
    var rules = ownerRules()
    rules.allowsUnknownContent = true
    let tests = ScopeRulesTests(rules, unknown: .keep)
    let (world, ann, bob) = (tests.world, tests.peer("ann"), tests.peer("bob"))
    let forged = UUID()
    let kept = bob.submit([
      tests.add(forged, ["label": "ann"]),
      tests.change(world.canvas, ["extra": tests.list(forged)]),
    ])
    #expect(kept.map(\.error) == [nil, nil] && world.scope.unknownModel(forged) != nil)
    let change = SyncFragment(.change, uuid: forged, className: "Shape", properties: ["x": 1])
    #expect(bob.submit([change]).map(\.error) == [.rejected("Only its owner changes a shape")])
    for fragment in [
      tests.edit(world.canvas, "hidden", .insert(forged, .end)),
      tests.change(world.canvas, ["shapes": tests.list(tests.shape.uuid, forged)]),
      tests.change(world.canvas, ["selected": .string(forged.wireText)]),
      tests.change(world.canvas, ["named/b": .string(forged.wireText)]),
    ] {
      #expect(bob.submit([fragment]).map(\.error) == [.rejected("A shape begins in your own name")])
    }
    #expect(world.scope.unknownModel(forged) != nil && world.canvas.shapes == [tests.shape])
    let insertion = tests.edit(world.canvas, "shapes", .insert(forged, .end))
    #expect(ann.submit([change, insertion]).map(\.error) == [nil, nil])
    #expect(world.canvas.shapes.last?.uuid == forged && world.canvas.shapes.last?.x == 1)
  }

  @Test(
    "Many models of which one set lets go are judged in the time of their number",
    .timeLimit(.minutes(5)))
  func manyBelowMany() throws {
    var rules = ScopeRules()
    rules.delete(Shape.self, "Never") { _, shape in shape.label != "common" }
    let tests = ScopeRulesTests(rules)
    let (canvas, common) = (tests.world.canvas, Shape())
    common.label = "common"
    canvas.hidden.append(common)
    // Each of them holds the same model, so that it has as many holders as are removed at once.
    let shapes = (0..<20_000).map { _ in Shape() }
    for shape in shapes { shape.parts.append(common) }
    canvas.shapes.append(contentsOf: shapes)
    tests.world.scope.flush()
    let removal = SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": shapes.map { .remove($0.uuid) }])
    let scope = TentativeScope.after(
      [removal], in: ModelContent(tests.world.scope), memory: NoMemory())
    let deleted = Differences.every(in: scope).filter {
      if case .deleted = $0.kind { true } else { false }
    }
    #expect(deleted.count == shapes.count)
  }

  // Of two equal cases the models have other UUIDs, by which nothing may be decided.
  @Test(
    "A model that a rejected fragment lets go of stays, below others that leave, too",
    arguments: 0..<8)
  func lostByRejected(_: Int) {
    var rules = ScopeRules()
    rules.delete(Shape.self, "Common shapes stay") { _, shape in shape.label != "common" }
    rules.remove(from: \Shape.parts, "Its parts stay") { _, holder, _ in holder.label != "keeper" }
    let tests = ScopeRulesTests(rules)
    let (canvas, keeper, other, common) = (tests.world.canvas, Shape(), Shape(), Shape())
    (keeper.label, common.label) = ("keeper", "common")
    (keeper.parts, other.parts) = ([common], [common])
    canvas.shapes.append(contentsOf: [keeper, other])
    tests.world.scope.flush()
    let replies = tests.peer("bob").submit([
      tests.edit(keeper, "parts", .remove(common.uuid)),
      tests.edit(canvas, "shapes", .remove(other.uuid)),
    ])
    #expect(replies.map(\.error) == [.rejected("Its parts stay"), nil])
    #expect(keeper.parts == [common] && !canvas.shapes.contains(other))
  }

  @Test("The nearest class with a rule decides, and a property before its class")
  func precedence() {
    final class Star: Shape { @Property var points = 5 }
    var rules = ScopeRules(otherwise: .deny)
    rules.create(Shape.self, "general") { _, _ in true }
    rules.insert(into: \Canvas.shapes, "general") { _, _, _ in true }
    rules.update(Shape.self, "general") { _, _, _ in false }
    rules.update(\Shape.x, "x") { _, _, new in new.x < 10 }
    rules.update(\Shape.x, "x, too") { _, _, new in new.x != 5 }
    rules.update(\Star.points, "points") { _, _, new in new.points < 10 }
    rules.update(Star.self, "star") { _, _, new in new.y < 10 }
    let tests = ScopeRulesTests(rules)
    let star = Star()
    tests.world.canvas.shapes.append(star)
    tests.world.scope.flush()
    let bob = tests.peer("bob")
    func error(_ model: ModelObject, _ key: String, _ value: JSONValue) -> String? {
      let name = model is Star ? "Star" : "Shape"
      return bob.submit([
        SyncFragment(.change, uuid: model.uuid, className: name, properties: [key: value])
      ]).first?.error?.message
    }
    #expect(error(tests.shape, "y", 1) == "general")
    #expect(error(tests.shape, "x", 1) == nil)
    #expect(error(tests.shape, "x", 11) == "x" && error(tests.shape, "x", 5) == "x, too")
    #expect(error(star, "points", 11) == "points" && error(star, "points", 9) == nil)
    #expect(error(star, "y", 11) == "star" && error(star, "y", 9) == nil)
    // The rule for all properties of the nearer class comes before that for one of a class above it.
    #expect(error(star, "x", 11) == nil)
  }

  @Test(
    "The rules for a collection count where a class below gives it another name on the wire",
    arguments: [false, true])
  func renamedCollection(isDenied: Bool) {
    final class Comet: Shape {
      @Property var tails: ModelArray<Shape> = []
      override class var propertyOptions: [String: PropertyOptions] {
        ["parts": .wireName("pieces")]
      }
    }
    var rules = ScopeRules()
    if isDenied { rules.update(Comet.self, "no change") { _, _, _ in false } }
    rules.insert(into: \Shape.parts, "no insert") { _, holder, _ in holder.label == "open" }
    rules.remove(from: \Shape.parts, "no remove") { _, holder, _ in holder.label == "open" }
    rules.move(in: \Shape.parts, "no move") { _, holder, _ in holder.label == "open" }
    let tests = ScopeRulesTests(rules)
    let (comet, first, second) = (Comet(), Shape(), Shape())
    comet.parts = [first, second]
    tests.world.canvas.shapes.append(comet)
    tests.world.scope.flush()
    let bob = tests.peer("bob")
    func error(_ name: String, _ operation: PropertyOperation) -> String? {
      let fragment = SyncFragment(
        .change, uuid: comet.uuid, className: "Comet", properties: [:],
        operations: [name: [operation]])
      return bob.submit([fragment]).first?.error?.message
    }
    func errors() -> [String?] {
      let operations: [PropertyOperation] = [
        .insert(tests.shape.uuid, .end), .move(first.uuid, .end), .remove(second.uuid),
      ]
      return operations.map { error("pieces", $0) }
    }
    #expect(errors() == ["no insert", "no move", "no remove"] && comet.parts == [first, second])
    comet.label = "open"
    tests.world.scope.flush()
    // They permit nothing that other rules deny.
    let denial = isDenied ? "no change" : nil
    #expect(error("tails", .insert(tests.shape.uuid, .end)) == denial)
    #expect(errors() == [denial, denial, denial])
    #expect(comet.parts == (isDenied ? [first, second] : [tests.shape, first]))
  }

  @Test("A rule sees the models around, before and after")
  func views() {
    var rules = ScopeRules()
    rules.update(\Canvas.likes, "likes") { _, old, new in new.likes == old.likes + 2 }
    rules.insert(into: \Canvas.shapes, "two at most") { _, canvas, shape in
      canvas.shapes.count < 2 && shape.label == "new" && canvas.uuid != shape.uuid
        && shape.holders(as: Canvas.self).isEmpty
    }
    rules.update(\Shape.x, "x") { _, old, new in
      let canvas = new.root(as: Canvas.self)
      return old.holders(as: Canvas.self).map(\.uuid) == [canvas?.uuid]
        && canvas?.selected?.uuid == new.uuid && canvas?.named["a"]?.x == new.x
        && old.root(as: Canvas.self)?.named["a"]?.x == old.x && new.tags == [7]
    }
    rules.insert(into: \Canvas.named, "named") { _, _, shape in shape.tags == [7] }
    rules.remove(from: \Canvas.named, "kept") { _, canvas, shape in
      canvas.named.count > 1 && shape.label != ""
    }
    let tests = ScopeRulesTests(rules)
    let (world, shape) = (tests.world, tests.shape)
    let bob = tests.peer("bob")
    func errors(_ fragments: SyncFragment...) -> [String?] {
      bob.submit(fragments).map { $0.error?.message }
    }
    #expect(errors(tests.edit(world.canvas, "likes", .add(1))) == ["likes"])
    #expect(errors(tests.edit(world.canvas, "likes", .add(1), .add(1))) == [nil])
    let uuid = UUID()
    func insertion(_ label: JSONValue, _ uuid: UUID) -> [SyncFragment] {
      [
        tests.add(uuid, ["label": label]),
        tests.edit(world.canvas, "shapes", .insert(uuid, .end)),
      ]
    }
    #expect(bob.submit(insertion("old", uuid)).last?.error?.message == "two at most")
    #expect(bob.submit(insertion("new", uuid)).map(\.error) == [nil, nil])
    #expect(bob.submit(insertion("new", UUID())).last?.error?.message == "two at most")
    #expect(errors(tests.change(shape, ["x": 1])) == ["x"])
    let selection = tests.change(
      world.canvas,
      ["selected": .string(shape.uuid.wireText), "named/a": .string(shape.uuid.wireText)])
    #expect(errors(selection) == ["named"])
    #expect(errors(selection, tests.change(shape, ["tags": [7]])) == [nil, nil])
    #expect(errors(tests.change(shape, ["x": 1])) == [nil] && shape.x == 1)
    #expect(errors(tests.change(world.canvas, ["named/a": .null])) == ["kept"])
  }

  @Test("A rule that cannot decide denies, and the operator learns why")
  func undecided() throws {
    struct Failure: Error {}
    var rules = ScopeRules()
    rules.update(\Shape.y, "never") { _, _, _ in throw WireError.rejected("not on Sundays") }
    rules.update(\Shape.x, "never") { _, _, _ in throw Failure() }
    let tests = ScopeRulesTests(rules)
    let bob = tests.peer("bob")
    let sunday = bob.submit([tests.change(tests.shape, ["y": 1])])
    #expect(sunday.map(\.error) == [.rejected("not on Sundays")] && tests.complaints.isEmpty)
    let failure = bob.submit([tests.change(tests.shape, ["x": 1])])
    #expect(failure.map(\.error) == [.notJudged] && tests.shape.x == 0)
    #expect(tests.complaints.count == 1 && tests.complaints[0].contains("Failure()"))
  }

  @Test("A rule that cannot decide leaves the other fragments to their own rules")
  func undecidedBesideDecided() {
    struct Failure: Error {}
    var rules = ScopeRules()
    rules.update(\Shape.x, "never") { _, _, _ in throw Failure() }
    rules.update(\Shape.label, "never") { _, _, _ in true }
    let tests = ScopeRulesTests(rules)
    let replies = tests.peer("bob").submit([
      tests.change(tests.shape, ["x": 1]), tests.change(tests.shape, ["label": "new"]),
    ])
    #expect(replies.map(\.error) == [.notJudged, nil])
    #expect(tests.shape.x == 0 && tests.shape.label == "new" && tests.complaints.count == 1)
  }

  @Test("A rule that reads what a schema has with another type denies")
  func otherSchema() throws {
    var rules = ScopeRules()
    rules.update(\Shape.x, "never") { session, old, _ in old.label != session.principal?.id }
    try expectJudged(by: rules)
  }

  @Test(
    "A rule that reads models which a schema lacks, or has as something else, denies",
    arguments: ["parts", "hidden", "selected", "named"])
  func otherModels(property: String) throws {
    var rules = ScopeRules()
    rules.update(\Shape.x, "never") { _, old, _ in
      guard let canvas = old.root(as: Canvas.self) else { return false }
      return switch property {
      case "parts": old.parts.isEmpty
      case "hidden": canvas.hidden.isEmpty
      case "selected": canvas.selected == nil
      default: canvas.named.isEmpty
      }
    }
    try expectJudged(by: rules)
  }

  /// Expects that rules judge a change of `x` in a scope with the fixtures' schema, and cannot in one with that of another
  /// app.
  private func expectJudged(by rules: ScopeRules) throws {
    for (schema, isAsExpected) in [
      (ScopeSchema(of: Canvas.self), true), (ScopeSchema(of: OddCanvas.self), false),
    ] {
      let content = RowsContent(name: "Canvas", schema)
      let host = ScopeOrder(
        content: content, epoch: "e", policy: .init(rules: RuleBook(rules)),
        streamLimit: .init(sets: 100, bytes: 100_000))
      var submitter = ScopeOrder.Submitter(session: 1, proven: 0, rebases: true, missed: .init())
      submitter.usesOperations = true
      submitter.info = SessionInfo(
        token: "", connectionParams: [:], params: [:], version: "1.0.0")
      let uuid = UUID()
      let root = content.root!.uuid
      let added = host.submit(
        [
          add(uuid, [:]),
          SyncFragment(
            .change, uuid: root, className: "Canvas", properties: ["shapes": list(uuid)]),
        ], isAtomic: true, by: submitter)
      #expect(added.replies.allSatisfy { $0.error == nil })
      let result = host.submit(
        [SyncFragment(.change, uuid: uuid, className: "Shape", properties: ["x": 1])],
        isAtomic: false, by: submitter)
      #expect(result.replies.map(\.error) == [isAsExpected ? nil : .notJudged])
      #expect(result.problems.isEmpty == isAsExpected)
    }
  }

  @Test("A review rejects fragments, gives other values, and refuses all", arguments: [1, 2])
  func review(version: Int) {
    var rules = ScopeRules()
    rules.review { changes in
      if changes.fragments.count > 3 { throw WireError.rejected("Too much at once") }
      for (index, fragment) in changes.fragments.enumerated() {
        if fragment.properties["y"] == 13 { changes.reject(at: index, "Thirteen brings bad luck") }
        if case .string(let text)? = fragment.properties["label"] {
          changes.set("label", to: .string(text.replacing("spam", with: "****")), at: index)
        }
      }
    }
    rules.update(\Shape.label, "Not that") { _, _, new in new.label != "****" }
    let tests = ScopeRulesTests(rules)
    let (world, shape) = (tests.world, tests.shape)
    let (bob, eve) = (tests.peer("bob", version: version), tests.peer("eve"))
    let replies = bob.submit([
      tests.change(shape, ["y": 13]), tests.change(shape, ["label": "my spam"]),
      tests.change(world.canvas, ["name": "n"]),
    ])
    #expect(replies.map(\.error) == [.rejected("Thirteen brings bad luck"), nil, nil])
    #expect(shape.y == 0 && shape.label == "my ****" && world.canvas.name == "n")
    eve.take()
    #expect(eve.syncs.flatMap(\.fragments).contains(tests.change(shape, ["label": "my ****"])))
    // The writer is told of the value that is not its own.
    let told = bob.messages.map { "\($0)" }.joined()
    #expect(told.contains("my ****"))
    #expect(
      bob.submit([tests.change(shape, ["label": "spam"])]).first?.error?.message == "Not that")
    let four = bob.submit((0..<4).map { tests.change(shape, ["x": .integer($0)]) })
    #expect(four.map { $0.error?.message } == Array(repeating: "Too much at once", count: 4))
    #expect(four.map(\.causedBy) == [nil, 0, 0, 0])
    #expect(shape.x == 0)
    // What refers to a fragment that would have been rejected anyway falls with the change set, not with that fragment.
    let unknown = UUID()
    let chained = bob.submit([
      tests.change(shape, ["x": 1]),
      SyncFragment(.add, uuid: unknown, className: "Idea", properties: [:]),
      tests.change(world.canvas, ["shapes": .array([.string(unknown.wireText)])]),
      tests.change(world.canvas, ["name": "m"]),
    ])
    #expect(chained.map(\.causedBy) == [nil, 0, 0, 0])
  }

  @Test("A client takes a denied change back, and has one conflict for it")
  func client() {
    let world = world
    let client = world.addClient()
    client.join()
    world.settle()
    let shape = client.canvas.shapes[0]
    shape.x = 5
    let other = Shape()
    other.label = "ann"
    client.canvas.shapes.append(other)
    client.flush()
    world.settle()
    #expect(shape.x == 0 && client.canvas.shapes.count == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    let reasons = client.scope.conflicts.items.map { "\($0.reason)" }
    #expect(reasons.count == 2, "\(reasons)")
    #expect(reasons.contains { $0.contains("Only its owner changes a shape") })
    #expect(reasons.contains { $0.contains("A shape begins in your own name") })
  }
}
