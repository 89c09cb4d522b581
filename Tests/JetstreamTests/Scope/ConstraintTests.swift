import Foundation
import Testing

@testable import Jetstream

/// What fragments have to look like, on plain values.
@Suite struct ConstraintTests {
  private let id = UUID()
  private let others = (0..<4).map { _ in UUID() }

  private func fragment(
    _ kind: SyncFragment.Kind = .change, _ className: String = "Cart",
    _ properties: JSONObject = [:], _ operations: PropertyOperations = [:]
  ) -> SyncFragment {
    SyncFragment(
      kind, uuid: id, className: className, properties: properties, operations: operations)
  }

  private func list(_ count: Int) -> JSONValue {
    .array(others.prefix(count).map { .string($0.wireText) })
  }

  @Test("Kind and class have to be the same")
  func kindAndClass() {
    let constraint = Constraint(.add, "Cart", allowsAdditionalProperties: true)
    #expect(constraint.isMet(by: fragment(.add)))
    #expect(!constraint.isMet(by: fragment(.add, "Order")))
    #expect(!constraint.isMet(by: fragment(.change)))
  }

  @Test("Other properties, as values or as operations, have to be allowed")
  func additionalProperties() {
    var constraint = Constraint(.change, "Cart", ["state": .newValue])
    let exact = fragment(.change, "Cart", ["state": "ordered"])
    let more = fragment(.change, "Cart", ["state": "ordered", "total": 1])
    let operated = fragment(.change, "Cart", ["state": "ordered"], ["stars": [.add(1)]])
    #expect(constraint.isMet(by: exact))
    #expect(!constraint.isMet(by: more) && !constraint.isMet(by: operated))
    constraint.allowsAdditionalProperties = true
    #expect([exact, more, operated].allSatisfy { constraint.isMet(by: $0) })
    #expect(!constraint.isMet(by: fragment(.change, "Cart", ["total": 1])))
    #expect(Constraint(.change, "Cart").isMet(by: fragment()))
  }

  @Test(
    "An exact value, whatever its kind; null stands for itself only",
    arguments: [
      ("ordered", "ordered", true), ("ordered", "Ordered", false), (1, 1, true), (1, 2, false),
      (1.0, 1, true), (1, 1.0, true), (1.5, 1, false), (true, true, true), (true, 1, false),
      (.null, .null, true), (.null, "", false), (.null, 0, false), ("", .null, false),
      ([1, "a", .null], [1, "a", .null], true), ([1, "a"], ["a", 1], false),
      (["a": 1, "b": 2], ["b": 2, "a": 1], true), (["a": 1], ["a": 1, "b": .null], false),
    ] as [(JSONValue, JSONValue, Bool)])
  func exactValue(_ expected: JSONValue, _ value: JSONValue, _ isMet: Bool) {
    let constraint = Constraint(.change, "Cart", ["state": .value(expected)])
    #expect(constraint.isMet(by: fragment(.change, "Cart", ["state": value])) == isMet)
    #expect(!constraint.isMet(by: fragment()))
    #expect(!constraint.isMet(by: fragment(.change, "Cart", [:], ["state": [.add(1)]])))
  }

  @Test("Any value, null too; but there has to be one")
  func newValue() {
    let constraint = Constraint(
      .change, "Cart", ["state": .newValue], allowsAdditionalProperties: true)
    for value in [.null, "", 0, list(2), ["a": 1]] as [JSONValue] {
      #expect(constraint.isMet(by: fragment(.change, "Cart", ["state": value])))
    }
    #expect(constraint.isMet(by: fragment(.change, "Cart", [:], ["state": [.add(1)]])))
    #expect(!constraint.isMet(by: fragment(.change, "Cart", ["other": 1])))
  }

  @Test(
    "A collection that is named as a whole has grown, or has shrunk, or neither",
    arguments: [(0, 1), (1, 0), (1, 1), (2, 2), (1, 3), (3, 1), (0, 0), (4, 2)])
  func wholeCollections(_ before: Int, _ now: Int) {
    let change = fragment(.change, "Cart", ["items": list(now)])
    let bases: JSONObject = ["items": list(before)]
    #expect(
      Constraint(.change, "Cart", ["items": .inserts]).isMet(by: change, bases: bases)
        == (now > before))
    #expect(
      Constraint(.change, "Cart", ["items": .removes]).isMet(by: change, bases: bases)
        == (now < before))
  }

  @Test("Without a base, or behind null, a collection was empty")
  func noBase() {
    for bases in [[:], ["items": .null]] as [JSONObject] {
      let inserts = Constraint(.change, "Cart", ["items": .inserts])
      let removes = Constraint(.change, "Cart", ["items": .removes])
      let full = fragment(.change, "Cart", ["items": list(1)])
      let empty = fragment(.change, "Cart", ["items": list(0)])
      #expect(inserts.isMet(by: full, bases: bases) && !removes.isMet(by: full, bases: bases))
      #expect(!inserts.isMet(by: empty, bases: bases) && !removes.isMet(by: empty, bases: bases))
    }
  }

  @Test("An addition inserts if its collection is not empty, and never removes")
  func additions() {
    for count in 0...2 {
      let addition = fragment(.add, "Cart", ["items": list(count)])
      // What happens to stand under the same UUID does not count.
      let bases: JSONObject = ["items": list(4)]
      for bases in [[:], bases] {
        #expect(
          Constraint(.add, "Cart", ["items": .inserts]).isMet(by: addition, bases: bases)
            == (count > 0))
        #expect(
          !Constraint(.add, "Cart", ["items": .removes]).isMet(by: addition, bases: bases))
      }
    }
  }

  @Test("What is no collection neither grows nor shrinks")
  func otherValues() {
    for value in [.null, "text", 3, ["a": 1]] as [JSONValue] {
      let change = fragment(.change, "Cart", ["items": value])
      for rule in [Constraint.Rule.inserts, .removes] {
        #expect(
          !Constraint(.change, "Cart", ["items": rule])
            .isMet(by: change, bases: ["items": list(2)]))
      }
    }
  }

  @Test("Operations are counted the same way; moves and sums count for nothing")
  func operations() {
    let steps: [([PropertyOperation], Int)] = [
      ([.insert(others[0], .end)], 1), ([.remove(others[0])], -1),
      ([.insert(others[0], .end), .remove(others[1])], 0),
      ([.insert(others[0], .start), .insert(others[1], .end), .remove(others[2])], 1),
      ([.remove(others[0]), .remove(others[1]), .insert(others[2], .after([others[3]]))], -1),
      ([.move(others[0], .start)], 0), ([.add(3)], 0), ([.add(-3)], 0),
    ]
    for (operations, growth) in steps {
      let change = fragment(.change, "Cart", [:], ["items": operations])
      #expect(Constraint(.change, "Cart", ["items": .inserts]).isMet(by: change) == (growth > 0))
      #expect(Constraint(.change, "Cart", ["items": .removes]).isMet(by: change) == (growth < 0))
    }
  }

  @Test("The entries of a dictionary count like the elements of a collection, under its name")
  func entries() {
    let uuid = JSONValue.string(others[0].wireText)
    let inserts = Constraint(.change, "Cart", ["items": .inserts])
    let removes = Constraint(.change, "Cart", ["items": .removes])
    let put = fragment(.change, "Cart", ["items/a": uuid])
    let taken = fragment(.change, "Cart", ["items/a": .null])
    #expect(inserts.isMet(by: put) && !inserts.isMet(by: put, bases: ["items/a": uuid]))
    #expect(removes.isMet(by: taken, bases: ["items/a": uuid]) && !removes.isMet(by: taken))
    #expect(!inserts.isMet(by: taken) && !removes.isMet(by: put))
    let moved = fragment(.change, "Cart", ["items/a": .null, "items/b": uuid])
    #expect(!inserts.isMet(by: moved, bases: ["items/a": uuid]))
    #expect(Constraint(.change, "Cart", ["items": .newValue]).isMet(by: moved))
    #expect(Constraint(.change, "Cart", ["items/a": .value(uuid)]).isMet(by: put))
    #expect(!Constraint(.change, "Cart", ["items": .newValue]).isMet(by: fragment()))
    #expect(!inserts.isMet(by: fragment(.change, "Cart", ["itemsToo/a": uuid])))
    #expect(
      Constraint(.add, "Cart", ["items": .inserts]).isMet(
        by: fragment(.add, "Cart", ["items/a": uuid])))
  }

  @Test("Each fragment has to meet one of the constraints; one that none meets does no harm")
  func wholeSets() {
    let order = SyncFragment(.add, uuid: others[0], className: "Order", properties: ["total": 3])
    let cart = fragment(.change, "Cart", ["items": list(1), "state": "ordered"])
    let set = ChangeSet(
      fragments: [order, cart], bases: [id: ["items": list(2), "state": "open"]])
    let addsOrder = Constraint(.add, "Order", ["total": .newValue])
    let changesCart = Constraint(
      .change, "Cart", ["items": .removes, "state": .value("ordered")])
    let unused = Constraint(.change, "Shop")
    #expect(set.fragments(notMeeting: [unused, changesCart, addsOrder]) == [])
    #expect(set.fragments(notMeeting: [unused, changesCart]) == [order])
    #expect(set.fragments(notMeeting: [addsOrder]) == [cart])
    #expect(set.fragments(notMeeting: []) == [order, cart])
    #expect(ChangeSet(fragments: [], undo: []).fragments(notMeeting: [unused]) == [])
  }

  @Test("Constraints are values: equal ones are equal, and can be kept in a set")
  func values() {
    let constraint = Constraint(.change, "Cart", ["items": .removes, "state": .value(1)])
    var other = constraint
    #expect(Set([constraint, other]).count == 1)
    other.properties["items"] = .inserts
    #expect(other != constraint)
  }
}
