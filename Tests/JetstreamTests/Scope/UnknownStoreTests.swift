import Foundation
import Testing

@testable import Jetstream

private final class Bookcase: ModelObject {
  @Property var books: ModelArray<Book> = []
}

private final class Book: ModelObject {
  @Property var title = ""
}

/// Models that a scope keeps as data, since its classes cannot hold them or unknown properties may name them.
#if ON_ACTOR
@TestDomain
#endif
@Suite("Models without an object", .paced)
struct UnknownStoreTests {
  private let shelf = Bookcase()
  private let scope: Scope
  private let team = UUID()
  private let ada = UUID()

  init() { scope = manualScope(shelf) }

  private func value(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func fragment(
    _ kind: SyncFragment.Kind, _ uuid: UUID, _ className: String, _ properties: JSONObject
  ) -> SyncFragment {
    SyncFragment(kind, uuid: uuid, className: className, properties: properties)
  }

  private func apply(_ fragments: SyncFragment...) { #expect(scope.apply(fragments).isComplete) }

  private var kept: JSONObject? { scope.unknownModels.first { $0.uuid == team }?.properties }

  @Test("An entry that is removed is gone from a model of an unknown class")
  func removedEntry() {
    apply(
      fragment(.add, team, "Team", ["name": .null, "members/Ada": value(ada)]),
      fragment(.change, shelf.uuid, "Bookcase", ["badge": value(team)]))
    #expect(kept == ["name": .null, "members/Ada": value(ada)])
    apply(fragment(.change, team, "Team", ["members/Ada": .null, "members/Ben": .null]))
    #expect(kept == ["name": .null])
    // A new client's state is the same.
    let other = manualScope(Bookcase())
    #expect(throws: Never.self) {
      try other.applyFullState(scope.fullState(), rootUUID: shelf.uuid)
    }
    #expect(other.canonicalJSON == scope.canonicalJSON)
  }

  @Test("An addition that names removed entries does not bring them", arguments: [true, false])
  func addition(isKnown: Bool) {
    if isKnown { apply(fragment(.add, team, "Team", ["members/Ada": value(ada)])) }
    apply(
      fragment(.add, team, "Team", ["name": .null, "members/Ada": .null]),
      fragment(.change, shelf.uuid, "Bookcase", ["badge": value(team)]))
    #expect(kept == ["name": .null])
  }

  @Test("A known model that is kept has no removed entry of a dictionary that its class lacks")
  func knownClass() {
    let book = UUID()
    apply(
      fragment(.add, book, "Book", ["title": "a", "pages/1": value(ada)]),
      fragment(.change, shelf.uuid, "Bookcase", ["best": value(book)]))
    apply(fragment(.change, book, "Book", ["pages/1": .null]))
    #expect(scope.unknownModels.first { $0.uuid == book }?.properties == ["title": "a"])
  }

  @Test("The dictionary of an entry is found by bytes")
  func combiningKey() {
    let key = "members/\u{301}x"
    #expect(EntryName.mayBeEntry(key))
    #expect(EntryName.dictionary(ofWhatMayBe: key) == "members")
    #expect(EntryName.dictionary(ofWhatMayBe: "a/b/c") == "a")
    #expect(EntryName.dictionary(ofWhatMayBe: "members") == nil)
  }
}
