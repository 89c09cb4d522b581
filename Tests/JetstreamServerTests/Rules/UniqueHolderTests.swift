import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

private final class Store: ModelObject {
  @Property var items: ModelArray<StoreItem> = []
  @Property var archive: ModelArray<StoreItem> = []
  @Property(.local) var recent: ModelArray<StoreItem> = []
  @Property(.local) var byName: ModelDictionary<String, StoreItem> = [:]
  @Property(.local) var draft: Store?
}

private final class StoreItem: ModelObject {
  @Property(.unique) var sku: String?
}

/// A collection that other replicas do not have says nothing about the values of its models: neither that of a local
/// property, nor that of a model which only local properties hold.
@Suite("Unique properties of models that local collections hold")
struct UniqueHolderTests {
  private let store = Store()
  private let scope: Scope
  private let host: ScopeOrder
  private let one = StoreItem()
  private let two = StoreItem()

  init() {
    (one.sku, two.sku) = ("a", "b")
    scope = Scope(name: "Store", root: store, ticker: .manual())
    host = ScopeOrder(
      content: ModelContent(scope), epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
  }

  /// Has a client give a value to the second item. Returns the server's error.
  private func submit(_ sku: String) -> WireError? {
    scope.sealChanges()
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    let change = SyncFragment(
      .change, uuid: two.uuid, className: "StoreItem", properties: ["sku": .string(sku)])
    return host.submit([change], isAtomic: false, by: submitter).replies[0].error
  }

  private enum Holder: CaseIterable {
    case collection, dictionary, collectionOfUnshared
  }

  /// Puts both items where only this replica has them side by side.
  private func hold(in holder: Holder) {
    switch holder {
    case .collection: store.recent = [one, two]
    case .dictionary: store.byName = ["one": one, "two": two]
    case .collectionOfUnshared:
      let draft = Store()
      draft.items = [one, two]
      store.draft = draft
    }
  }

  @Test("They may have the same value", arguments: Holder.allCases)
  private func same(_ holder: Holder) {
    hold(in: holder)
    (store.items, store.archive) = ([one], [two])
    #expect(submit("a") == nil && two.sku == "a")
    #expect(one.problem(with: \.sku) == nil && two.problem(with: \.sku) == nil)
  }

  @Test("They may not where a synced collection holds them, too", arguments: Holder.allCases)
  private func both(_ holder: Holder) {
    hold(in: holder)
    store.archive = [one, two]
    #expect(submit("a")?.message.hasPrefix("sku has to be unique in archive") == true)
    two.sku = "a"
    #expect(
      two.problem(with: \.sku)
        == #"sku has to be unique in archive, where another model has "a""#)
  }

  @Test("A collection that has left the scope says nothing of models that are there")
  func departed() {
    let box = Store()
    (store.items, store.draft) = ([one, two], box)
    box.items = [one, two]
    store.draft = nil
    store.items = [one]
    store.archive = [two]
    #expect(submit("a") == nil && two.sku == "a" && box.items.count == 2)
    #expect(one.problem(with: \.sku) == nil)
  }

  @Test("A model that is in no scope is compared with those beside it")
  func outside() {
    let draft = Store()
    let (one, two) = (StoreItem(), StoreItem())
    (one.sku, two.sku) = ("a", "a")
    draft.items = [one, two]
    #expect(one.problem(with: \.sku) != nil)
  }
}
