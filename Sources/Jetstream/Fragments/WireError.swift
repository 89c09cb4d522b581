/// An error that one peer tells the other: a sentence for people and, for well-known errors, a
/// type for programs. On the wire `{"message":"...","type":"..."}`, the type left out if there is
/// none.
public struct WireError: Error, Sendable, Hashable {
  /// What went wrong, in words. Programs should look at ``type``.
  public var message: String

  /// The name of a kind of error, or nil for one that has no name.
  public var type: String?

  /// How long the other side should wait before it tries again, if that may help.
  public var retryAfter: Duration?

  /// Makes an error.
  public init(message: String, type: String? = nil, retryAfter: Duration? = nil) {
    self.message = message
    self.type = type
    self.retryAfter = retryAfter
  }

  /// Reads an error. Unknown keys are ignored, and a `null` type is none.
  ///
  /// - Throws: ``FragmentError`` naming `message`, `type` or `retryAfter`.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    message = try object.fragmentString("message")
    switch object["type"] {
    case nil, .null?: type = nil
    case .string(let text)?: type = text
    default: throw .invalid(field: "type", problem: "should be a string")
    }
    switch object["retryAfter"] {
    case nil, .null?: retryAfter = nil
    case .integer(let seconds)? where (0...1_000_000_000).contains(seconds):
      retryAfter = .seconds(seconds)
    case .double(let seconds)? where (0...1e9).contains(seconds): retryAfter = .seconds(seconds)
    default: throw .invalid(field: "retryAfter", problem: "should be a number of seconds")
    }
  }

  /// The error as JSON, `message` before `type` and `retryAfter`, in seconds.
  package var json: JSONValue {
    var object: JSONObject = ["message": .string(message)]
    if let type { object["type"] = .string(type) }
    if let retryAfter { object["retryAfter"] = .double(retryAfter / .seconds(1)) }
    return .object(object)
  }
}

extension WireError: CustomStringConvertible {
  /// The message, followed by the type in parentheses if there is one.
  public var description: String { type.map { "\(message) (\($0))" } ?? message }
}

extension WireError {
  /// The application refused something, for a reason of its own.
  public static func rejected(_ message: String) -> WireError {
    WireError(message: message, type: "rejected")
  }

  /// No more sessions are made for now.
  package static var tooManySessions: WireError {
    WireError(
      message: "The server has too many sessions", type: "too-many-sessions",
      retryAfter: .seconds(30))
  }

  /// A connection began with something else than one SessionCreate message. The sentence is
  /// shorter than the one of older servers, which did not fit a WebSocket close frame.
  package static var unrecognizedHandshake: WireError {
    WireError(
      message: "Unrecognized handshake, should send SessionCreate first",
      type: "unrecognized-handshake")
  }

  /// The session to resume is not known, perhaps because it expired.
  package static var sessionTokenUnrecognized: WireError {
    WireError(message: "Session token unrecognized", type: "session-token-unrecognized")
  }

  /// No SessionCreate message came in time.
  package static var sessionEstablishTimedOut: WireError {
    WireError(
      message: "Session took long to establish and timed out", type: "session-establish-timedout")
  }

  /// The application refused the session. Has no type.
  package static var sessionCreationDenied: WireError {
    WireError(message: "Session creation denied")
  }

  /// A change set has the number of another one that this client has sent before: one of the two sides is
  /// not what it was, a restored copy for instance.
  package static func setNumberReused(_ number: Int) -> WireError {
    WireError(
      message: "Change set \(number) is not the one that had this number before",
      type: "set-number-reused")
  }

  /// A message names a scope that the session has not fetched.
  package static func scopeIndexNotFound(_ index: Int) -> WireError {
    WireError(message: "Scope at index \(index) was not found", type: "scope-index-not-found")
  }

  /// A change set was refused as a whole, for instance by its procedure.
  package static func couldNotApplySync(reason: String) -> WireError {
    WireError(
      message: "Could not apply SyncMessage: \(reason)", type: "could-not-apply-sync-message")
  }
}
