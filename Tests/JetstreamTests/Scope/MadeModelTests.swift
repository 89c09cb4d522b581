import Foundation
import Testing

@testable import Jetstream

/// Models that properties begin with, where the content comes from a replica whose class does not have the property: no
/// other replica, log or server knows these models.
@Suite("Models that a class begins with", .paced)
struct MadeModelTests {
  private let older = manualScope(OldFolio())

  /// Opens a scope of the newer class with a state of the older one.
  private func open(_ state: [SyncFragment]) throws -> Scope {
    let scope = manualScope(Folio())
    #expect(try scope.applyFullState(state, rootUUID: state[0].uuid).isComplete)
    return scope
  }

  @Test("A state that does not name their properties leaves them empty")
  func state() throws {
    let scope = try open(older.fullState())
    let folio = scope.root as! Folio
    #expect(folio.cover == nil && folio.pages.isEmpty)
    // Other replicas have no part in a local property.
    #expect(folio.draft?.scope === scope)
    #expect(scope.changeSets {}.isEmpty && scope.sharedState().count == 1)
  }

  @Test("What is put there counts when the log is read again")
  func replay() throws {
    let state = older.fullState()
    let first = try open(state)
    let folio = first.root as! Folio
    var sets = first.changeSets {
      folio.cover = Page()
      folio.pages = [Page()]
    }
    sets += first.changeSets {
      folio.cover?.number = 3
      folio.pages.first?.number = 4
    }
    let second = try open(state)
    for set in sets { #expect(second.apply(set.fragments).isComplete) }
    #expect((second.root as! Folio).cover?.number == 3)
    #expect((second.root as! Folio).pages.map(\.number) == [4])
    #expect(second.canonicalJSON == first.canonicalJSON)
  }

  @Test("A model that a replica of the older class adds does not have them")
  func addition() throws {
    let state = older.fullState()
    let (first, second) = (try open(state), try open(state))
    let sets = older.changeSets { (older.root as! OldFolio).inner = OldFolio() }
    for set in sets {
      #expect(first.apply(set.fragments).isComplete)
      #expect(second.apply(set.fragments).isComplete)
    }
    let inner = try #require((first.root as! Folio).inner)
    #expect(inner.cover == nil && inner.pages.isEmpty && inner.draft != nil)
    #expect(second.canonicalJSON == first.canonicalJSON)
    let edits = first.changeSets { inner.pages.append(Page()) }
    for set in edits { #expect(second.apply(set.fragments).isComplete) }
    #expect(second.canonicalJSON == first.canonicalJSON)
  }

  @Test("A change that asks for defaults empties their properties")
  func reset() {
    let folio = Folio()
    let scope = manualScope(folio)
    let change = SyncFragment(.change, uuid: folio.uuid, className: "Folio", properties: [:])
    #expect(scope.apply([change]).isComplete)
    #expect(folio.cover != nil && folio.pages.count == 1)
    #expect(scope.apply([change], resettingMissing: true).isComplete)
    #expect(folio.cover == nil && folio.pages.isEmpty)
  }

  @Test("A scope that has never received a state keeps them")
  func neverReceived() throws {
    let folio = Folio()
    let scope = manualScope(folio)
    let (cover, pages, notes) = (folio.cover, folio.pages, folio.notes)
    folio.title = "mine"
    scope.flush()
    try scope.setToDefaults()
    #expect(folio.title == "" && folio.cover === cover && folio.pages == pages)
    #expect(folio.notes["first"] === notes["first"] && notes["first"] != nil)
    #expect(cover != nil && scope.changeSets {}.isEmpty)
  }

  @Test("A replica of the class itself brings the ones that it has made")
  func named() throws {
    let folio = Folio()
    let source = manualScope(folio)
    let copy = try open(source.fullState())
    #expect((copy.root as! Folio).cover?.uuid == folio.cover?.uuid)
    let sets = source.changeSets { folio.inner = Folio() }
    for set in sets { #expect(copy.apply(set.fragments).isComplete) }
    #expect((copy.root as! Folio).inner?.pages.map(\.uuid) == folio.inner?.pages.map(\.uuid))
    #expect(copy.canonicalJSON == source.canonicalJSON)
  }
}

/// A class before it had models to begin with.
private final class OldFolio: ModelObject {
  override class var wireName: String { "Folio" }
  @Property var title = ""
  @Property var inner: OldFolio?
}

private final class Folio: ModelObject {
  override class var wireName: String { "Folio" }
  @Property var title = ""
  @Property var inner: Folio?
  @Property var cover: Page? = Page()
  @Property var pages: ModelArray<Page> = [Page()]
  @Property var notes: ModelDictionary<String, Page> = ["first": Page()]
  @Property(.local) var draft: Page? = Page()
}

private final class Page: ModelObject {
  override class var wireName: String { "Page" }
  @Property var number = 0
}
