/// What can go wrong on a connection, while making one, or while listening.
public enum WebSocketError: Error, Sendable, Hashable {
  /// The connection ended without a close handshake: the network or the peer dropped it, the
  /// handshake of closing took too long, or this side aborted.
  case connectionLost
  /// The connection is closed or closing, so nothing more can be sent.
  case closed
  /// The bytes waiting to be sent would exceed the configured bound.
  case outboundQueueFull
  /// The peer broke the protocol or a limit; the connection was closed with the violation's code.
  case protocolViolation(WebSocketViolation)
  /// The waiting task was cancelled.
  case cancelled
  /// The address is not a usable `ws://` or `wss://` URL. The text says why.
  case invalidURL(String)
  /// `wss://` was asked for where the toolchain brings no TLS. Let a proxy that terminates TLS
  /// stand before the server, and connect to that proxy's inner side with `ws://`.
  case secureTransportUnavailable
  /// A header to be sent has a name or value that HTTP does not allow, or one that the handshake
  /// sets itself. The text is the header's name.
  case invalidHeader(String)
  /// The host's name could not be resolved. The text is the resolver's.
  case nameResolutionFailed(host: String, reason: String)
  /// No address could be connected to. Holds `errno` of the last one tried.
  case connectFailed(code: Int32)
  /// Connecting took longer than configured.
  case timedOut
  /// The server answered the handshake with something other than 101. `retryAfter` is how long it wants not to be
  /// asked, from the header `Retry-After`.
  case handshakeRefused(status: Int, retryAfter: Duration? = nil)
  /// The server's answer to the handshake broke HTTP or RFC 6455.
  case handshakeInvalid(WebSocketHandshakeFault)
  /// The listening socket could not be made or bound. Holds `errno`.
  case bindFailed(code: Int32)
}

/// In which way a server's answer to the opening handshake was wrong.
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
