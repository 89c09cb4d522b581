/// An error of a sync operation.
public enum SyncError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The server could not be reached, for this reason.
  case connectionFailed(reason: String)
  /// The server refused the session, for this reason.
  case sessionDenied(reason: String)
  /// The session was closed, by us or by the server, before the operation was done.
  case sessionClosed(reason: String)
  /// The operation needs a session, and there is none; call `connect` first.
  case notConnected
  /// The server refused the scope: its name and the reason.
  case scopeDenied(scope: String, error: WireError)
  /// The scope is being synced already, as this ``Scope`` or as another one for the same scope of the server: its name.
  case alreadyFetched(scope: String)
  /// The scope is not being synced: its name.
  case notFetched(scope: String)
  /// The task that waited was cancelled.
  case cancelled
  /// The server sent something that cannot be used.
  case invalidReply(problem: String)

  /// A description of the error, in words.
  public var description: String {
    switch self {
    case .connectionFailed(let reason): "The server cannot be reached: \(reason)"
    case .sessionDenied(let reason): "The server denied the session: \(reason)"
    case .sessionClosed(let reason): "The session was closed: \(reason)"
    case .notConnected: "There is no session; connect first."
    case .scopeDenied(let name, let error): "The server denied scope \(name): \(error)"
    case .alreadyFetched(let name): "Scope \(name) is being synced already."
    case .notFetched(let name): "Scope \(name) is not being synced."
    case .cancelled: "The task was cancelled."
    case .invalidReply(let problem): "The server's reply cannot be used: \(problem)"
    }
  }
}

/// The outcome that the app waits for: success or an error, delivered once.
typealias SyncOutcome = Awaited<Result<Void, SyncError>>

extension SyncOutcome {
  convenience init() { self.init(cancelled: .failure(.cancelled)) }
}
