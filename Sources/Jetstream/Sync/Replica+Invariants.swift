import Foundation

extension Replica {
  /// Gives every covered property that does not show what its base and its pending sets make of it.
  /// For tests; cost: O(covered properties).
  package func brokenInvariants() -> [String] {
    var broken: [String] = []
    let sent = pending.map { $0.messageIndex != nil || $0.decision != nil }
    if sent.prefix(sentCount).contains(false) || sent.dropFirst(sentCount).contains(true) {
      broken.append("\(sentCount) sets should be sent, but \(sent)")
    }
    let carriers = pending.prefix(sentCount).map { $0.messageIndex ?? -1 }
    if carriers != carriers.sorted() {
      broken.append("the sets were sent in messages \(carriers)")
    }
    let decided = pending.count { $0.decision != nil }
    if decided != decidedCount {
      broken.append("\(decidedCount) sets should be decided, but \(decided) are")
    }
    for key in overlay.keys {
      if batch.isEmpty, overlay.isSettled(key) {
        broken.append("\(key.name) of \(key.uuid.wireText) is covered by no pending set")
      }
      guard let model = scope.model(key.uuid), let property = model.schema[wireName: key.name],
        let visible = overlay.shown(key)?.json
      else { continue }
      let record = model.ensureRecord()
      // A local change that is not in a set yet stands in front.
      if record.bases.contains(where: { $0.index == property.index }) { continue }
      let current = model.json(of: property)
      if !property.areSame(current, visible) {
        broken.append("\(key.name) of \(key.uuid.wireText) is \(current), should be \(visible)")
      }
    }
    return broken
  }
}

extension Replica {
  /// All models of which ``isPending(_:)`` may be true, without asking each of them; for tests.
  /// Cost: O(models + covered properties).
  fileprivate var pendingModels: Set<UUID> {
    var result = Set(additions.keys)
    for key in overlay.keys { result.insert(key.uuid) }
    scope.forEachRecord { if $0.isNew || !$0.bases.isEmpty { result.insert($0.uuid) } }
    return result
  }
}

extension ClientEngine {
  /// What is wrong with the replicas; for tests.
  package func brokenInvariants() -> [String] { replicas.flatMap { $0.brokenInvariants() } }

  /// A set that contains every model of a scope of which ``isPending(_:)`` is true; for tests.
  package func pendingModels(of scope: Scope) -> Set<UUID> {
    replica(of: scope)?.pendingModels ?? []
  }
}

extension ClientEngine {
  /// How far the replicas are; for tests.
  package var positions: [ScopePosition] { replicas.compactMap(\.position) }
}
