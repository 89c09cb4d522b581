import Foundation
import Testing

@testable import Jetstream

/// The older version of an app.
private class OldItem: ModelObject {
  override class var wireName: String { "Item" }
  @Property var label = ""
  @Property(.local) var draft = ""
  @Property var items: ModelArray<OldItem> = []
  @Property var first: OldItem?
}

/// The newer one, with the same names on the wire.
private class NewItem: ModelObject {
  override class var wireName: String { "Item" }
  @Property var label = ""
  @Property var draft = ""
  @Property var items: ModelArray<NewItem> = []
  @Property var first: NewItem?
  @Property var note: String?
  @Property var others: ModelArray<NewItem> = []
  @Property var badge: Badge?
  @Property var aside: NewItem?
}

private final class Special: NewItem {
  override class var wireName: String { "Special" }
  @Property var power = 1
}

private final class Badge: ModelObject {
  @Property var name = ""
  @Property var next: Badge?
  @Property var owner: NewItem?
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct UnknownTests {
  private let newRoot = NewItem()
  private let oldRoot: OldItem
  private let new: Scope
  private let old: Scope

  init() throws {
    newRoot.draft = "kept by the new one only"
    new = manualScope(newRoot, models: [Special.self])
    oldRoot = OldItem()
    old = manualScope(oldRoot)
    try old.applyFullState(Self.shared(new), rootUUID: newRoot.uuid)
  }

  /// What the new version says to the old one; the draft is local there.
  private static func shared(_ scope: Scope) -> [SyncFragment] { withoutDraft(scope.fullState()) }

  private static func withoutDraft(_ fragments: [SyncFragment]) -> [SyncFragment] {
    fragments.map { fragment in
      var fragment = fragment
      fragment.properties["draft"] = nil
      return fragment
    }
  }

  @discardableResult
  private func toOld() -> ApplyReport {
    let report = old.apply(Self.withoutDraft(new.takeFragments()))
    #expect(report.errors.map(\.error) == [])
    return report
  }

  private func toNew() { #expect(new.apply(old.takeFragments()).errors.map(\.error) == []) }

  private func expectEqual(_ comment: Comment? = nil) throws {
    let fresh = manualScope(OldItem())
    try fresh.applyFullState(Self.shared(new), rootUUID: newRoot.uuid)
    #expect(old.canonicalJSON == fresh.canonicalJSON, comment)
    let state = Self.shared(new).map { ($0.uuid, $0) }
    let theirs = old.fullState().map { ($0.uuid, $0) }
    #expect(
      Dictionary(uniqueKeysWithValues: state).mapValues(\.properties)
        == Dictionary(uniqueKeysWithValues: theirs).mapValues(\.properties), comment)
    #expect(
      Dictionary(uniqueKeysWithValues: state).mapValues(\.className)
        == Dictionary(uniqueKeysWithValues: theirs).mapValues(\.className), comment)
  }

  @Test("Unknown properties are kept, replaced, and part of what goes out; local ones are not")
  func properties() throws {
    let item = NewItem()
    (item.note, item.draft) = ("a", "d")
    newRoot.items = [item]
    let report = old.apply(new.takeFragments())
    #expect(report.isComplete)
    #expect(
      report.kept.map(\.reason).contains(
        .unknownProperty(className: "Item", model: item.uuid, property: "note")))
    try expectEqual()
    let mine = oldRoot.items[0]
    #expect(mine.draft == "")
    #expect(old.unknownProperties(of: mine).keys == ["aside", "badge", "note", "others"])
    #expect(
      old.fullState()[1].properties.keys == [
        "label", "items", "first", "aside", "badge", "note", "others",
      ])
    item.note = nil
    toOld()
    #expect(old.unknownProperties(of: mine)["note"] == .null)
    #expect(!old.hasCollectedChanges)
    try expectEqual()
  }

  @Test("A state without an unknown property has it forgotten")
  func forgotten() throws {
    let state = SyncFragment(
      .change, uuid: newRoot.uuid, className: "Item", properties: ["label": "x", "note": 1])
    try old.applyFullState([state], rootUUID: newRoot.uuid)
    #expect(old.unknownProperties(of: oldRoot) == ["note": 1])
    old.apply([state], resettingMissing: true)
    #expect(old.unknownProperties(of: oldRoot) == ["note": 1])
    var less = state
    less.properties["note"] = nil
    old.apply([less], resettingMissing: true)
    #expect(old.unknownProperties(of: oldRoot).isEmpty)
  }

  @Test("Removed and added again, in one interval or two, a model keeps all it came with")
  func reattach() throws {
    let special = Special()
    (special.power, special.note) = (7, "n")
    newRoot.items = [special, NewItem()]
    toOld()
    let stand = oldRoot.items[0]
    #expect(old.unknownClassName(of: stand) == "Special")
    oldRoot.items.remove(stand)
    stand.label = "moved"
    oldRoot.first = stand
    oldRoot.items.append(stand)
    let sets = old.changeSets {}
    #expect(sets[0].fragments.map(\.className) == ["Item", "Special"])
    #expect(new.apply(sets[0].fragments).isComplete)
    #expect(newRoot.first === special && special.label == "moved" && special.power == 7)
    try expectEqual()
    oldRoot.items = []
    oldRoot.first = nil
    toNew()
    #expect(special.scope == nil)
    try expectEqual()
    oldRoot.items = [stand]
    toNew()
    let back = try #require(newRoot.items.first as? Special)
    #expect(back !== special && back.power == 7 && back.note == "n")
    try expectEqual()
  }

  @Test("Models that only unknown properties reach are kept as data, and come to life")
  func unknownModels() throws {
    let (badge, lost, item) = (Badge(), Badge(), Special())
    badge.name = "b"
    badge.owner = item
    item.power = 9
    newRoot.badge = badge
    toOld()
    #expect(Set(old.unknownModels.map(\.uuid)) == [badge.uuid, item.uuid])
    #expect(old.count == 1)
    try expectEqual()
    badge.next = lost
    item.label = "changed"
    toOld()
    try expectEqual()
    newRoot.items = [item]
    badge.owner = nil
    toOld()
    #expect(oldRoot.items.first?.label == "changed")
    try expectEqual()
    newRoot.badge = nil
    toOld()
    #expect(old.unknownModels.isEmpty)
    try expectEqual()
  }

  @Test("A model that moves to where the old version cannot see it is kept, with all below it")
  func movesOutOfSight() throws {
    let (item, part) = (NewItem(), NewItem())
    item.items = [part]
    newRoot.items = [item]
    toOld()
    newRoot.others = [item]
    newRoot.items = []
    toOld()
    #expect(oldRoot.items.isEmpty && old.count == 1 && old.unknownModels.count == 2)
    part.label = "below"
    part.note = "too"
    toOld()
    try expectEqual()
    let next = Special()
    part.first = next
    item.items.append(NewItem())
    toOld()
    try expectEqual()
    newRoot.first = part
    newRoot.others = []
    toOld()
    #expect(oldRoot.first?.label == "below" && oldRoot.first?.first != nil && old.count == 3)
    try expectEqual()
  }

  @Test("An unknown model that comes before what refers to it waits for that")
  func comesFirst() throws {
    let badge = Badge()
    newRoot.badge = badge
    let fragments = new.takeFragments()
    #expect(
      old.apply([fragments[0]]).kept.map(\.reason) == [
        .unknownClass(className: "Badge", model: badge.uuid)
      ])
    #expect(old.unknownModels.isEmpty)
    #expect(old.apply([fragments[1]]).isComplete)
    #expect(old.unknownModels.map(\.uuid) == [badge.uuid])
    try expectEqual()
  }

  @Test("The same state again tells nobody")
  func sameStateAgain() throws {
    newRoot.items = [Special()]
    newRoot.badge = Badge()
    newRoot.badge?.owner = Special()
    toOld()
    let before = old.canonicalJSON
    let listener = Listener()
    for model in old.models {
      (model as? OldItem)?.observeTreeChange(listener, isolation: here()) { $0.called() }
      (model as? OldItem)?.observeDetach(listener) { me, _ in me.called() }
    }
    let objects = Set(old.models)
    for _ in 0..<2 { try old.applyFullState(Self.shared(new), rootUUID: newRoot.uuid) }
    #expect(old.changeSets {}.isEmpty)
    #expect(listener.count == 0 && Set(old.models) == objects && old.canonicalJSON == before)
  }

  @Test("Hostile fragments about unknown things do not trap")
  func hostile() {
    let (a, b) = (UUID(), UUID())
    func add(_ uuid: UUID, _ name: String, _ properties: JSONObject) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: name, properties: properties)
    }
    let root = SyncFragment(
      .change, uuid: oldRoot.uuid, className: "Item",
      properties: ["first": a._jsonValue, "aside": [b._jsonValue, ["x": a._jsonValue]]])
    let report = old.apply([
      add(a, "X", ["first": a._jsonValue, "items": [b._jsonValue, a._jsonValue], "label": 5]),
      add(b, "Y", ["first": a._jsonValue]), add(b, "Z", [:]), add(a, "Item", [:]), root,
      SyncFragment(.change, uuid: UUID(), className: "X", properties: [:]),
    ])
    #expect(report.errors.count >= 3)
    #expect(oldRoot.first?.items.count == 2 && oldRoot.first?.first === oldRoot.first)
    #expect(old.unknownClassName(of: oldRoot.first!) == "X")
    old.root = nil
    #expect(old.unknownModels.isEmpty && old.count == 0)
  }

  @Test("Random edits on both sides lose nothing", arguments: [UInt64](1...12))
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for step in 0..<60 {
      for _ in 0..<3 { editNew(step, &generator) }
      toOld()
      try expectEqual("seed \(seed), step \(step)")
      editOld(step, &generator)
      editOld(step, &generator)
      toNew()
      toOld()
    }
  }

  private func editNew(_ step: Int, _ generator: inout SeededGenerator) {
    let items = new.models.compactMap { $0 as? NewItem }.sorted { $0.uuid < $1.uuid }
    let item = items.randomElement(using: &generator)!
    let other = items.randomElement(using: &generator)!
    let made = Bool.random(using: &generator) ? Special() : NewItem()
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: item.label = "new \(step)"
    case 1: item.note = "note \(step)"
    case 2: item.items.append(made)
    case 3: item.others.append(made)
    case 4: item.aside = other
    case 5: if let child = item.items.first { item.items.remove(child) }
    case 6: if let child = item.others.first { item.items.append(child) }
    case 7: item.first = other
    default:
      let badge = Badge()
      badge.owner = other
      badge.next = item.badge
      item.badge = badge
    }
  }

  private func editOld(_ step: Int, _ generator: inout SeededGenerator) {
    let items = old.models.compactMap { $0 as? OldItem }.sorted { $0.uuid < $1.uuid }
    let item = items.randomElement(using: &generator)!
    let other = items.randomElement(using: &generator)!
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: item.label = "old \(step)"
    case 1: item.first = other
    case 2: if let child = item.items.first { item.items.remove(child) }
    case 3: item.items.append(other)
    default: item.first = nil
    }
  }
}
