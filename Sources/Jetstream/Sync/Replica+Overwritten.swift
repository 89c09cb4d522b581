import Foundation

/// Accepted changes that other clients have overwritten without having seen them.
extension Replica {
  /// Returns the origin that is sent with a change set.
  func origin(of entry: PendingEntry) -> ChangeOrigin {
    var origin = ChangeOrigin(of: entry.set)
    // The server uses the session's user as the author.
    origin.author = nil
    // The position matters only if the change set overwrites something.
    let assigns = entry.set.fragments.contains {
      $0.kind == .change ? !$0.properties.isEmpty : !$0.bases.isEmpty
    }
    if assigns, let basis = entry.basis { origin.seen = progress.seen(with: basis) }
    return origin
  }

  /// Notes which of the replica's writes another client's change set overwrites, before that is applied.
  func noteOverwritten(by fragments: [SyncFragment], _ origin: ChangeOrigin) {
    let calls = pending.calls
    losses.noteOverwritten(by: fragments, origin, in: scope) {
      overlay.isPending($0, besides: calls)
    }
  }
}
