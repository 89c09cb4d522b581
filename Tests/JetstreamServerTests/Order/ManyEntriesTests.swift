import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Change sets in which a model has many entries of a dictionary.
@Suite("Change sets with many entries of a dictionary", .paced)
struct ManyEntriesTests {
  private static let schemaText = """
    {"version":1,"root":"Club","classes":[
      {"name":"Club","properties":[
        {"name":"members","type":"dictionary of reference to Person"},
        {"name":"guests","type":"dictionary of reference to Person"},
        {"name":"chair","type":"reference to Person"}]},
      {"name":"Person","properties":[
        {"name":"friends","type":"dictionary of reference to Person"}]}]}
    """

  private let host: ScopeOrder
  private let root = UUID()
  private let holder = UUID()
  private let held = UUID()

  init() throws {
    let schema = try ScopeSchema(JSONValue(parsing: Self.schemaText)).schema
    host = ScopeOrder(
      content: RowsContent(name: "Club", Document(schema: schema, root: root)), epoch: "e",
      streamLimit: .init(sets: 100, bytes: 100_000))
  }

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func entries(_ count: Int, of dictionary: String) -> JSONObject {
    JSONObject((0..<count).map { ("\(dictionary)/\($0)", text(held)) })
  }

  private func addition(_ properties: JSONObject = [:], bases: JSONObject = [:]) -> SyncFragment {
    SyncFragment(
      .add, uuid: holder, className: "Person", properties: properties, bases: bases)
  }

  private func change(_ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: root, className: "Club", properties: properties)
  }

  /// Has a model with a number of entries in the scope.
  private func fill(_ count: Int) {
    let held = SyncFragment(.add, uuid: self.held, className: "Person", properties: [:])
    let result = submit([
      held, addition(entries(count, of: "friends")),
      change(["chair": text(holder), "members/0": text(self.held)]),
    ])
    #expect(result.replies.compactMap(\.error).isEmpty)
  }

  private var submitter: ScopeOrder.Submitter {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return submitter
  }

  @discardableResult
  private func submit(_ fragments: [SyncFragment]) -> ScopeOrder.Result {
    host.submit(fragments, isAtomic: false, by: submitter)
  }

  @Test("Entries that a model has already, when it is put back, are left out in linear time")
  func putBack() throws {
    let found = try growth(from: 500) { count in
      let tests = try ManyEntriesTests()
      tests.fill(count)
      let entries = tests.entries(count, of: "friends")
      return {
        let result = tests.submit([tests.addition(entries, bases: entries)])
        #expect(result.replies == [FragmentReply()])
        #expect(result.item?.fragments.map(\.properties) == [[:]])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So they are for the constraints of a procedure", arguments: [true, false])
  func constraints(asOperations: Bool) throws {
    let found = try growth(from: 500) { count in
      let tests = try ManyEntriesTests()
      tests.fill(count)
      let entries = tests.entries(count, of: "friends")
      return {
        let set = tests.host.changes(
          of: [tests.addition(entries, bases: asOperations ? entries : [:])],
          asOperations: asOperations)
        #expect(set.fragments.isEmpty)
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("Initial entries of a dictionary that has some are left out in linear time")
  func initialContent() throws {
    let found = try growth(from: 500) { count in
      let tests = try ManyEntriesTests()
      tests.fill(1)
      let entries = tests.entries(count, of: "members")
      return {
        let part = tests.host.part(ofInitial: [tests.change(entries)])
        #expect(part?.fragments == [])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("Filling a dictionary and taking its model out is inverted in linear time")
  func inverse() throws {
    let found = try growth(from: 500) { count in
      let tests = try ManyEntriesTests()
      tests.submit([
        SyncFragment(.add, uuid: tests.held, className: "Person", properties: [:]),
        tests.addition(),
        tests.change(["chair": tests.text(tests.held), "members/1": tests.text(tests.holder)]),
      ])
      tests.host.records.store = { _ in }
      let filling = SyncFragment(
        .change, uuid: tests.holder, className: "Person",
        properties: tests.entries(count, of: "friends"))
      return {
        let result = tests.submit([filling, tests.change(["members/1": .null])])
        #expect(result.replies == [FragmentReply(), FragmentReply()])
        // The model comes back as it was before, without the entries.
        #expect(result.set?.undo.first == tests.addition())
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("The entries that hold a model are found without a look at the others")
  func holders() throws {
    let found = try growth(from: 250) { count in
      let tests = try ManyEntriesTests()
      let people = (0..<count).map { _ in UUID() }
      let entries = people.enumerated().map { ("members/\($0.offset)", tests.text($0.element)) }
      tests.submit(
        people.map { SyncFragment(.add, uuid: $0, className: "Person", properties: [:]) }
          + [tests.change(JSONObject(entries))])
      let content = tests.host.content
      let models = people.compactMap { content.model($0) }
      return {
        #expect(models.count == count)
        for (at, model) in models.enumerated() {
          let holder = PropertyKey(uuid: tests.root, name: "members/\(at)")
          #expect(content.holders(of: model) == [holder])
        }
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("Each dictionary of the root counts as written, in whatever order the entries come")
  func written() {
    fill(0)
    #expect(host.written.names == ["chair", "members"])
    let names = ["members/1", "members/2", "guests/1", "chair", "guests/2", "members/3"]
    let result = submit([change(JSONObject(names.map { ($0, text(held)) }))])
    #expect(result.replies == [FragmentReply()])
    #expect(host.written.names == ["chair", "guests", "members"])
  }

  @Test("A fragment with many of them counts as several, and one with a few as one")
  func size() {
    func isLarge(_ entryCount: Int, fragments: Int = 1) -> Bool {
      let fragment = change(entries(entryCount, of: "members"))
      return ScopeSync(
        scopeIndex: 0, fragments: Array(repeating: fragment, count: fragments)
      ).isLarger(than: 100)
    }
    #expect(isLarge(200) && isLarge(50, fragments: 4))
    #expect(!isLarge(90) && !isLarge(8, fragments: 100) && isLarge(0, fragments: 101))
    let counts = JSONObject((0..<200).map { ("\($0)", JSONValue.integer(1)) })
    let values = ScopeSync(scopeIndex: 0, fragments: [change(["counts": .object(counts)])])
    #expect(values.isLarger(than: 100) && !values.isLarger(than: 300))
  }
}
