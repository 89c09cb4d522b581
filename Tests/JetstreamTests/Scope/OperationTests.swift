import Foundation
import Testing

@testable import Jetstream

/// Operations that come from elsewhere.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct OperationTests {
  let root = Node("root")
  let scope: Scope
  let nodes = (0..<4).map { Node("\($0)") }

  init() {
    scope = manualScope(root)
    root.items = ModelArray(nodes)
    scope.flush()
  }

  private func change(_ operations: PropertyOperations) -> SyncFragment {
    SyncFragment(
      .change, uuid: root.uuid, className: "Node", properties: [:], operations: operations)
  }

  private func apply(_ operations: PropertyOperation...) -> [ScopeError] {
    scope.apply([change(["items": operations])]).errors.map(\.error)
  }

  private var labels: [String] { root.items.map(\.label) }

  @Test("models are put, moved and taken out, one operation after the other")
  func inOrder() {
    let new = UUID()
    let addition = SyncFragment(.add, uuid: new, className: "Node", properties: ["label": "new"])
    let report = scope.apply([
      change([
        "items": [
          .insert(new, .after([nodes[1].uuid])), .move(nodes[0].uuid, .after([new])),
          .remove(nodes[3].uuid), .move(nodes[2].uuid, .start),
        ]
      ]), addition,
    ])
    #expect(report.isComplete)
    #expect(labels == ["2", "1", "new", "0"])
    #expect(nodes[3].scope == nil && scope.model(new)?.scope === scope)
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("what does not fit is reported and left out, the rest is done")
  func misfits() {
    let unknown = UUID()
    #expect(
      apply(.insert(unknown, .end), .remove(unknown), .add(1), .remove(nodes[0].uuid)) == [
        .unknownReference(
          className: "Node", model: root.uuid, property: "items", missing: unknown.wireText),
        .invalidValue(
          className: "Node", model: root.uuid, property: "items", expected: "array of UUIDs"),
      ])
    #expect(labels == ["1", "2", "3"])
    let errors = scope.apply([change(["label": [.add(1)], "number": [.remove(unknown)]])]).errors
    #expect(errors.count == 2)
    #expect(root.label == "root" && root.number == 0)
  }

  @Test("a place that is not known is the next one that is, else the end")
  func anchors() {
    _ = apply(.move(nodes[0].uuid, .after([UUID(), nodes[2].uuid])))
    #expect(labels == ["1", "2", "0", "3"])
    _ = apply(.move(nodes[1].uuid, .after([UUID()])))
    #expect(labels == ["2", "0", "3", "1"])
    // Moved behind itself, or put where it stands.
    _ = apply(.move(nodes[3].uuid, .after([nodes[3].uuid])), .insert(nodes[1].uuid, .end))
    #expect(labels == ["2", "0", "3", "1"])
  }

  @Test("local changes that are in no set yet stay on top, and go out as what they are")
  func pending() {
    let mine = Node("mine")
    root.items.append(mine)
    root.items.remove(nodes[1])
    _ = apply(.move(nodes[0].uuid, .end), .remove(nodes[2].uuid))
    #expect(labels == ["3", "0", "mine"])
    let sets = scope.changeSets {}
    #expect(
      sets.first?.fragments.last?.operations == [
        "items": [.remove(nodes[1].uuid), .insert(mine.uuid, .end)]
      ])
  }

  @Test("observers are told of remote operations step by step, as of local ones")
  func observed() {
    let listener = Listener()
    root.signals.onCollectionChange.listen(listener) { me, change in
      me.log.append("\(change.kind) \((change.model as! Node).label)")
    }
    _ = apply(.remove(nodes[1].uuid), .move(nodes[3].uuid, .start))
    #expect(listener.log == ["remove(at: 1) 1", "move(from: 2, to: 0) 3"])
  }

  @Test("what a set did to a counter is what was added, and adds up with what others add")
  func counters() {
    let tally = Tally()
    let (mine, theirs) = (manualScope(tally), manualScope(Tally(uuid: tally.uuid)))
    tally.count = 5
    tally.count += 2
    let sets = mine.changeSets {}
    #expect(sets.first?.fragments.first?.operations == ["count": [.add(7)]])
    #expect(sets.first?.fragments.first?.properties == [:])
    #expect(sets.first?.undo.first?.operations == ["count": [.add(-7)]])
    let copy = theirs.root as! Tally
    copy.count = 10
    theirs.apply(sets[0].fragments)
    #expect(copy.count == 17)
    // Their own part is what they send.
    let answer = theirs.changeSets {}
    #expect(answer.first?.fragments.first?.operations == ["count": [.add(10)]])
    mine.apply(answer[0].fragments)
    #expect(tally.count == 17)
    #expect(mine.changeSets { tally.count += 0 }.isEmpty)
  }

  @Test("additions that take each other back are told to no observer")
  func takenBack() {
    let tally = Tally()
    let scope = manualScope(tally)
    var told = 0
    tally.observeChange(tally, \.count, isolation: here()) { _ in told += 1 }
    tally.signals.onPropertyChange.listen(tally) { _, _ in told += 1 }
    func add(_ numbers: Int64...) {
      let fragment = SyncFragment(
        .change, uuid: tally.uuid, className: "Tally", properties: [:],
        operations: ["count": numbers.map { .add($0) }])
      scope.apply([fragment])
      scope.ticker.tick()
    }
    add(5, -5)
    #expect(told == 0 && tally.count == 0)
    add(5, -3)
    #expect(told == 2 && tally.count == 2)
  }

  @Test(
    "a number that others write counts beneath what was added and is in no change set yet",
    arguments: [10, .double(10)] as [JSONValue])
  func counterBehindValue(number: JSONValue) throws {
    let tally = Tally()
    let scope = manualScope(tally)
    tally.count = 3
    #expect(scope.apply([change(of: tally, ["count": number])]).isComplete)
    #expect(tally.count == 13)
    // The same number again changes nothing.
    #expect(scope.apply([change(of: tally, ["count": number])]).isComplete)
    #expect(tally.count == 13)
    let set = try #require(scope.changeSets {}.first)
    #expect(set.fragments[0].operations["count"] == [.add(3)])
    // An addition that was taken back leaves nothing in front of it.
    tally.count += 1
    tally.count -= 1
    #expect(scope.apply([change(of: tally, ["count": 20])]).isComplete)
    #expect(tally.count == 20 && scope.changeSets {}.isEmpty)
  }

  @Test(
    "additions of others that meet a bound leave what was added meanwhile",
    arguments: [(120, -3, 20, 124, -3), (-120, 3, -20, -125, 3), (120, 5, -10, 115, 5)])
  func counterBehindBound(shared: Int8, mine: Int8, theirs: Int64, sum: Int8, sent: Int64) throws {
    let tally = Tally()
    let scope = manualScope(tally)
    tally.small = shared
    scope.flush()
    tally.small += mine
    let fragment = SyncFragment(
      .change, uuid: tally.uuid, className: "Tally", properties: [:],
      operations: ["small": [.add(theirs)]])
    #expect(scope.apply([fragment]).isComplete)
    #expect(tally.small == sum)
    let set = try #require(scope.changeSets {}.first)
    #expect(set.fragments[0].operations["small"] == [.add(sent)])
  }

  private func change(of tally: Tally, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: tally.uuid, className: "Tally", properties: properties)
  }

  @Test("a counter stays within its type")
  func saturated() {
    let tally = Tally()
    let scope = manualScope(tally)
    let fragment = SyncFragment(
      .change, uuid: tally.uuid, className: "Tally", properties: [:],
      operations: ["small": [.add(100), .add(100), .add(-1)]])
    #expect(scope.apply([fragment]).isComplete)
    #expect(tally.small == 126)
  }

  @Test("peers that know no operations get whole values of the same set")
  func whole() {
    let tally = Tally()
    root.left = tally.node
    let own = manualScope(tally)
    var wholes: [ChangeSet] = []
    own.onSealedChanges.listen { wholes.append($0.whole) }
    let sets = own.changeSets {
      tally.count = 3
      tally.nodes.append(Node("x"))
    }
    #expect(wholes.map(\.id) == sets.map(\.id))
    let fragment = wholes[0].fragments.last!
    #expect(fragment.operations.isEmpty)
    #expect(fragment.properties == ["count": 3, "nodes": tally.nodes._jsonValue])
    #expect(wholes[0].bases == [tally.uuid: ["count": 0, "nodes": []]])
  }
}

private final class Tally: ModelObject {
  @Property(.counter) var count = 0
  @Property(.counter) var small: Int8 = 0
  @Property var nodes: ModelArray<Node> = []
  @Property(.local) var node: Node?
}
