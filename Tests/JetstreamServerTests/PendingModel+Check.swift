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
      undecided.allSatisfy { $0.fate.handle.state == .syncing && $0.fate.isConsistent }, place)
    #expect(decided.allSatisfy { $0.0.handle.state == $0.1 && $0.0.isConsistent }, place)
    #expect(server.engine.brokenInvariants() == [], place)
    #expect(!scope.hasCollectedChanges, place)
    if undecided.isEmpty { checkEqual(visible) }
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
