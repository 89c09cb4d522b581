import Foundation

/// What others have changed in a scope, as one change set that a server has accepted, or as the whole state that it has
/// sent; see ``Scope/onRemoteChanges``.
public struct RemoteChanges: Sendable, Hashable {
  /// The place of the change set in the server's order; nil if the server does not tell, as those of version 1 of the
  /// protocol.
  public let sequence: Int?
  /// The author of the changes, as the server's app has named the session's user. Nil if it has named nobody, for a
  /// whole state, and from servers of version 1. What clients say of themselves is not passed on.
  public let author: String?
  /// The words that the changes were made with; see ``Scope/modify(_:author:_:)``.
  public let message: String?
  /// The time at which they were made, as the clock of whoever has made them says.
  public let date: Date?
  /// The client that has made them: the same UUID for all of its change sets, in all of its sessions. It identifies and
  /// gives no access. Nil for changes of the server's own app, and for clients that do not number their change sets.
  public let client: UUID?
  /// True if the fragments are the whole state of the scope: after the first fetch, and when a client was away for so
  /// long that the server tells it everything.
  public let isFullState: Bool
  /// The changes. What is pending here stays in front of them.
  public let fragments: [SyncFragment]
}

extension RemoteChanges {
  package init(
    _ fragments: [SyncFragment], sequence: Int?, isFullState: Bool = false,
    origin: ChangeOrigin = ChangeOrigin()
  ) {
    self.fragments = fragments
    self.sequence = sequence
    self.isFullState = isFullState
    (author, message) = (origin.author, origin.message)
    (date, client) = (origin.date, origin.client)
  }
}
