import Foundation
import Testing

@testable import Jetstream

/// The same of models that have left, and of other instances with their UUIDs.
extension ForestUndoFindingTests {
  @Test("J051: another instance with the same UUID leaves a collection as it was")
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

  @Test("J051: another instance with the same UUID at another place is a move")
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
    "J051: what others change of a model behind another instance with its UUID is known",
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

  @Test("J051: what others put into a model behind another instance comes back with it")
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
    "J051: another instance keeps something unknown that others gave a model after it had left",
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

  @Test("J051: a model that returns keeps something unknown that others gave it in another scope")
  func unknownInAnotherScope() throws {
    let moved = Plant()
    root.items = [moved]
    try begin()
    let other = Scope(name: "Other", ticker: .manual())
    moved.makeRoot(of: other)
    for side in [scope, replica] { side.apply([change(of: moved, ["what": true])]) }
    other.releaseRoot()
    root.others = [moved]
    try checkWayBack()
  }

  @Test("J051: something unknown is kept by whichever instance comes last")
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

  @Test("J051: an instance that comes along with what others bring back keeps something unknown")
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
