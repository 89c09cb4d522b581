/// The mode in which a scope is synced: when local changes are sent, and when remote changes are applied.
///
/// ```swift
/// try client.setMode(.manual, of: scope)  // Nothing is sent or applied.
/// try await client.sync(scope)            // Both sides are equal.
/// ```
///
/// In every mode local changes are visible at once, and pending until they are confirmed. A server of version 1 of
/// the protocol cannot be told to wait: the client holds back what it sends until the mode lets it in. If the
/// session ends before that, change sets that such a server has already accepted are sent again.
public enum SyncMode: Sendable, Hashable {
  /// Sends local changes with each tick, and applies remote changes as they arrive.
  case realtime
  /// Sends local changes, but leaves remote changes on the server until the mode changes or the app calls
  /// ``Client/sync(_:)``. From the first remote change on, the client keeps its accepted change sets, in
  /// memory and in the log, until then. An app that stays in this mode for long should sync now and then.
  case pushOnly
  /// Keeps the connection, but sends and applies nothing, except by ``Client/sync(_:)``.
  case paused
  /// Like ``paused``, and closes the connection between syncs if no other scope needs it. The session continues.
  case manual
  /// Like ``manual``, plus an automatic sync whenever this time has passed since the last one. The client keeps the
  /// connection if the time is less than the interval between two pings (10 seconds).
  case polling(every: Duration)
}

/// A use of the network for which the client asks ``Client/permission``.
public enum SyncActivity: Sendable, Hashable {
  /// Opening a connection.
  case connecting
  /// Sending this number of change sets of one scope.
  case sending(Int)
  /// Running a sync that is due because of ``SyncMode/polling(every:)``.
  case polling
}

/// An app's answer to a request for permission; see ``Client/permission``.
public enum SyncPermission: Sendable, Hashable {
  /// The client may use the network now.
  case granted
  /// Not now; the client asks again after this time.
  case later(Duration)
  /// Not until the app calls ``Client/permissionDidChange()``.
  case denied
}

/// A running sync of one scope: the pending change sets go out, and the missed changes come in.
struct SyncRound {
  /// The number of the last change set that the sync has to send.
  var upTo: Int
  /// True once the client has asked the server for the missed changes, which it does after sending all of these.
  var isAsked = false
  /// True if the app waits for the sync, which therefore needs no permission.
  var isForced: Bool
  /// The completions of the callers that wait, by waiter number.
  var waiting: [Int: (Result<Void, SyncError>) -> Void] = [:]

  func finish(_ result: Result<Void, SyncError>) {
    for (_, completion) in waiting.sorted(by: { $0.key < $1.key }) { completion(result) }
  }
}
