import Foundation
import Jetstream

/// The user or the program for which a session acts, as ``Server/authenticate`` has found out from its credentials.
///
/// ```swift
/// Principal("u-4711", name: "Grace", claims: ["role": "moderator"], expiry: token.expiry)
/// ```
public struct Principal: Sendable, Hashable {
  /// The identity by which the app knows the principal again, such as an account number. It stands in diagnostics.
  public let id: String
  /// The author of the change sets: it is broadcast and logged with them. A name of more than 1 KiB in UTF-8 is left out.
  public var name: String
  /// Anything else that the app wants to know of the principal when it decides about something.
  public var claims: [String: JSONValue]
  /// The date at which the credentials expire; nil if they do not. The session ends then, and the client is asked for
  /// new ones: its app has to provide them with `Client.credentials`, or else syncing ends as after a denied session.
  public var expiry: Date?

  /// Makes a principal, whose name is its id unless given.
  public init(
    _ id: String, name: String? = nil, claims: [String: JSONValue] = [:], expiry: Date? = nil
  ) {
    (self.id, self.name, self.claims, self.expiry) = (id, name ?? id, claims, expiry)
  }
}
