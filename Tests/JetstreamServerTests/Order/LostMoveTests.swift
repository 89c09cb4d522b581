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
  @Property var label: Label?
}

/// Its properties have the names of those of a drawer, and hold the opposite.
private final class Label: ModelObject {
  @Property var pinned = ""
  @Property var latest: Drawer?
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
    replies(to: fragments).map { $0.error == nil }
  }

  private func replies(to fragments: [SyncFragment]) -> [FragmentReply] {
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return host.submit(fragments, isAtomic: false, by: submitter).replies
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

  // MARK: Classes that a client names

  /// A change of the root that is rejected, because a text is no number.
  private func rejected(_ property: String, as className: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: root, className: className,
      properties: [property: .string(model.wireText), "latestID": 7])
  }

  @Test(
    "A rejected fragment was to hold what the class of its model holds, whatever class it names",
    arguments: ["Drawer", "Label", "Nothing"])
  func rejectedHolder(_ className: String) {
    let removal = change(root, ["front": [.remove(model)]])
    #expect(submit([removal, rejected("pinned", as: className)]) == [true, false])
    #expect(models("front", of: root) == .models(model))
    // A weak reference was to hold nothing.
    #expect(submit([removal, rejected("latest", as: className)]) == [true, false])
    #expect(models("front", of: root) == .models() && host.content.sharedModel(model) == nil)
  }

  @Test(
    "A change of a model that the change set adds holds what the class of the addition holds",
    arguments: ["Drawer", "Label", "Nothing"], [true, false])
  func addedHolder(_ className: String, holds: Bool) {
    let new = UUID()
    let replies = submit([
      add(new), change(root, ["front": [.remove(model), .insert(new, .end)]]),
      SyncFragment(
        .change, uuid: new, className: className,
        properties: [holds ? "pinned" : "latest": .string(model.wireText)]),
      change(UUID(), ["back": [.insert(model, .end)]]),
    ])
    #expect(replies == [true, true, true, false])
    #expect(models("front", of: root) == (holds ? .models(new) : .models(model, new)))
    #expect(host.content.sharedModel(model) != nil)
  }

  @Test("A rejected addition of a class that the server does not have was to hold what it names")
  func unknownHolder() {
    let box = SyncFragment(
      .add, uuid: UUID(), className: "Box",
      properties: ["inside": .array([.string(model.wireText)])])
    #expect(submit([box, change(root, ["front": [.remove(model)]])]) == [false, true])
    #expect(models("front", of: root) == .models(model))
  }

  @Test("A rejected text that names an addition is not the reason why nothing holds that")
  func rejectedText() {
    let new = UUID()
    let broken = SyncFragment(
      .change, uuid: root, className: "Drawer",
      properties: ["latestID": .string(new.wireText), "label": 7])
    let replies = replies(to: [broken, add(new)])
    #expect(replies.allSatisfy { $0.error != nil && $0.causedBy == nil })
  }
}
