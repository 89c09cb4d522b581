import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

private final class Desk: ModelObject {
  @Property var shapes: ModelArray<Shape> = []
  @Property(.local) var held: Shape?
}

@Suite("The inverse of what a client submits")
struct ChangeInverseTests {
  private let canvas = Canvas()
  private let scope: Scope
  private let host: ScopeOrder
  private let shapes: [Shape]

  init() {
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    shapes = (0..<7).map { number in
      let shape = Shape()
      shape.label = "\(number)"
      shape.parts = [Shape()]
      return shape
    }
    canvas.shapes = ModelArray(shapes)
    canvas.selected = shapes[0]
    canvas.likes = 250
    canvas.named["x"] = shapes[1]
    host = ScopeOrder(
      content: scope.makeContent(), epoch: "e", policy: .init(unknown: .keep),
      streamLimit: .init(sets: 100, bytes: 100_000))
    host.records.store = { _ in }
    scope.flush()
  }

  private func change(_ properties: JSONObject, _ operations: PropertyOperations = [:])
    -> SyncFragment
  {
    SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: properties,
      operations: operations)
  }

  private func name(_ model: ModelObject) -> JSONValue { .string(model.uuid.wireText) }

  /// Submits fragments, and returns the inverse of what was accepted.
  @discardableResult
  private func submit(_ fragments: [SyncFragment], version: Int = 2) throws -> ChangeSet {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: version > 1, missed: .init())
    submitter.usesOperations = version > 1
    submitter.origin.author = "Ada"
    let result = host.submit(fragments, isAtomic: false, by: submitter)
    #expect(result.replies.compactMap(\.error) == [])
    let set = try #require(result.set)
    #expect(set.author == "Ada" && set.fragments == result.item?.fragments)
    return set
  }

  /// Submits fragments, and checks that the inverse leads back, by itself and as a local change.
  private func check(_ fragments: [SyncFragment], version: Int = 2) throws {
    let before = scope.canonicalJSON
    let set = try submit(fragments, version: version)
    #expect(scope.canonicalJSON != before)
    var told: [ChangeSet] = []
    let token = scope.onChanges.listen { told.append($0) }
    defer { token.cancel() }
    let copy = Scope(name: "Copy", root: Canvas(), ticker: .manual())
    try copy.applyFullState(scope.fullState(), rootUUID: canvas.uuid)
    #expect(copy.apply(set.undo).isComplete)
    #expect(copy.canonicalJSON == before)
    #expect(scope.revert(set).isComplete)
    scope.flush()
    #expect(differences(scope, copy) == [])
    #expect(told.count == 1, "clients are told of it")
  }

  @Test("Values, references and counters", arguments: [1, 2])
  func values(version: Int) throws {
    try check([change(["name": "new", "selected": .null])], version: version)
    try check([change(["selected": name(shapes[3].parts[0])])], version: version)
    try check([change(["likes": 3])], version: version)
    if version == 2 { try check([change([:], ["likes": [.add(20)]])]) }
  }

  @Test(
    "A model that no client has, since only a local property of the server holds it, is not restored"
  )
  func hidden() throws {
    let desk = Desk()
    let scope = Scope(name: "Desk", root: desk, ticker: .manual())
    let (shape, part) = (Shape(), Shape())
    shape.parts = [part]
    desk.shapes = [shape]
    desk.held = shape
    let host = ScopeOrder(
      content: scope.makeContent(), epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
    host.records.store = { _ in }
    scope.flush()
    func submit(_ fragments: [SyncFragment]) throws -> ChangeSet {
      var submitter = ScopeOrder.Submitter(
        session: 1, proven: host.sequence, rebases: true, missed: .init())
      submitter.usesOperations = true
      let result = host.submit(fragments, isAtomic: false, by: submitter)
      #expect(result.replies.compactMap(\.error) == [])
      return try #require(result.set)
    }
    func list(_ operation: PropertyOperation) -> SyncFragment {
      SyncFragment(
        .change, uuid: desk.uuid, className: "Desk", properties: [:],
        operations: ["shapes": [operation]])
    }
    let removal = try submit([list(.remove(shape.uuid))])
    #expect(Set(removal.undo.filter { $0.kind == .add }.map(\.uuid)) == [shape.uuid, part.uuid])
    // Another client puts the shape back, without its part.
    let back = SyncFragment(
      .add, uuid: shape.uuid, className: "Shape", properties: ["parts": []])
    let set = try submit([back, list(.insert(shape.uuid, .end))])
    #expect(part.scope == nil)
    #expect(set.undo.filter { $0.kind == .add } == [])
  }

  @Test("A counter that has come to its limit loses what was added, not what was asked for")
  func clampedCounter() throws {
    let set = try submit([change([:], ["likes": [.add(.max)]])])
    let added = canvas.likes - 250
    #expect(set.undo.first?.operations["likes"] == [.add(-Int64(added))])
  }

  @Test("Models of collections find their places again, whatever went with them")
  func collections() throws {
    let ids = shapes.map(\.uuid)
    try check([change([:], ["shapes": ids[1...5].map { .remove($0) }])])
    try check([change([:], ["shapes": ids[1...5].reversed().map { .remove($0) }])])
    try check([change([:], ["shapes": ids.map { .remove($0) }])])
    try check([
      change(
        [:],
        [
          "shapes": [
            .move(ids[0], .end), .move(ids[6], .start), .remove(ids[3]), .move(ids[2], .end),
          ]
        ])
    ])
    // All but one are moved, so that the last one keeps its predecessors.
    try check([change([:], ["shapes": ids[0...5].map { .move($0, .end) }])])
    let new = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    try check([
      new, change([:], ["shapes": [.insert(new.uuid, .after([ids[2]])), .remove(ids[2])]]),
    ])
    // Two fragments about the same collection, and one that moves a model between two.
    try check([
      change([:], ["shapes": [.remove(ids[4])]]), change([:], ["shapes": [.remove(ids[5])]]),
    ])
    try check([
      change([:], ["shapes": [.remove(ids[4])], "hidden": [.insert(ids[4], .start)]])
    ])
  }

  @Test("A collection that an old client names as a whole")
  func wholeCollection() throws {
    let names = shapes.map(name)
    try check([change(["shapes": .array([names[5], names[0], names[2]])])], version: 1)
    let new = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    try check(
      [new, change(["shapes": .array([.string(new.uuid.wireText)] + names)])], version: 1)
  }

  @Test("A model that leaves comes back with what it had before the change set")
  func changedAndRemoved() throws {
    try check([
      SyncFragment(
        .change, uuid: shapes[2].uuid, className: "Shape", properties: ["label": "last words"],
        operations: ["parts": [.remove(shapes[2].parts[0].uuid)]]),
      change([:], ["shapes": [.remove(shapes[2].uuid)]]),
    ])
    // The same change set brings a model to it, which was nowhere before.
    let new = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    try check([
      new,
      SyncFragment(
        .change, uuid: shapes[4].uuid, className: "Shape",
        properties: ["corners/1": .string(new.uuid.wireText), "x": 2],
        operations: ["parts": [.insert(new.uuid, .start)]]),
      change([:], ["shapes": [.remove(shapes[4].uuid)]]),
    ])
  }

  @Test("Entries of dictionaries, with the models that leave with them")
  func entries() throws {
    try check([change(["named/x": .null])])
    try check([change(["named/x": name(shapes[4]), "named/y": name(shapes[5])])])
    let new = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    try submit([new, change(["named/z": .string(new.uuid.wireText)])])
    try check([change(["named/z": .null])])
  }

  @Test("What the classes do not know is in no inverse, and is not changed by one")
  func unknown() throws {
    let strange = SyncFragment(.add, uuid: UUID(), className: "Cloud", properties: ["wet": true])
    try submit([strange, change(["mood": "good", "sky": .string(strange.uuid.wireText)])])
    let set = try submit([
      SyncFragment(
        .change, uuid: strange.uuid, className: "Cloud", properties: ["wet": false]),
      change(["mood": "bad", "likes": 1], ["shapes": [.remove(shapes[3].uuid)]]),
    ])
    #expect(
      set.undo.map(\.uuid)
        == [shapes[3].uuid, shapes[3].parts[0].uuid, canvas.uuid].sorted {
          ($0 == canvas.uuid ? 1 : 0, $0) < ($1 == canvas.uuid ? 1 : 0, $1)
        })
    try check([change(["likes": 2])])
    #expect(scope.unknownValue(PropertyKey(uuid: canvas.uuid, name: "mood")) == "bad")
    #expect(scope.unknownModel(strange.uuid)?.properties["wet"] == false)
  }

  @Test("Several fragments of one model, each of which others have overwritten or not")
  func severalFragments() throws {
    let set = try submit([change(["name": "hers"]), change(["likes": 7])])
    try submit([change(["name": "his"])])
    scope.revert(set)
    #expect(canvas.name == "his" && canvas.likes == 250)
  }

  @Test("What has had no effect undoes nothing of others, and what came and went leaves nothing")
  func noEffect() throws {
    let ids = shapes.map(\.uuid)
    let set = try submit([change([:], ["shapes": [.insert(ids[6], .end), .remove(UUID())]])])
    #expect(set.undo.isEmpty)
    let new = SyncFragment(.add, uuid: UUID(), className: "Shape", properties: [:])
    let passing = try submit([
      new, change([:], ["shapes": [.insert(new.uuid, .end)]]),
      change(["name": "z"], ["shapes": [.remove(new.uuid)]]),
    ])
    #expect(passing.undo.map(\.kind) == [.change] && scope.revert(passing).isComplete)
  }

  @Test("A change of many entries and many operations is noted in one pass")
  func many() throws {
    let count = 3_000
    var entries: [(String, JSONValue)] = []
    for number in 0..<count { entries.append(("named/\(number)", name(shapes[number % 7]))) }
    var fragments = [change(JSONObject(entries))]
    let moves = (0..<count).map { PropertyOperation.move(shapes[$0 % 7].uuid, .start) }
    for start in stride(from: 0, to: count, by: 100) {
      fragments.append(change([:], ["shapes": Array(moves[start..<start + 100])]))
    }
    try check(fragments)
  }

  @Test("What others have written since stays")
  func later() throws {
    let set = try submit([
      change(["name": "hers"], ["likes": [.add(1)], "shapes": [.remove(shapes[3].uuid)]])
    ])
    try submit([
      change(["name": "his"], ["likes": [.add(10)], "shapes": [.remove(shapes[2].uuid)]])
    ])
    #expect(scope.revert(set).isComplete)
    #expect(canvas.name == "his" && canvas.likes == 260)
    #expect(canvas.shapes.map(\.label) == ["0", "1", "3", "4", "5", "6"])
    #expect(canvas.shapes[2].parts.count == 1)
  }

  @Test("Nothing is noted for a log that is not there and an app that does not listen")
  func unwanted() {
    host.records.store = nil
    let submitter = ScopeOrder.Submitter(session: 1, proven: 0, rebases: true, missed: .init())
    let result = host.submit([change(["name": "new"])], isAtomic: false, by: submitter)
    #expect(result.item != nil && result.set == nil)
  }
}
