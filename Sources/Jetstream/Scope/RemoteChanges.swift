import Foundation

/// Changes made by other replicas: one change set that the server accepted, or a full state that the server sent;
/// see ``Scope/onRemoteChanges``.
public struct RemoteChanges: Sendable, Hashable {
  /// The sequence of the change set. Nil if the server does not send it, as servers of version 1 of the protocol.
  public let sequence: Int?
  /// The author of the changes: the user of the session, as named by the server's app. Nil if the app names none,
  /// for a full state, and from servers of version 1. An author that the client claims is not passed on.
  public let author: String?
  /// The message of the change set; see ``Scope/modify(_:author:_:)``.
  public let message: String?
  /// The time of the changes by the clock of the replica that made them.
  public let date: Date?
  /// The client that made the changes: the same UUID for all its change sets, in all its sessions. It identifies
  /// the client and gives no access. Nil for changes of the server's own app, and for clients that do not number
  /// their change sets.
  public let client: UUID?
  /// True if the fragments are the full state of the scope, as after the first fetch, and after an absence too long
  /// for the server to send only the changes.
  public let isFullState: Bool
  /// The changes. Pending local changes stay visible in front of them.
  public let fragments: [SyncFragment]
  /// The same changes with their inverse, which only the server knows.
  package let inverse: Inverse

  /// A change set that takes no part in whether two values are equal.
  package struct Inverse: Sendable, Hashable {
    package let value: ChangeSet?

    package static func == (a: Inverse, b: Inverse) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }
}

extension RemoteChanges {
  package init(
    _ fragments: [SyncFragment], sequence: Int?, isFullState: Bool = false,
    origin: ChangeOrigin = ChangeOrigin(), inverse: ChangeSet? = nil
  ) {
    self.fragments = fragments
    self.inverse = Inverse(value: inverse)
    self.sequence = sequence
    self.isFullState = isFullState
    (author, message) = (origin.author, origin.message)
    (date, client) = (origin.date, origin.client)
  }
}
