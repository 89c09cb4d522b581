#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension WebSocketError: CustomStringConvertible {
  /// What went wrong, in words that fit behind a colon.
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

  /// The system's words for an `errno`.
  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}

extension WebSocketError {
  /// Whether the same attempt to connect can never succeed, however often it is made: the address cannot be used, a
  /// header cannot be sent, no WebSocket server answers there, or the server refuses the request itself with 400, 401,
  /// 403, 404 or 426.
  public var isPermanent: Bool {
    switch self {
    case .invalidURL, .secureTransportUnavailable, .invalidHeader, .handshakeInvalid,
      .handshakeRefused(400, _), .handshakeRefused(401, _), .handshakeRefused(403, _),
      .handshakeRefused(404, _), .handshakeRefused(426, _):
      true
    default: false
    }
  }
}
