import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Local changes of an old version leave what it does not know", .serialized, .paced)
struct UnknownChangesTests {
  let world = InMemoryWorld(unknown: .keep)
  let old: WorldClient
  let new: WorldClient
  var canvas: NewCanvas { new.scope.root as! NewCanvas }

  init() {
    old = world.addClient()
    new = world.addClient(root: NewCanvas(), models: [Circle.self])
    old.join()
    new.join()
    world.settle()
  }

  private func expectAllEqual() throws {
    world.settle()
    #expect(old.rejections + new.rejections == [])
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(try UnknownSyncTests.upgraded(world.scope) == new.scope.canonicalJSON)
  }

  private func change(_ uuid: UUID, _ name: String, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: uuid, className: name, properties: properties)
  }

  @Test("Taking back a change set of a newer version takes back what the old one knows")
  func revert() throws {
    let group = Group()
    group.label = "group"
    canvas.groups = [group]
    (canvas.name, canvas.title) = ("mine", "new")
    try expectAllEqual()
    let root = canvas.uuid
    let set = ChangeSet(
      fragments: [
        change(root, "Canvas", ["name": "mine", "title": "new"]),
        change(group.uuid, "Group", ["label": "group"]),
      ],
      undo: [
        change(root, "Canvas", ["name": "before", "title": "before"]),
        change(group.uuid, "Group", ["label": "before"]),
      ])
    let report = old.scope.revert(set)
    #expect(
      report.errors.map(\.error) == [
        .unknownProperty(className: "Canvas", model: root, property: "title"),
        .unknownClass(className: "Group", model: group.uuid),
      ])
    #expect(old.canvas.name == "before")
    #expect(old.scope.unknownProperties(of: old.canvas)["title"] == "new")
    try expectAllEqual()
    #expect(canvas.name == "before" && canvas.title == "new" && group.label == "group")
  }

  @Test("Operations of a newer version on what the old one does not know are not taken back")
  func revertOperations() throws {
    canvas.groups = [Group(), Group()]
    try expectAllEqual()
    let before = old.scope.unknownProperties(of: old.canvas)
    let removal = SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
      operations: ["groups": [.remove(canvas.groups[0].uuid)]])
    let report = old.scope.revert(ChangeSet(fragments: [], undo: [removal]))
    #expect(
      report.errors.map(\.error) == [
        .unknownProperty(className: "Canvas", model: canvas.uuid, property: "groups")
      ])
    #expect(old.scope.unknownProperties(of: old.canvas) == before)
    try expectAllEqual()
    #expect(canvas.groups.count == 2)
  }

  @Test("Restoring an earlier state restores what the old version knows")
  func restore() throws {
    let (circle, group) = (Circle(), Group())
    canvas.shapes = [circle]
    canvas.groups = [group]
    try expectAllEqual()
    let state = old.scope.fullState()
    (canvas.name, canvas.title, circle.radius, group.label) = ("later", "later", 9, "later")
    circle.x = 4
    canvas.groups.append(Group())
    try expectAllEqual()
    old.scope.restore(state)
    #expect(old.canvas.name == nil && old.canvas.shapes[0].x == 0)
    try expectAllEqual()
    #expect(canvas.name == nil && canvas.title == "later" && canvas.groups.count == 2)
    #expect(circle.radius == 9 && circle.x == 0 && group.label == "later")
  }

  @Test("Models that only unknown properties hold do not come back with an earlier state")
  func restoreOfKept() throws {
    let group = Group()
    canvas.groups = [group]
    try expectAllEqual()
    let state = old.scope.fullState()
    canvas.groups = []
    canvas.name = "later"
    try expectAllEqual()
    let report = old.scope.restore(state)
    #expect(!report.isComplete)
    #expect(old.canvas.name == nil && old.scope.unknownModels.isEmpty)
    try expectAllEqual()
    #expect(canvas.groups.isEmpty)
  }

  @Test("A model that only unknown properties hold is put somewhere without its values")
  func putSomewhere() throws {
    let shape = NewShape()
    (shape.x, shape.note) = (3, "kept")
    canvas.favorite = shape
    try expectAllEqual()
    #expect(old.scope.unknownModels.map(\.uuid) == [shape.uuid])
    let report = old.scope.revert(insertion(of: shape))
    #expect(report.isComplete && old.canvas.shapes.map(\.x) == [3])
    old.scope.flush()
    (shape.x, shape.rotation) = (4, 90)
    new.scope.flush()
    while !new.link!.toServer.isEmpty { world.deliver(new.link!, toServer: true) }
    try expectAllEqual()
    #expect(canvas.shapes == [shape] && shape.x == 4 && shape.rotation == 90)
    #expect(old.canvas.shapes.map(\.x) == [4] && canvas.favorite === shape)
  }

  @Test("It stays when that is rolled back")
  func rolledBack() throws {
    struct Unwanted: Error {}
    let shape = NewShape()
    shape.note = "kept"
    canvas.favorite = shape
    try expectAllEqual()
    #expect(throws: Unwanted.self) {
      try old.scope.modify {
        old.scope.revert(insertion(of: shape))
        #expect(old.canvas.shapes.count == 1)
        throw Unwanted()
      }
    }
    #expect(old.canvas.shapes.isEmpty)
    #expect(old.scope.unknownModels.map(\.uuid) == [shape.uuid])
    try expectAllEqual()
    shape.rotation = 5
    try expectAllEqual()
  }

  /// A change set whose inverse inserts a shape into the canvas.
  private func insertion(of shape: NewShape) -> ChangeSet {
    let insertion = SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": [.insert(shape.uuid, .end)]])
    return ChangeSet(fragments: [], undo: [insertion])
  }

  @Test("A model of an unknown class comes back with an earlier state, with all that it had")
  func restoreOfRemoved() throws {
    let circle = Circle()
    (circle.radius, circle.note) = (3, "round")
    canvas.shapes = [circle]
    try expectAllEqual()
    let state = old.scope.fullState()
    canvas.shapes = []
    try expectAllEqual()
    #expect(old.scope.restore(state).isComplete)
    try expectAllEqual()
    let back = try #require(canvas.shapes.first as? Circle)
    #expect(back.uuid == circle.uuid && back.radius == 3 && back.note == "round")
  }

  @Test(
    "A model that others still have comes back with an earlier state, with what they have changed")
  func restoreOfChanged() throws {
    let circle = Circle()
    (circle.radius, circle.note) = (3, "round")
    canvas.shapes = [circle]
    // The old version does not know this property, so that it keeps the model without an object.
    canvas.favorite = circle
    try expectAllEqual()
    let state = old.scope.fullState()
    canvas.shapes = []
    circle.radius = 9
    try expectAllEqual()
    #expect(old.scope.restore(state).isComplete)
    try expectAllEqual()
    #expect(canvas.shapes.first === circle && circle.radius == 9 && circle.note == "round")
  }

  @Test(
    "A model that an old version removes and puts back keeps what others change meanwhile",
    arguments: [false, true])
  func putBack(isHeldElsewhere: Bool) throws {
    let circle = Circle()
    (circle.radius, circle.note) = (3, "round")
    canvas.shapes = [circle]
    // The old version does not know this property, so that the server keeps the model without an object.
    if isHeldElsewhere { canvas.favorite = circle }
    try expectAllEqual()
    let stand = try #require(old.canvas.shapes.first)
    old.canvas.shapes.remove(stand)
    old.scope.flush()
    old.canvas.shapes.append(stand)
    old.scope.flush()
    circle.radius = 4
    new.scope.flush()
    while !new.link!.toServer.isEmpty { world.deliver(new.link!, toServer: true) }
    try expectAllEqual()
    #expect(canvas.shapes.map { ($0 as? Circle)?.radius } == [4])
  }
}
