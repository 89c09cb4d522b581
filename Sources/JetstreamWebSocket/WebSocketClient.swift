import Foundation

/// Opens WebSockets to servers.
public enum WebSocketClient {
  /// The settings of a client: for connecting, and for the connection afterwards.
  public struct Configuration: Sendable {
    /// The settings of the opened connection.
    public var connection: WebSocketConfiguration
    /// The time that connecting may take, from resolving the name to the end of the handshake.
    public var connectTimeout: Duration
    /// The subprotocols that the client offers, best first.
    public var subprotocols: [String]

    /// Makes a configuration.
    public init(
      connection: WebSocketConfiguration = WebSocketConfiguration(),
      connectTimeout: Duration = .seconds(15),
      subprotocols: [String] = []
    ) {
      self.connection = connection
      self.connectTimeout = connectTimeout
      self.subprotocols = subprotocols
    }
  }

  /// Connects to a `ws://` address over a plain socket.
  ///
  /// The host may be a name, an IPv4 literal or an IPv6 literal in brackets, with a zone as in `[fe80::1%25eth0]`; the
  /// addresses it resolves to are tried in turn. Path and query are sent unchanged. Cancelling the task ends the
  /// attempt at once. The calling actor is not blocked.
  ///
  /// Throws:
  ///
  /// - ``WebSocketError/invalidURL(problem:)`` and ``WebSocketError/invalidHeader(name:)`` before anything is sent;
  /// - ``WebSocketError/secureTransportUnavailable`` for `wss://`; use ``open(_:headers:configuration:)`` for that
  ///   where the platform has TLS;
  /// - ``WebSocketError/nameResolutionFailed(host:reason:)``, ``WebSocketError/connectFailed(code:)``,
  ///   ``WebSocketError/timedOut`` or ``WebSocketError/connectionLost`` if no connection can be made;
  /// - ``WebSocketError/handshakeRefused(status:retryAfter:)`` or ``WebSocketError/handshakeInvalid(_:)`` if the server
  ///   refuses the WebSocket or does not speak the protocol;
  /// - ``WebSocketError/cancelled``.
  public static func connect(
    to url: String,
    headers: [(String, String)] = [],
    configuration: Configuration = Configuration()
  ) async throws(WebSocketError) -> WebSocketConnection {
    let url = try WebSocketURL(url)
    guard !url.isSecure else { throw .secureTransportUnavailable }
    let handshake = try ClientHandshake(
      url: url, headers: headers, subprotocols: configuration.subprotocols,
      key: HandshakeKey.make())
    let attempt = ClientAttempt(url: url, handshake: handshake, configuration: configuration)
    return try await attempt.run().get()
  }

  /// Throws ``WebSocketError/invalidURL(problem:)``, with the reason, when an address cannot be used.
  package static func check(_ url: String) throws(WebSocketError) { _ = try WebSocketURL(url) }

  /// Connects to the address of a `URL`; otherwise like the function that takes a string.
  public static func connect(
    to url: URL,
    headers: [(String, String)] = [],
    configuration: Configuration = Configuration()
  ) async throws(WebSocketError) -> WebSocketConnection {
    try await connect(to: url.absoluteString, headers: headers, configuration: configuration)
  }

  /// Connects to a `ws://` address over a plain socket, or to a `wss://` address over the system's
  /// own stack where there is one.
  ///
  /// Throws as `connect` does; on platforms without TLS, `wss://` throws
  /// ``WebSocketError/secureTransportUnavailable``.
  public static func open(
    _ url: String,
    headers: [(String, String)] = [],
    configuration: Configuration = Configuration()
  ) async throws(WebSocketError) -> any WebSocketChannel {
    #if canImport(Darwin)
    if try WebSocketURL(url).isSecure {
      return try await URLSessionWebSocket.connect(
        to: url, headers: headers, configuration: configuration)
    }
    #endif
    return try await connect(to: url, headers: headers, configuration: configuration)
  }
}
