import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

private final class Drawer: ModelObject {
  @Property var front: ModelArray<Drawer> = []
  @Property var back: ModelArray<Drawer> = []
  @Property var pinned: Drawer?
  @WeakReference var latest: Drawer?
  @Property var latestID = ""
  @Property var byName: ModelDictionary<String, Drawer> = [:]
}

/// A model that a change set takes out of one place and puts into another, which is gone by then, stays where it was.
@Suite("A move never deletes")
struct LostMoveTests {
  private let host: ScopeOrder
  private let root: UUID
  private let model = UUID()

  init() {
    let content = RowsContent(name: "Drawers", ScopeSchema(of: Drawer.self))
    root = content.root!.uuid
    host = ScopeOrder(content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
    #expect(submit([add(model), change(root, ["front": [.insert(model, .end)]])]) == [true, true])
  }

  private func add(_ uuid: UUID) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Drawer", properties: [:])
  }

  private func change(
    _ uuid: UUID, _ operations: PropertyOperations, _ properties: JSONObject = [:]
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: uuid, className: "Drawer", properties: properties, operations: operations)
  }

  /// Submits fragments. Returns, for each of them, true if it is accepted.
  private func submit(_ fragments: [SyncFragment]) -> [Bool] {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return host.submit(fragments, isAtomic: false, by: submitter).replies.map { $0.error == nil }
  }

  private func models(_ collection: String, of uuid: UUID) -> JSONValue? {
    host.content.sharedModel(uuid).flatMap { model in
      model.classSchema[wireName: collection].map { model.currentJSON(of: $0) }
    }
  }

  @Test(
    "A property that names the moved model, and does not hold it, holds nothing",
    arguments: ["latest", "latestID"])
  func named(_ property: String) {
    let replies = submit([
      change(
        root, ["front": [.remove(model)]], [property: .string(model.wireText)]),
      change(UUID(), ["back": [.insert(model, .end)]]),
    ])
    #expect(replies == [true, false])
    #expect(models("front", of: root) == .models(model))
    #expect(models(property, of: root) == .string(model.wireText))
  }

  @Test("A property that holds the moved model keeps it", arguments: ["pinned", "byName/a"])
  func held(_ property: String) {
    let replies = submit([
      change(root, ["front": [.remove(model)]], [property: .string(model.wireText)]),
      change(UUID(), ["back": [.insert(model, .end)]]),
    ])
    #expect(replies == [true, false])
    #expect(models("front", of: root) == .models() && host.content.sharedModel(model) != nil)
  }

  @Test(
    "A model that a model below it is to hold stays where it was",
    arguments: ["pinned", "byName/a"])
  func heldBelow(_ property: String) {
    let other = UUID()
    #expect(submit([add(other), change(root, ["front": [.insert(other, .end)]])]) == [true, true])
    let down = [
      change(root, ["front": [.remove(other)]]), change(model, ["back": [.insert(other, .end)]]),
    ]
    #expect(submit(down) == [true, true])
    // A client that does not know of it moves the one the other way.
    let up = [
      change(root, ["front": [.remove(model)]]),
      change(other, [:], [property: .string(model.wireText)]),
    ]
    #expect(submit(up) == [true, true])
    #expect(models("front", of: root) == .models(model))
    #expect(models("back", of: model) == .models(other))
  }
}
