import Foundation
import Jetstream
import JetstreamWebSocket

/// A client's session, as the app sees it.
public struct SessionInfo: Sendable, Hashable {
  /// The token with which the client resumes the session. Keep it secret: a client that knows it can take over the
  /// session.
  public let token: String
  /// The headers and query parameters of the connection whose names begin with `x-jetstream-`. The keys are the names
  /// without that prefix, in lower case for headers.
  public let connectionParams: [String: String]
  /// The parameters that the client sent when it created the session.
  public let params: JSONValue
  /// The version that the client has given as its own.
  public let version: String
  /// The client's identity, the same in all its sessions; nil for a client that does not number its change sets. The
  /// client names it itself, unchecked.
  public var client: UUID? = nil
  /// The HTTP request that opened the connection on which the client created the session, with its headers and remote
  /// address, behind proxies that are trusted; nil for a connection that is not an HTTP upgrade.
  public var request: HTTPRequest? = nil
  /// The principal for which the session acts, which ``Server/authenticate`` has returned; nil for a guest, and before it
  /// has returned.
  public internal(set) var principal: Principal? = nil
  /// The number by which diagnostics name the session, in all its channels; 0 before it is created.
  var number = 0
}
