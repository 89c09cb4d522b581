import JetstreamWebSocket

/// A transport that connects to a server's `ws://` address, or to `wss://` where the platform has TLS.
package struct WebSocketTransport: Transport {
  private let url: String
  private let headers: [(String, String)]
  private let configuration: WebSocketClient.Configuration
  /// The largest message that a client reads: several times what a server lets wait on a connection by default.
  private static let maximumMessageBytes = 256 << 20

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - url: the server's address; the port is 80, or 443 for `wss`, unless given.
  ///   - headers: request headers, for example to authenticate. Headers whose names begin with `X-Jetstream-` reach
  ///     the app on the server as connection parameters.
  package init(url: String, headers: [(String, String)] = []) {
    self.url = url
    self.headers = headers
    var configuration = WebSocketClient.Configuration()
    // The client bounds what it sends, and keeps it until it is acknowledged. A connection that closed
    // because of it would send the same again on the next one.
    configuration.connection.maximumOutboundBytes = .max
    // A message that a client refuses is sent again on each connection. Servers send longer ones than they read: with
    // what an app writes on the server, and with what they add to a client's change set.
    configuration.connection.limits = WebSocketLimits(
      maximumFrameBytes: Self.maximumMessageBytes, maximumMessageBytes: Self.maximumMessageBytes)
    self.configuration = configuration
  }

  /// Checks that the address can be used.
  ///
  /// - Throws: ``WebSocketError/invalidURL(problem:)`` if no transport could use the address.
  static func check(_ url: String) throws(WebSocketError) { try WebSocketClient.check(url) }

  /// Connects and performs the opening handshake.
  package func open(headers more: [(String, String)]) async throws -> any TransportConnection {
    let channel = try await WebSocketClient.open(
      url, headers: headers + more, configuration: configuration)
    return WebSocketTransportConnection(channel)
  }
}

extension WebSocketError: TransportError {
  /// The retry time of a refused handshake, from the header `Retry-After`.
  package var retryAfter: Duration? {
    if case .handshakeRefused(_, let pause) = self { pause } else { nil }
  }

  /// True if the server has answered the handshake with the status 401 or 403.
  package var refusesCredentials: Bool {
    switch self {
    case .handshakeRefused(401, _), .handshakeRefused(403, _): true
    default: false
    }
  }
}

/// A WebSocket connection that carries the sync protocol, in text frames.
package final class WebSocketTransportConnection: TransportConnection {
  private let channel: any WebSocketChannel

  package init(_ channel: any WebSocketChannel) { self.channel = channel }

  package func receive() async throws -> [UInt8]? {
    guard let message = try await channel.receive() else { return nil }
    guard message.kind == .text else {
      channel.beginClose(code: .unsupportedData, reason: "the protocol has text frames only")
      throw BinaryFrame()
    }
    return message.bytes
  }

  private struct BinaryFrame: Error, CustomStringConvertible {
    var description: String { "the server has sent a binary frame" }
  }

  package func send(_ frame: [UInt8]) throws { try channel.send(text: frame) }

  package func close(code: Int, reason: String) {
    channel.beginClose(code: WebSocketCloseCode(rawValue: UInt16(code)), reason: reason)
  }

  /// The number of bytes that have arrived, those of incomplete frames included; nil if the system does not tell.
  package var receivedBytes: Int? { (channel as? WebSocketConnection)?.receivedBytes }

  /// Drops the connection without a close frame.
  package func abort() { channel.abort() }

  package var closeStatus: (code: Int, reason: String)? {
    guard let status = channel.closeStatus, status.byPeer else { return nil }
    return (Int(status.code.rawValue), status.reason)
  }
}
