import Foundation

/// The observation of a scope by its replica, and the digest that follows the scope for as long.
struct ScopeObservation {
  private var tokens: [ObservationToken] = []
  /// The digest of the scope, once the server has sent its own.
  private(set) var digest: ScopeDigest?

  /// True while the replica follows the scope.
  var isActive: Bool { !tokens.isEmpty }

  /// Begins to report what happens in the scope to its replica, which comes too late for changes made until now, also
  /// for those that a minimal sync interval holds back.
  mutating func begin(for replica: Replica) {
    let scope = replica.scope
    scope.sealAllChanges()
    tokens = [
      scope.onSealedChanges.listen(replica) { replica, sealed in replica.localChange(sealed) },
      scope.onDelivery.listen(replica) { replica, _ in replica.collectedChangesMayHaveEnded() },
      scope.conflicts.onDiscard.listen(replica) { replica, conflicts in
        replica.keep(.discarded(conflicts.map(ConflictName.init)), isNew: true)
      },
    ]
    scope.addMembershipObserver(replica)
    scope.incoming.add(
      IncomingGate.Listener(
        owner: replica, onOpen: { [weak replica] in replica?.resume() },
        onClose: { [weak replica] in replica?.delegate?.sendWaiting() }))
  }

  /// Returns the digest of the scope, which follows it from the first call on.
  mutating func digest(of scope: Scope) -> ScopeDigest {
    let result = digest ?? ScopeDigest(scope)
    digest = result
    return result
  }

  mutating func end(for replica: Replica) {
    for token in tokens { token.cancel() }
    (tokens, digest) = ([], nil)
    replica.scope.removeMembershipObserver(replica)
    replica.scope.incoming.remove(replica)
  }
}
