import Foundation

extension Replica {
  /// Returns a description of every broken invariant, such as a covered property that does not show its base with
  /// its pending changes. For tests; cost: O(covered properties).
  package func checkInvariants() -> [String] {
    var broken = pending.brokenInvariants() + graveyard.brokenInvariants()
    for key in overlay.keys {
      if batch.isEmpty, overlay.isSettled(key) {
        broken.append("\(key.name) of \(key.uuid.wireText) is covered by no pending set")
      }
      guard let model = scope.model(key.uuid), let property = model.schema[wireName: key.name]
      else { continue }
      let record = model.ensureRecord()
      // A local change that is in no change set yet comes in front. All values of a new model are such changes: the
      // app has put it back, or only local properties hold it since its removal.
      if record.isNew || record.bases.contains(property.index) { continue }
      guard let visible = overlay.shown(key)?.json else { continue }
      let current = model.json(of: property)
      if !property.areSame(current, visible) {
        broken.append("\(key.name) of \(key.uuid.wireText) is \(current), should be \(visible)")
      }
    }
    return broken
  }
}

extension Replica {
  /// Returns false if ``isPending(_:)`` is certainly false for all models except the given ones. Cost: O(models +
  /// covered properties).
  fileprivate func mayHavePending(besides models: Set<UUID>) -> Bool {
    for uuid in overlay.additions.keys where !models.contains(uuid) { return true }
    for key in overlay.keys where !models.contains(key.uuid) { return true }
    var found = false
    scope.tree.forEachRecord { record in
      if record.isNew || !record.bases.isEmpty, !models.contains(record.uuid) { found = true }
    }
    return found
  }
}

extension ClientEngine {
  /// The broken invariants of all replicas; for tests.
  package func checkInvariants() -> [String] { replicas.flatMap { $0.checkInvariants() } }

  /// Returns false if ``isPending(_:)`` is certainly false for all models of a scope except the given ones; for
  /// tests.
  package func mayHavePending(in scope: Scope, besides models: Set<UUID>) -> Bool {
    replica(of: scope)?.mayHavePending(besides: models) ?? false
  }
}

extension ClientEngine {
  /// The number of messages that wait until paused scopes resume; for tests.
  package var heldCount: Int { replicas.reduce(0) { $0 + $1.session.held.messages.count } }

  /// The positions of all replicas; for tests.
  package var positions: [ScopePosition] { replicas.compactMap(\.progress.position) }
}
