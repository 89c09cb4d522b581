import Foundation

/// A request to the server for a scope, which the server may refuse for now.
package struct ScopeRequest {
  /// A refusal for now, after which the client asks again.
  struct Refusal {
    let error: WireError
    /// The number of consecutive refusals before this one.
    let repetitions: Int
    /// The time at which the client asks again.
    let retryDue: Duration
  }

  /// The client identity under which the change sets are numbered.
  package internal(set) var clientID: UUID
  /// The parameters for the application on the server.
  let params: JSONValue
  /// The server's last refusal of the scope, while it refuses the scope for now.
  private(set) var refusal: Refusal?
  /// True once other credentials were asked for because the server refused the scope, until it grants the scope.
  private var hasAskedForCredentials = false

  init(clientID: UUID, params: JSONValue) { (self.clientID, self.params) = (clientID, params) }

  /// The number of consecutive refusals until now.
  var refusalCount: Int { refusal.map { $0.repetitions + 1 } ?? 0 }

  /// Notes that the server grants the scope.
  mutating func noteGranted() { (refusal, hasAskedForCredentials) = (nil, false) }

  /// Notes a refusal, and the time at which the client asks again.
  mutating func noteRefused(_ error: WireError, retryDue: Duration) {
    refusal = Refusal(error: error, repetitions: refusalCount, retryDue: retryDue)
  }

  /// Returns true for the first refusal since the last grant, for which other credentials are asked for.
  mutating func takeCredentialsRequest() -> Bool {
    defer { hasAskedForCredentials = true }
    return !hasAskedForCredentials
  }
}
