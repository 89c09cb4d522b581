/// An error on a connection, on connecting, or on listening.
public enum WebSocketError: Error, Sendable, Hashable {
  /// The connection ended without a complete close handshake: the network or the peer dropped it, the close timeout
  /// passed, or this side aborted.
  case connectionLost
  /// The connection is closed or closing, so nothing more can be sent.
  case closed
  /// The bytes waiting to be sent would exceed ``WebSocketConfiguration/maximumOutboundBytes``.
  case outboundQueueFull
  /// The peer broke the protocol or a limit; the connection was closed with the violation's code.
  case protocolViolation(WebSocketViolation)
  /// The waiting task was cancelled.
  case cancelled
  /// The address is not a usable `ws://` or `wss://` URL. The text gives the reason.
  case invalidURL(problem: String)
  /// `wss://` was requested on a platform without TLS. Put a proxy that terminates TLS in front of the server, and
  /// connect to the proxy's inner side with `ws://`.
  case secureTransportUnavailable
  /// A header has a name or value that HTTP does not allow, or a name that the handshake sets itself. The text is the
  /// header's name.
  case invalidHeader(name: String)
  /// The host name could not be resolved. `reason` is the resolver's text.
  case nameResolutionFailed(host: String, reason: String)
  /// No address of the host accepted a connection. `code` is the `errno` of the last one tried.
  case connectFailed(code: Int32)
  /// Connecting took longer than ``WebSocketClient/Configuration/connectTimeout``.
  case timedOut
  /// The server answered the handshake with a status other than 101. `retryAfter` is the time in which it does not want
  /// to be asked again, from the header `Retry-After`.
  case handshakeRefused(status: Int, retryAfter: Duration? = nil)
  /// The server's answer to the handshake broke HTTP or RFC 6455.
  case handshakeInvalid(WebSocketHandshakeFault)
  /// The listening socket could not be made or bound. `code` is the `errno`.
  case bindFailed(code: Int32)
}

/// A fault in a server's answer to the opening handshake.
public enum WebSocketHandshakeFault: Error, Sendable, Hashable {
  /// The answer was not HTTP/1.1, or its header block was too large.
  case malformedResponse
  /// `Upgrade: websocket` was missing.
  case missingUpgrade
  /// `Connection: Upgrade` was missing.
  case missingConnection
  /// `Sec-WebSocket-Accept` was missing or did not answer this client's key.
  case wrongAccept
  /// The server chose an extension although none was offered.
  case unexpectedExtension
  /// The server chose a subprotocol that was not offered.
  case unexpectedSubprotocol
}
