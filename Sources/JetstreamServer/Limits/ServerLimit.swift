import Jetstream

/// A limit of ``ServerLimits``, by the name of its property.
package enum ServerLimit: String, CaseIterable, Sendable {
  case sessions, sessionsPerPrincipal, sessionsPerAddress
  case handshakes, handshakesPerAddress
  case scopesPerSession
  case fragmentsPerChangeSet, bytesPerChangeSet
  case modelsPerScope, bytesPerScope
  case changeSetsPerSecond, bytesPerSecond, changeSetsPerSecondInScope, bytesPerSecondInScope
  case fetchesPerSecond, fullStatesPerSecond, pingsPerSecond
  case unreadBytes, unstoredBytes, unknownDecisionBytes, residentBytes

  /// The error with which the server refuses what exceeds the limit; nil if it refuses nothing.
  var error: WireError? {
    switch self {
    case .sessions: .tooManySessions
    case .sessionsPerPrincipal:
      WireError(
        message: "You have too many sessions", type: "too-many-sessions-of-principal",
        retryAfter: .seconds(30))
    case .sessionsPerAddress:
      WireError(
        message: "Your address has too many sessions", type: "too-many-sessions-of-address",
        retryAfter: .seconds(30))
    case .handshakes:
      WireError(
        message: "Too many connections have no session", type: "too-many-handshakes",
        retryAfter: .seconds(5))
    case .handshakesPerAddress:
      WireError(
        message: "Your address has too many open handshakes",
        type: "too-many-handshakes-of-address", retryAfter: .seconds(5))
    case .scopesPerSession:
      WireError(message: "The session has fetched too many scopes", type: "too-many-scopes")
    case .fragmentsPerChangeSet:
      WireError(message: "The change set has too many fragments", type: "too-many-fragments")
    case .bytesPerChangeSet:
      WireError(message: "The change set is too large", type: "change-set-too-large")
    case .modelsPerScope, .bytesPerScope:
      WireError(message: "The scope is full", type: "scope-full")
    case .unknownDecisionBytes:
      WireError(
        message: "Too many decisions are not known to the client", type: "too-many-decisions")
    case .residentBytes:
      WireError(
        message: "The server is short of memory", type: "short-of-memory",
        retryAfter: .seconds(5))
    case .changeSetsPerSecond, .bytesPerSecond, .changeSetsPerSecondInScope, .bytesPerSecondInScope,
      .fetchesPerSecond, .fullStatesPerSecond, .pingsPerSecond, .unreadBytes, .unstoredBytes:
      nil
    }
  }
}
