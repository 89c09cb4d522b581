import Foundation
import Testing

@testable import Jetstream

/// What the random changes of the forest have found about taking change sets back, each as short as it
/// gets.
@Suite(.paced(counting: Plant.self)) struct ForestUndoFindingTests {
  let root = Plant()
  let scope: Scope
  let replica = Scope(
    name: "Replica", root: Plant(), models: [Bush.self], ticker: .manual())

  init() { scope = manualScope(root) }

  /// The replica gets what the scope has.
  func begin() throws {
    scope.flush()
    try replica.applyFullState(scope.fullState(), rootUUID: root.uuid)
  }

  func change(of model: Plant, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: model.uuid, className: "Plant", properties: properties)
  }

  /// Others do something that both sides understand.
  func others(_ fragments: [SyncFragment]) {
    for side in [scope, replica] {
      let report = side.apply(fragments)
      #expect(report.isComplete, "\(side.name): \(report.errors)")
    }
  }

  /// Others add a model and put it somewhere.
  func others(addTo parent: Plant, _ key: String, _ properties: JSONObject = [:]) -> UUID {
    let uuid = UUID()
    let reference = JSONValue.string(uuid.wireText)
    others([
      SyncFragment(.add, uuid: uuid, className: "Plant", properties: properties),
      change(of: parent, [key: key == "left" ? reference : .array([reference])]),
    ])
    return uuid
  }

  /// What was changed becomes a set that leads the replica there, back and there again. It knows no model
  /// but those of its tree.
  @discardableResult
  func checkWayBack() throws -> ChangeSet {
    let before = replica.canonicalJSON
    let sets = scope.changeSets {}
    #expect(sets.count == 1)
    let set = try #require(sets.first)
    for (fragments, content) in [
      (set.fragments, scope.canonicalJSON), (set.undo, before),
      (set.fragments, scope.canonicalJSON),
    ] {
      let report = replica.apply(fragments)
      #expect(report.isComplete, "\(report.errors) of \(fragments)")
      #expect(replica.canonicalJSON == content)
    }
    return set
  }

  @Test("What others put below a model that has left comes back as they know it")
  func placedBelowDeparted() throws {
    let away = Plant()
    root.items = [away]
    try begin()
    away.detach()
    let uuid = others(addTo: away, "items", ["number": 1])
    let placed = try #require(away.items.first)
    placed.number = 5
    placed.left = Plant()
    others([
      SyncFragment(.change, uuid: uuid, className: "Plant", properties: ["title": "others"])
    ])
    #expect(placed.title == "others")
    try checkWayBack()
  }

  @Test("What others put below a model that has left is known when that returns")
  func placedBelowReturned() throws {
    let away = Plant()
    root.items = [away]
    try begin()
    away.detach()
    _ = others(addTo: away, "items")
    let placed = try #require(away.items.first)
    placed.number = 5
    root.others = [away]
    let set = try checkWayBack()
    #expect(set.fragments.allSatisfy { $0.kind == .change })
    #expect(set.bases[placed.uuid] == ["number": 0])
  }

  @Test("What others put where a change hides it comes back when that is taken back")
  func placedBehindChange() throws {
    try begin()
    root.left = Plant()
    let uuid = others(addTo: root, "left", ["number": 1])
    #expect(scope.model(uuid) == nil)
    try checkWayBack()
  }

  @Test("What others put where a change hides it, and what holds itself, is let go")
  func circleBehindChange() throws {
    let hidden = Plant()
    root.items = [hidden]
    try begin()
    let before = Plant.alive.load(ordering: .relaxed)
    root.left = root
    let uuid = UUID()
    let report = scope.apply([
      change(of: root, ["left": .string(uuid.wireText), "items": []]),
      SyncFragment(
        .add, uuid: uuid, className: "Plant",
        properties: ["others": [.string(uuid.wireText), .string(hidden.uuid.wireText)]]),
    ])
    #expect(report.isComplete)
    #expect(hidden.parents.isEmpty)
    root.left = nil
    #expect(Plant.alive.load(ordering: .relaxed) == before)
  }

  @Test("What others take out of a model that has left does not come back with it")
  func takenOutOfDeparted() throws {
    let (away, below) = (Plant(), Plant())
    root.items = [away]
    away.items = [below]
    try begin()
    away.detach()
    others([change(of: away, ["items": []])])
    let set = try checkWayBack()
    #expect(set.undo.map(\.uuid) == [away.uuid, root.uuid])
  }

  @Test("What others take away is still in a model that has left, as they know it")
  func takenAwayButDeparted() throws {
    let (away, below) = (Plant(), Plant())
    root.items = [away]
    root.others = [below]
    away.items = [below]
    try begin()
    away.detach()
    below.number = 3
    others([change(of: root, ["others": []])])
    below.count = 4
    try checkWayBack()
  }

  @Test(
    "A model that goes into another scope comes back as the others know it",
    arguments: [false, true])
  func throughAnotherScope(leavesThatToo: Bool) throws {
    let (moved, below) = (Plant(), Plant())
    root.items = [moved]
    moved.left = below
    try begin()
    below.number = 1
    let other = Scope(name: "Other", ticker: .manual())
    other.root = moved
    moved.number = 2
    other.flush()
    below.title = "here"
    if leavesThatToo { other.root = nil }
    for side in [scope, replica] { side.apply([change(of: below, ["count": 7])]) }
    try checkWayBack()
  }

  @Test("Others put something into a model that has gone into another scope")
  func placedInAnotherScope() throws {
    let moved = Plant()
    root.items = [moved]
    try begin()
    let other = Scope(name: "Other", ticker: .manual())
    other.root = moved
    _ = others(addTo: moved, "items", ["number": 1])
    #expect(moved.items.isEmpty)
    try checkWayBack()
  }

  @Test("A model that comes back from another scope gets its values back")
  func backFromAnotherScope() throws {
    let moved = Plant()
    root.left = moved
    try begin()
    let other = Scope(name: "Other", ticker: .manual())
    other.root = moved
    moved.number = 2
    other.root = nil
    root.right = moved
    try checkWayBack()
  }

  @Test("A model that only a local property holds by now comes back as the others know it")
  func onlyLocal() throws {
    let (picked, below) = (Plant(), Plant())
    root.items = [picked]
    root.picks = [picked]
    picked.left = below
    try begin()
    below.number = 1
    root.items = []
    // From here on the model and what it holds are of this side alone.
    others([change(of: root, ["number": 1])])
    below.title = "here"
    picked.number = 2
    try checkWayBack()
    picked.number = 3
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("A model that only a local property held for a while gets its values back")
  func sharedAgain() throws {
    let picked = Plant()
    root.items = [picked]
    root.picks = [picked]
    try begin()
    root.items = []
    others([change(of: root, ["number": 1])])
    picked.number = 2
    root.others = [picked]
    try checkWayBack()
  }

  @Test("A model that others take away while a change here moves it is added anew")
  func takenAwayWhileMoved() throws {
    let (moved, below, kept) = (Plant(), Plant(), Plant())
    root.items = [moved]
    root.others = [kept]
    moved.left = below
    try begin()
    kept.left = moved
    below.number = 1
    others([change(of: root, ["items": []])])
    let set = try checkWayBack()
    let added = set.fragments.filter { $0.kind == .add }
    #expect(Set(added.map(\.uuid)) == [moved.uuid, below.uuid])
  }

  @Test("A model that others leave where it was is moved, and not added")
  func movedWhileOthersWrite() throws {
    let (moved, below, kept) = (Plant(), Plant(), Plant())
    root.items = [moved]
    root.others = [kept]
    moved.items = [below]
    try begin()
    root.items = []
    kept.left = moved
    moved.items = []
    moved.others = [below]
    others([change(of: kept, ["number": 1])])
    let set = try checkWayBack()
    #expect(set.fragments.allSatisfy { $0.kind == .change })
  }
}
