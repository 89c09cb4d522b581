import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

private final class Bag: ModelObject {
  @Property var bags: ModelArray<Bag> = []
  @Property(.merge(.union)) var tags: [String] = []
}

/// A scope to which one session submits.
private struct World {
  let order: ScopeOrder
  private let root = UUID()
  let members: [UUID]

  /// A scope whose root holds a number of models, and has as many tags.
  init(_ hosting: RuleHosting, _ count: Int) {
    members = (0..<count).map { _ in UUID() }
    let content: any HostedContent
    switch hosting {
    case .schema:
      content = RowsContent(
        name: "Bag", Document(schema: ScopeSchema(of: Bag.self).schema, root: root))
    case .classes:
      content = ModelContent(Scope(name: "Bag", root: Bag(uuid: root), ticker: .manual()))
    }
    order = ScopeOrder(
      content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 1_000_000))
    submit(
      members.map { SyncFragment(.add, uuid: $0, className: "Bag", properties: [:]) } + [
        change([
          "bags": .array(members.map { .string($0.wireText) }),
          "tags": .array((0..<count).map { .string("tag \($0)") }),
        ])
      ])
  }

  func change(
    _ properties: JSONObject, _ operations: PropertyOperations = [:], bases: JSONObject = [:]
  ) -> SyncFragment {
    var fragment = SyncFragment(
      .change, uuid: root, className: "Bag", properties: properties, operations: operations)
    fragment.bases = bases
    return fragment
  }

  /// Returns the effort of a change set that is accepted.
  @discardableResult
  func submit(_ fragments: SyncFragment...) -> Int { submit(fragments) }

  @discardableResult
  private func submit(_ fragments: [SyncFragment]) -> Int {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: order.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    let result = order.submit(fragments, isAtomic: false, by: submitter)
    #expect(result.replies.compactMap(\.error).isEmpty)
    return result.effort
  }

  func move(_ count: Int) -> SyncFragment {
    change([:], ["bags": members.suffix(count).map { .move($0, .start) }])
  }
}

/// A change set of a few bytes may cost as much as what it changes is large: its session pays for that.
@Suite("The effort of change sets")
struct EffortTests {
  @Test("An operation on rows counts by the models among which it looks for its own")
  func operations() {
    let (small, large) = (World(.schema, 1_000), World(.schema, 8_000))
    let effort = small.submit(small.move(1))
    #expect(effort > 0 && effort < 100)
    #expect(small.submit(small.move(4)) >= 3 * effort)
    #expect(large.submit(large.move(1)) >= 7 * effort)
    // Hashing all of them once is the most that operations take.
    #expect(small.submit(small.move(500)) < 50 * effort)
    #expect(small.submit(small.change([:], ["bags": [.remove(small.members[0])]])) >= effort)
  }

  @Test("One on a small collection, and one on model objects, does not count")
  func smallOperations() {
    let (few, objects) = (World(.schema, 8), World(.classes, 1_000))
    #expect(few.submit(few.move(1)) == 0 && objects.submit(objects.move(1)) == 0)
  }

  @Test(
    "While sessions are told values, an operation counts by the models of its collection",
    arguments: RuleHosting.allCases)
  func values(_ hosting: RuleHosting) {
    let tests = World(hosting, 200)
    tests.order.needsValues = true
    #expect((200..<300).contains(tests.submit(tests.move(1))))
  }

  @Test(
    "A value that is merged counts by the size of the one there is", arguments: RuleHosting.allCases
  )
  func merged(_ hosting: RuleHosting) {
    let (small, large) = (World(hosting, 500), World(hosting, 4_000))
    let set = small.change(["tags": ["mine"]], bases: ["tags": []])
    let effort = small.submit(set)
    #expect(effort > 0)
    let other = large.change(["tags": ["mine"]], bases: ["tags": []])
    #expect(large.submit(other) >= 7 * effort)
  }

  @Test(
    "A model that is put back counts by the collections that are merged",
    arguments: RuleHosting.allCases)
  func putBack(_ hosting: RuleHosting) {
    let tests = World(hosting, 200)
    let holder = tests.members[0]
    let all = JSONValue.array(tests.members.dropFirst().map { .string($0.wireText) })
    tests.submit(
      SyncFragment(.change, uuid: holder, className: "Bag", properties: ["bags": all]))
    var addition = SyncFragment(.add, uuid: holder, className: "Bag", properties: ["bags": []])
    addition.bases = ["bags": []]
    #expect((199..<300).contains(tests.submit(addition)))
  }
}
