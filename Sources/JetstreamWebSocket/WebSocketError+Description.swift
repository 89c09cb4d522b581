#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension WebSocketError: CustomStringConvertible {
  /// A description of the error that fits behind a colon.
  public var description: String {
    switch self {
    case .connectionLost: "the connection was lost"
    case .closed: "the connection is closed"
    case .outboundQueueFull: "the peer takes nothing, and too much is waiting to be sent"
    case .protocolViolation(let violation): "the peer broke the WebSocket protocol: \(violation)"
    case .cancelled: "the task was cancelled"
    case .invalidURL(let problem): "the address cannot be used: \(problem)"
    case .secureTransportUnavailable:
      "there is no TLS for wss:// on this platform; connect to a proxy with ws://"
    case .invalidHeader(let name): "the header \(name) cannot be sent"
    case .nameResolutionFailed(let host, let reason): "there is no host \(host): \(reason)"
    case .connectFailed(let code): "no address can be connected to: \(Self.text(code))"
    case .timedOut: "connecting took too long"
    case .handshakeRefused(let status, _): "the server refused the WebSocket with status \(status)"
    case .handshakeInvalid(let fault): "what answers is no WebSocket server: \(fault)"
    case .bindFailed(EADDRINUSE): "the port is taken by another process"
    case .bindFailed(let code): "the address cannot be listened on: \(Self.text(code))"
    }
  }

  /// Returns the system's description of an `errno`.
  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}

extension WebSocketError {
  /// True if the same attempt to connect can never succeed: the address cannot be used, a header cannot be sent, the
  /// server does not speak WebSocket, it refuses the request itself with 400, 401, 403, 404 or 426, or it answers as a
  /// plain web server does, with 405, 410 or 501 and no `Retry-After`.
  ///
  /// False for a page or a redirect, with 2xx or 3xx: it mostly comes from a network that answers in place of the server
  /// until its user has signed in.
  public var isPermanent: Bool {
    switch self {
    case .invalidURL, .secureTransportUnavailable, .invalidHeader, .handshakeInvalid,
      .handshakeRefused(400, _), .handshakeRefused(401, _), .handshakeRefused(403, _),
      .handshakeRefused(404, _), .handshakeRefused(426, _):
      true
    case .handshakeRefused(405, nil), .handshakeRefused(410, nil), .handshakeRefused(501, nil):
      true
    default: false
    }
  }
}
