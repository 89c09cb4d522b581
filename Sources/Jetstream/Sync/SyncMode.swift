/// When a scope is synced.
///
/// ```swift
/// try client.setMode(.manual, of: canvas)     // Nothing moves.
/// try await client.sync(canvas)               // Both sides are equal.
/// ```
///
/// In every mode local changes are visible at once, and pending until they are confirmed. A server of version
/// 1 of the protocol cannot be told to wait: what it sends is kept here until the mode lets it in. If its
/// session ends before that, change sets that it has taken are sent once more.
public enum SyncMode: Sendable, Hashable {
  /// What is changed here is sent with each tick, and what others change appears when the server tells.
  case realtime
  /// What is changed here is sent; what others change stays on the server, until the mode is another one or
  /// ``Client/sync(_:isolation:)`` is called. Once others have changed something, change sets that the server has taken
  /// are kept here, and in the log, until then: who pushes for long should sync every now and then.
  case pushOnly
  /// The connection stays, but nothing is sent or taken in, except by ``Client/sync(_:isolation:)``.
  case paused
  /// As ``paused``; and if no other scope needs the connection, it is closed between one
  /// ``Client/sync(_:isolation:)`` and the next. The session goes on.
  case manual
  /// As ``manual``, with a sync so long after the one before. The connection is kept if that is less than the
  /// time between two pings.
  case polling(every: Duration)
}

/// What a client would use the network for.
public enum SyncActivity: Sendable, Hashable {
  /// Opening a connection.
  case connecting
  /// Sending so many change sets of one scope.
  case sending(Int)
  /// A sync that is due because of ``SyncMode/polling(every:)``.
  case polling
}

/// What an app says to that; see ``Client/permission``.
public enum SyncPermission: Sendable, Hashable {
  /// Go on.
  case granted
  /// Not now; ask again after this time.
  case later(Duration)
  /// Not before ``Client/reconsider()`` is called.
  case denied
}

/// An exchange that was asked for: what is pending goes out, and what was missed comes in.
struct SyncRound {
  /// The number of the last set that it has to send.
  var upTo: Int
  /// Whether the server was asked for what was missed, after all of them were sent.
  var isAsked = false
  /// Whether somebody waits for it, so that nobody is asked whether it may be.
  var isForced: Bool
  /// Who waits, by number.
  var waiting: [Int: (Result<Void, SyncError>) -> Void] = [:]

  func finish(_ result: Result<Void, SyncError>) {
    for (_, completion) in waiting.sorted(by: { $0.key < $1.key }) { completion(result) }
  }
}
