import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

private final class Desk: ModelObject {
  @Property var title = ""
  @Property var width: Float = 0
  @Property var café = ""
  @Property(.counter) var visits = 0
  @Property(.merge(.max)) var best = 0
  @Property(.local) var draft = ""
  @Property var labels: [String: String] = [:]
  @Property var lamps: ModelArray<Lamp> = []
  @Property var chosen: Lamp?
  @Property var drawers: ModelDictionary<String, Lamp> = [:]
  @Property var ruled: ModelArray<RuledLamp> = []
}

private final class Lamp: ModelObject {
  @Property var watts = 40
}

private final class RuledLamp: ModelObject {
  @Property(.range(0...100)) var watts = 40
}

@Suite("Submissions that only set plain values are judged without a validation")
struct PlainValuesTests {
  private let desk = Desk()
  private let lamp = Lamp()
  private let ruled = RuledLamp()
  private let order: ScopeOrder
  private let scope: Scope

  init() {
    desk.lamps = [lamp]
    desk.ruled = [ruled]
    scope = Scope(name: "Desk", root: desk, ticker: .manual())
    order = ScopeOrder(
      content: ModelContent(scope), epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
  }

  private var submitter: ScopeOrder.Submitter {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: order.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return submitter
  }

  private func change(
    _ properties: JSONObject, _ operations: PropertyOperations = [:], bases: JSONObject = [:],
    of model: ModelObject? = nil, as name: String? = nil
  ) -> SyncFragment {
    let model = model ?? desk
    return SyncFragment(
      .change, uuid: model.uuid, className: name ?? model.wireClassName, properties: properties,
      operations: operations, bases: bases)
  }

  private func isPlain(_ fragments: SyncFragment...) -> Bool {
    guard let draft = order.plainDraft(of: fragments, by: submitter) else { return false }
    let validated = order.validatedDraft(of: fragments, isAtomic: false, by: submitter)
    #expect(validated.effective == draft.effective)
    #expect(validated.positions == draft.positions && validated.accepted == draft.accepted)
    #expect(validated.replies.map(\.error) == draft.replies.map(\.error))
    #expect(validated.errors.isEmpty && !validated.isRejected && validated.effort == draft.effort)
    return true
  }

  @Test("Plain values of one model or of several are")
  func plain() {
    #expect(isPlain(change(["title": "a"])))
    #expect(isPlain(change(["title": "a", "width": 0.5, "best": 3])))
    #expect(isPlain(change(["title": "a"]), change(["title": "b"])))
    #expect(isPlain(change(["title": "a"]), change(["watts": 60], of: lamp)))
    #expect(isPlain(change([:])))
  }

  @Test("Nothing else is: each of these needs the validation")
  func others() {
    #expect(!isPlain())
    #expect(!isPlain(change(["title": 3])), "a value that does not fit")
    #expect(!isPlain(change(["colour": "red"])), "a property that there is not")
    #expect(!isPlain(change(["draft": "x"])), "a local property")
    #expect(!isPlain(change(["chosen": .string(lamp.uuid.wireText)])), "a reference")
    #expect(!isPlain(change(["lamps": []])), "a collection")
    #expect(!isPlain(change(["drawers.a": .null])), "an entry of a dictionary")
    #expect(!isPlain(change([:], ["visits": [.add(1)]])), "an operation")
    #expect(!isPlain(change(["best": 3], bases: ["best": 1])), "a value to be merged")
    #expect(!isPlain(change(["watts": 60], of: ruled)), "a value with a rule")
    #expect(!isPlain(change(["title": "a"], as: "Lamp")), "another class")
    #expect(!isPlain(change(["cafe\u{301}": "a"])), "a name in other bytes")
    #expect(!isPlain(change(["labels": ["b": "1", "a": "2"]])), "members in an order of their own")
    #expect(!isPlain(change(["watts": 60], of: Lamp())), "a model that there is not")
    let addition = SyncFragment(.add, uuid: UUID(), className: "Lamp", properties: [:])
    #expect(!isPlain(addition, change(["title": "a"])), "an addition")
    let many = Array(
      repeating: change(["title": "a"]), count: FragmentValidator.mostChanges + 1)
    #expect(order.plainDraft(of: many, by: submitter) == nil, "too many for one model")
    var old = submitter
    old.usesOperations = false
    #expect(order.plainDraft(of: [change(["title": "a"])], by: old) == nil, "an old client")
  }

  @Test("They are told in the words of the client, with its text")
  func told() throws {
    let fragments = [change(["title": "a", "width": 0.5]), change(["watts": 60], of: lamp)]
    let text = FragmentsText(fragments)
    let result = order.submit(fragments, as: text, isAtomic: false, by: submitter)
    let item = try #require(result.item)
    #expect(item.fragments == fragments && item.text != nil && result.effective == nil)
    #expect(desk.title == "a" && desk.width == 0.5 && lamp.watts == 60)
  }

  @Test("A value that is rounded, or written twice, is told as it is afterwards")
  func changed() throws {
    let rounded = [change(["width": 16_777_217])]
    let first = order.submit(rounded, as: FragmentsText(rounded), isAtomic: false, by: submitter)
    #expect(first.item?.text == nil)
    #expect(first.effective?.first?.properties["width"]?.canonicalText == "16777216")
    let twice = [change(["title": "a"]), change(["title": "b"])]
    let second = order.submit(twice, as: FragmentsText(twice), isAtomic: false, by: submitter)
    #expect(second.item?.text == nil)
    #expect(second.effective?.map { $0.properties["title"] } == ["b", "b"])
  }

  @Test("A listener of the app is told of a number as its property has it")
  func kind() throws {
    let token = scope.onRemoteChanges.listen { _ in }
    defer { token.cancel() }
    let result = order.submit([change(["width": 3])], isAtomic: false, by: submitter)
    #expect(result.item?.fragments.first?.properties["width"] == .float(3))
    #expect(result.effective == nil, "It is written as it came")
  }

  @Test("A model that an observer takes out is not told of")
  func takenOut() throws {
    let token = lamp.observeChangeImmediately(desk, \.watts) { desk, _, _ in desk.lamps = [] }
    let fragments = [change(["title": "a"]), change(["watts": 60], of: lamp)]
    let result = order.submit(
      fragments, as: FragmentsText(fragments), isAtomic: false, by: submitter)
    #expect(result.item?.text == nil && result.item?.fragments.count == 1)
    token.cancel()
  }
}
