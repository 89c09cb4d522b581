import Foundation
import Jetstream
import Testing

/// What should be.
extension PendingModel {
  var place: Comment { "seed \(seed), step \(step)" }

  func check() {
    let visible = picture()
    for (uuid, values) in visible {
      var expected = confirmed[uuid] ?? made[uuid] ?? [:]
      for set in undecided { expected.merge(set.changes[uuid] ?? [:]) { $1 } }
      for (key, value) in values where key != "children" {
        #expect(value.canonicalText == expected[key]?.canonicalText, "\(key): \(place)")
      }
      checkCollection(of: uuid, Self.uuids(values["children"]))
    }
    #expect(scope.pendingChangeSets.count == undecided.count, place)
    #expect(server.engine.pendingCount == undecided.count, place)
    #expect(
      scope.pendingChangeSets.handles.map(ObjectIdentifier.init)
        == undecided.map { ObjectIdentifier($0.fate.handle) }, place)
    #expect(
      undecided.allSatisfy { $0.fate.handle.state == .pending && $0.fate.isConsistent }, place)
    #expect(decided.allSatisfy { $0.0.handle.state == $0.1 && $0.0.isConsistent }, place)
    #expect(server.engine.checkInvariants() == [], place)
    #expect(!scope.hasCollectedChanges, place)
    if undecided.isEmpty { checkEqual(visible) }
  }

  /// What an observer has changed becomes a set: but for what others have changed to the same meanwhile,
  /// and for models that have left.
  func finishLate() {
    guard var set = late else { return }
    late = nil
    let before = expected()
    scope.flush()
    let handle = set.fate.handle
    let told = handle.changeSet.fragments.filter { $0.kind == .change }
    var keys: [UUID: Set<String>] = [:]
    for fragment in told {
      keys[fragment.uuid] = Set(
        fragment.properties.map(\.key) + fragment.operations.map(\.key))
    }
    let visible = picture()
    for (uuid, values) in set.changes {
      for (key, value) in values where keys[uuid]?.contains(key) != true {
        #expect(
          visible[uuid] == nil || before[uuid]?[key]?.canonicalText == value.canonicalText,
          "\(key) is missing: \(place)")
      }
    }
    set.changes = set.changes.reduce(into: [:]) { result, entry in
      let values = entry.value.filter { keys[entry.key]?.contains($0.key) == true }
      if !values.isEmpty { result[entry.key] = values }
    }
    set.edits = set.edits.filter { keys[$0.key]?.contains("children") == true }
    #expect(handle.changeSet.isAtomic == set.isAtomic, place)
    #expect((handle.state == .accepted) == handle.changeSet.fragments.isEmpty, place)
    if handle.state != .accepted { undecided.append(set) }
  }

  /// The values that should be visible of all models that are known, but for collections.
  private func expected() -> [UUID: Values] {
    var result = made.merging(confirmed) { $1 }
    for set in undecided {
      for (uuid, values) in set.changes { result[uuid]?.merge(values) { $1 } }
    }
    return result
  }

  private func checkCollection(of uuid: UUID, _ visible: [UUID]) {
    let base = Self.uuids((confirmed[uuid] ?? made[uuid])?["children"])
    let edits = undecided.compactMap { $0.edits[uuid] }
    #expect(Set(visible).count == visible.count, "twice: \(place)")
    if edits.isEmpty { #expect(visible == base, "children: \(place)") }
    for element in base
    where edits.allSatisfy({ $0.after.contains(element) || !$0.before.contains(element) }) {
      #expect(visible.contains(element), "lost: \(place)")
    }
    for element in visible where !base.contains(element) {
      #expect(
        edits.contains { $0.after.contains(element) && !$0.before.contains(element) },
        "not taken back: \(place)")
    }
  }

  /// With nothing pending both sides have the same.
  private func checkEqual(_ visible: [UUID: Values]) {
    let live = live()
    #expect(Set(visible.keys) == Set(live), place)
    for uuid in live {
      #expect(
        visible[uuid]?.mapValues(\.canonicalText) == confirmed[uuid]?.mapValues(\.canonicalText),
        place)
    }
  }
}
