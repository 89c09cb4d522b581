/// An error that one peer sends to the other: a sentence for people and, for well-known errors, a type for
/// programs. On the wire `{"message":"...","type":"..."}`; the type is left out if there is none.
public struct WireError: Error, Sendable, Hashable {
  /// A sentence that describes the error. Programs should use ``type``.
  public var message: String

  /// The name of the kind of error; nil for an error without one.
  public var type: String?

  /// The time that the receiver should wait before it tries again; nil if the sender names none.
  public var retryAfter: Duration?

  /// Makes an error.
  public init(message: String, type: String? = nil, retryAfter: Duration? = nil) {
    self.message = message
    self.type = type
    self.retryAfter = retryAfter
  }

  /// Reads an error from its ``json``. Unknown keys are ignored; a `null` type or time counts as absent.
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

  /// The error as JSON: `message`, `type`, and `retryAfter` in seconds; fields without a value are left out.
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
  /// The app refused something, for a reason of its own.
  public static func rejected(_ message: String) -> WireError {
    WireError(message: message, type: "rejected")
  }

  /// The server makes no more sessions for now. The client should wait 30 seconds.
  package static var tooManySessions: WireError {
    WireError(
      message: "The server has too many sessions", type: "too-many-sessions",
      retryAfter: .seconds(30))
  }

  /// A connection began with something other than one SessionCreate message. The message is shorter than that of
  /// older servers, which did not fit a WebSocket close frame.
  package static var unrecognizedHandshake: WireError {
    WireError(
      message: "Unrecognized handshake, should send SessionCreate first",
      type: "unrecognized-handshake")
  }

  /// The server does not know the session to resume, perhaps because it has expired.
  package static var sessionTokenUnrecognized: WireError {
    WireError(message: "Session token unrecognized", type: "session-token-unrecognized")
  }

  /// The server received no SessionCreate message in time.
  package static var sessionEstablishTimedOut: WireError {
    WireError(
      message: "Session took long to establish and timed out", type: "session-establish-timedout")
  }

  /// The app refused the session. The error has no type.
  package static var sessionCreationDenied: WireError {
    WireError(message: "Session creation denied")
  }

  /// A change set has the number of a different one that this client has sent before: one of the two sides was
  /// restored from an older copy, for instance.
  package static func setNumberReused(_ number: Int) -> WireError {
    WireError(
      message: "Change set \(number) is not the one that had this number before",
      type: "set-number-reused")
  }

  /// The server knows that a change set has had no effect, and not why.
  package static var reasonForgotten: WireError {
    WireError(
      message: "The server has rejected the change, and has forgotten the reason",
      type: "reason-forgotten")
  }

  /// The server has decided a call before, and knows no more of it. It does not begin the call again.
  package static var outcomeForgotten: WireError {
    WireError(
      message: "The server has decided the call before, and has forgotten what has come of it",
      type: "outcome-forgotten")
  }

  /// The server would open the scope if it had the schema of the scope's classes. The client asks for the scope again, with
  /// the schema.
  package static var schemaWanted: WireError {
    WireError(
      message: "The server needs the schema of the scope's classes", type: "schema-wanted")
  }

  /// A message names a scope that the session has not fetched.
  package static func scopeIndexNotFound(_ index: Int) -> WireError {
    WireError(message: "Scope at index \(index) was not found", type: "scope-index-not-found")
  }

  /// A change set was rejected as a whole, for instance by its procedure.
  package static func couldNotApplySync(reason: String) -> WireError {
    WireError(
      message: "Could not apply SyncMessage: \(reason)", type: "could-not-apply-sync-message")
  }
}
