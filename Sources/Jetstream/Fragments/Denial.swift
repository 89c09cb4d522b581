/// What a server means that refuses a scope, and so what its client does.
public enum Denial: Sendable, Hashable {
  /// Not now: the client asks again by itself, and what is changed meanwhile is pending.
  case notNow
  /// Not with these credentials: the client asks again for a scope that it has had before, as for ``notNow``, and gives
  /// up one that it has not.
  case notYou
  /// There is no such scope: the client stops syncing it.
  case notThere
  /// The scope is gone for good: the client stops syncing it.
  case gone

  /// Whether no later attempt can succeed.
  public var isFinal: Bool { self == .notThere || self == .gone }
}

extension WireError {
  /// What the error means for a scope that is refused with it; nil if its sender has not said.
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

  /// Refuses a scope for now. Its client asks again after this time.
  public static func notNow(_ message: String, retryAfter: Duration) -> WireError {
    WireError(message: message, type: notNowType, retryAfter: retryAfter)
  }

  /// Refuses a scope to somebody who may not have it.
  public static func notYou(_ message: String) -> WireError {
    WireError(message: message, type: notYouType)
  }

  /// Refuses a scope that does not exist.
  public static func notThere(_ message: String) -> WireError {
    WireError(message: message, type: notThereType)
  }

  /// Refuses a scope that has existed and never will again.
  public static func gone(_ message: String) -> WireError {
    WireError(message: message, type: goneType)
  }
}
