import Foundation
import Testing

@testable import Jetstream

/// The same of models that have left, and of other instances with their UUIDs.
extension ForestUndoFindingTests {
  private func edit(_ model: Plant, _ operations: [PropertyOperation]) -> SyncFragment {
    var fragment = change(of: model, [:])
    fragment.operations["items"] = operations
    return fragment
  }

  @Test("Another instance with the same UUID leaves a collection as it was")
  func twinInPlace() throws {
    let model = Plant()
    let twin = Plant(uuid: model.uuid)
    root.others = [Plant(), model, Plant()]
    try begin()
    twin.number = 1
    root.others.remove(at: 1)
    root.others.insert(twin, at: 1)
    let set = try checkWayBack()
    #expect(set.fragments.map(\.kind) == [.add])
  }

  @Test("Another instance with the same UUID at another place is a move")
  func twinElsewhere() throws {
    let model = Plant()
    let twin = Plant(uuid: model.uuid)
    root.others = [model, Plant(), Plant()]
    try begin()
    twin.number = 1
    root.others.remove(at: 0)
    root.others.append(twin)
    try checkWayBack()
  }

  @Test(
    "What others change of a model behind another instance with its UUID is known",
    arguments: [false, true])
  func changedBehindTwin(returns: Bool) throws {
    let away = Plant()
    root.items = [away]
    try begin()
    root.items = []
    root.others = [Plant(uuid: away.uuid)]
    let itself = JSONValue.string(away.uuid.wireText)
    others([change(of: away, ["title": "others", "others": [itself]])])
    root.others = []
    if returns { root.right = away }
    #expect(away.others.first === away)
    try checkWayBack()
  }

  @Test("What others take out of a collection is not held by another instance in its place")
  func takenOutBehindTwin() throws {
    let away = Plant()
    root.items = [away, Plant()]
    try begin()
    root.items.remove(at: 0)
    root.items.insert(Plant(uuid: away.uuid), at: 0)
    others([edit(root, [.remove(away.uuid)])])
    try checkWayBack()
  }

  @Test("What others move is moved, although another instance stands in its place")
  func movedBehindTwin() throws {
    let away = Plant()
    root.items = [away, Plant(), Plant()]
    try begin()
    root.items.remove(at: 0)
    root.items.insert(Plant(uuid: away.uuid), at: 0)
    others([edit(root, [.move(away.uuid, .end), .move(root.items[1].uuid, .after([away.uuid]))])])
    try checkWayBack()
  }

  @Test(
    "What others take out of a model that has left is gone, also with an instance elsewhere")
  func takenOutOfDepartedBehindTwin() throws {
    let (away, below) = (Plant(), Plant())
    root.left = away
    away.items = [below]
    try begin()
    root.left = nil
    root.others = [Plant(uuid: below.uuid)]
    others([edit(away, [.remove(below.uuid)])])
    #expect(away.items.isEmpty)
    root.others = []
    try checkWayBack()
  }

  @Test(
    "What others take out of a collection is out of it, although it is in another scope",
    arguments: [false, true])
  func takenOutInAnotherScope(hasTwin: Bool) throws {
    let moved = Plant()
    root.items = [moved]
    try begin()
    let other = Scope(name: "Other", ticker: .manual())
    other.root = moved
    if hasTwin { root.left = Plant(uuid: moved.uuid) }
    others([edit(root, [.remove(moved.uuid)])])
    if hasTwin { return _ = try checkWayBack() }
    #expect(scope.changeSets {}.isEmpty)
    #expect(replica.canonicalJSON == scope.canonicalJSON)
  }

  @Test("What others put into a model behind another instance comes back with it")
  func placedBehindTwin() throws {
    let away = Bush()
    root.items = [away]
    try begin()
    root.items = []
    root.others = [Plant(uuid: away.uuid)]
    let uuid = UUID()
    others([
      SyncFragment(.add, uuid: uuid, className: "Bush", properties: ["number": 1]),
      SyncFragment(
        .change, uuid: away.uuid, className: "Bush", properties: ["crown": .string(uuid.wireText)]),
    ])
    root.others = []
    try checkWayBack()
  }

  @Test(
    "Another instance keeps something unknown that others gave a model after it had left",
    arguments: [false, true])
  func unknownForTwin(isOperation: Bool) throws {
    let away = Plant()
    root.items = [away]
    try begin()
    root.items = []
    var fragment = change(of: away, isOperation ? [:] : ["what": true])
    if isOperation { fragment.operations["what"] = [.add(2)] }
    others([fragment])
    root.others = [Plant(uuid: away.uuid)]
    try checkWayBack()
  }

  @Test("A model that returns keeps something unknown that others gave it in another scope")
  func unknownInAnotherScope() throws {
    let moved = Plant()
    root.items = [moved]
    try begin()
    let other = Scope(name: "Other", ticker: .manual())
    other.root = moved
    for side in [scope, replica] { side.apply([change(of: moved, ["what": true])]) }
    other.root = nil
    root.others = [moved]
    try checkWayBack()
  }

  @Test("Something unknown is kept by whichever instance comes last")
  func unknownForSecondTwin() throws {
    let away = Plant()
    root.items = [away]
    try begin()
    others([change(of: away, ["what": true])])
    root.items = []
    root.others = [Plant(uuid: away.uuid)]
    root.others = []
    root.others = [Plant(uuid: away.uuid)]
    try checkWayBack()
  }

  @Test("An instance that comes along with what others bring back keeps something unknown")
  func unknownForTwinBelow() throws {
    let (away, above) = (Plant(), Plant())
    root.items = [away, above]
    try begin()
    others([change(of: away, ["what": true])])
    root.items = []
    above.items = [Plant(uuid: away.uuid)]
    others([change(of: root, ["left": .string(above.uuid.wireText)])])
    try checkWayBack()
  }
}
