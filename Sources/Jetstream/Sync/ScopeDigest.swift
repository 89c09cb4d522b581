import Foundation

/// The digests of a scope's shared state.
///
/// There should be no unsealed local changes when the digest is computed, except for those that a minimal sync
/// interval holds back.
package final class ScopeDigest {
  private unowned let scope: Scope
  private let digest: StateDigest
  private var token: ObservationToken?

  /// Starts to follow a scope, which has to outlive the digest.
  package init(_ scope: Scope) {
    self.scope = scope
    digest = StateDigest(of: scope.models.lazy.map(\.uuid)) { [unowned scope] uuid in
      // A model that only local properties hold is not shared, as long as that lasts.
      guard let record = scope.tree.record(of: uuid), !record.isNew else { return nil }
      let kind: SyncFragment.Kind = scope.tree.isRoot(record) ? .change : .add
      return StateDigest.Model(record.addFragment(kind, withHeldBack: false), record.schema.data)
    }
    scope.addMembershipObserver(self)
    token = scope.onSealedChanges.listen { [weak self] in self?.fragmentsApplied($0.set.fragments) }
  }

  deinit { token?.cancel() }

  /// Returns the digest of the scope, as ``StateDigest/total(budget:)`` does. Returns nil if the scope contains unknown
  /// models or properties, which cannot be compared.
  package func total(budget: Int = 2_000) -> StateDigest.Total? {
    scope.unknown == nil ? digest.total(budget: budget) : nil
  }

  /// The digests of the parts, as of the last ``total(budget:)``.
  package var parts: [UInt64] { digest.parts }

  /// Returns the models in the parts whose digests differ from the given ones.
  package func fragments(whereNot others: [UInt64]) -> [SyncFragment] {
    digest.fragments(whereNot: others)
  }

  /// Returns the models, out of those given with all their values, that had other values at the last
  /// ``total(budget:)``.
  package func differing(from fragments: [SyncFragment]) -> [UUID] {
    digest.differing(from: fragments)
  }
}

extension ScopeDigest: MembershipObserver {
  package func modelEntered(_ model: ModelObject) { digest.note(model.uuid) }

  package func modelLeft(_ model: ModelObject) { digest.note(model.uuid) }

  package func modelWithdrawn(_ model: ModelObject) { digest.note(model.uuid) }

  package func modelShared(_ model: ModelObject) { digest.note(model.uuid) }

  package func fragmentsApplied(_ fragments: [SyncFragment]) {
    for fragment in fragments { digest.note(fragment.uuid) }
  }

  /// Marks all models as outdated, because any of them may refer to the renamed one.
  package func modelRenamed(_ model: ModelObject, from old: UUID) {
    digest.noteAll()
    digest.note(model.uuid)
  }
}
