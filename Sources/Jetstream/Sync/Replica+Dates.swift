import Foundation

/// Dates that were sent as text. The server and all other clients have them with a precision of milliseconds, so the
/// replica takes over these values once they are accepted.
extension Replica {
  /// Applies the dates of a decided change set as the server has read them, as a change that follows the change set.
  func noteSentDates(of fragments: [SyncFragment], _ replies: [FragmentReply]) {
    guard dialect.dateForm == .iso8601, !journal.isRestoring else { return }
    for (fragment, reply) in zip(fragments, replies) where reply.accepts {
      let rounded = dialect.dateForm.rounded(fragment, in: scope)
      guard !rounded.isEmpty else { continue }
      let change = SyncFragment(
        .change, uuid: fragment.uuid, className: fragment.className, properties: rounded)
      keep(.confirmed([change], sequence: nil))
      note(change)
    }
  }
}
