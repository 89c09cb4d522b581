import Foundation
import Testing

@testable import Jetstream

private final class Rack: ModelObject {
  @Property var books: ModelArray<Volume> = []
}

private final class Volume: ModelObject {
  @Property var title = ""
}

/// A rack whose books have properties that their class does not know.
#if ON_ACTOR
@TestDomain
#endif
@Suite("Keeping models without an object costs what is changed", .paced) struct KeptModelTests {
  private let rack = Rack()
  private let scope: Scope
  private let ghosts = (0..<300).map { _ in UUID() }

  init() {
    scope = manualScope(rack)
    _ = scope.takeFragments()
  }

  private func apply(_ fragments: [SyncFragment]) {
    #expect(scope.apply(fragments).errors.map(\.error) == [])
  }

  private func change(_ properties: JSONObject, _ operations: PropertyOperation...) -> SyncFragment
  {
    SyncFragment(
      .change, uuid: rack.uuid, className: "Rack", properties: properties,
      operations: operations.isEmpty ? [:] : ["books": operations])
  }

  /// Adds a book with an unknown property.
  private func add(_ book: UUID, _ value: JSONValue = 1) {
    apply([
      SyncFragment(.add, uuid: book, className: "Volume", properties: ["pages": value]),
      change([:], .insert(book, .end)),
    ])
  }

  private func remove(_ book: UUID) { apply([change([:], .remove(book))]) }

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func addition(_ uuid: UUID, _ properties: JSONObject = [:]) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Ghost", properties: properties)
  }

  /// The number of models that are read for 100 edits, among so many books and kept models.
  private func reads(among count: Int, _ edit: (Int) -> Void) throws -> Int {
    apply(
      ghosts.prefix(count).map { addition($0) }
        + [change(["all": .array(ghosts.prefix(count).map(text))])])
    for _ in 0..<count { add(UUID()) }
    let (first, store) = (UUID(), try #require(scope.unknown))
    add(first)
    remove(first)
    #expect(scope.unknownModelUUIDs().count == count)
    let before = store.readCount
    for number in 0..<100 {
      edit(number)
      #expect(scope.unknownModelUUIDs().count >= count)
    }
    return store.readCount - before
  }

  @Test("Models with unknown properties that come and go have nothing else read")
  func comeAndGo() throws {
    let count = try reads(among: 300) { _ in
      let book = UUID()
      add(book)
      remove(book)
    }
    #expect(count < 3_000)
  }

  @Test("Values of kept models that name no others have nothing else read")
  func changes() throws {
    let count = try reads(among: 300) { number in
      apply([
        SyncFragment(
          .change, uuid: ghosts[number], className: "Ghost",
          properties: ["label": .integer(Int64(number))])
      ])
    }
    #expect(count < 3_000)
  }

  @Test("Kept models that come in one by one have nothing else read")
  func additions() throws {
    let count = try reads(among: 300) { number in
      let ghost = UUID()
      apply([addition(ghost), change(["ghost \(number)": text(ghost)])])
    }
    #expect(count < 3_000)
  }

  @Test(
    "The kept models that count are those which something refers to", arguments: [UInt64](1...20))
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let (ghosts, books) = (ghosts.prefix(8), (0..<6).map { _ in UUID() })
    func some() -> JSONValue {
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: .null
      case 1: text(books.randomElement(using: &generator)!)
      case 2: .array(ghosts.shuffled(using: &generator).prefix(3).map { text($0) })
      case 3: ["nested": [text(ghosts.randomElement(using: &generator)!)]]
      default: text(ghosts.randomElement(using: &generator)!)
      }
    }
    for _ in 0..<200 {
      let (ghost, book) = (
        ghosts.randomElement(using: &generator)!, books.randomElement(using: &generator)!
      )
      var fragments: [SyncFragment] = []
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: fragments = [addition(ghost, ["next": some()]), change(["a": text(ghost)])]
      case 1:
        fragments = [
          SyncFragment(.change, uuid: ghost, className: "Ghost", properties: ["next": some()])
        ]
      case 2: fragments = [change(["b": some()])]
      case 3, 4:
        fragments = [
          SyncFragment(.add, uuid: book, className: "Volume", properties: ["next": some()]),
          change([:], .insert(book, .end)),
        ]
      case 5: fragments = [change([:], .remove(book))]
      case 6:
        fragments = [
          SyncFragment(.change, uuid: book, className: "Volume", properties: ["next": some()])
        ]
      default: fragments = [change(["a": .null])]
      }
      // Changes of models that are not there have no effect.
      _ = scope.apply(fragments)
      let values = scope.models.map { scope.unknownProperties(of: $0) }
      let expected = scope.unknown?.reachable(from: values) ?? []
      #expect(scope.unknownModelUUIDs() == expected)
    }
  }
}
