/// The kind of a server's refusal of a scope, which decides what its client does.
public enum Denial: Sendable, Hashable {
  /// The server refuses the scope for now. The client asks again by itself; changes made until then stay pending.
  case notNow
  /// The server does not grant the scope with these credentials. The client sends others, if its app gives it some:
  /// see ``Client/credentials``. Without any, it asks again, as for ``notNow``, if the scope has a log or its state
  /// has been received before, and stops syncing it otherwise.
  case notYou
  /// There is no such scope. The client stops syncing it.
  case notThere
  /// The scope no longer exists. The client stops syncing it.
  case gone

  /// True if no later attempt can succeed.
  package var isFinal: Bool { self == .notThere || self == .gone }
}

extension WireError {
  /// The kind of refusal that the error's ``type`` names; nil if it names none.
  public var denial: Denial? {
    switch type {
    case Self.notNowType: .notNow
    case Self.notYouType: .notYou
    case Self.notThereType: .notThere
    case Self.goneType: .gone
    default: retryAfter == nil ? nil : .notNow
    }
  }

  private static let notNowType = "not-now"
  private static let notYouType = "not-you"
  private static let notThereType = "not-there"
  private static let goneType = "gone"

  /// Refuses a scope for now. The client asks again after `retryAfter`.
  public static func notNow(_ message: String, retryAfter: Duration) -> WireError {
    WireError(message: message, type: notNowType, retryAfter: retryAfter)
  }

  /// Refuses a scope because of the client's credentials.
  public static func notYou(_ message: String) -> WireError {
    WireError(message: message, type: notYouType)
  }

  /// Refuses a scope that does not exist.
  public static func notThere(_ message: String) -> WireError {
    WireError(message: message, type: notThereType)
  }

  /// Refuses a scope that no longer exists.
  public static func gone(_ message: String) -> WireError {
    WireError(message: message, type: goneType)
  }
}
