import Foundation

/// Opens WebSockets to servers.
public enum WebSocketClient {
  /// How a client connects.
  public struct Configuration: Sendable {
    /// How the opened connection behaves.
    public var connection: WebSocketConfiguration
    /// How long connecting may take, from resolving the name to the end of the handshake.
    public var connectTimeout: Duration
    /// The subprotocols to offer, best first.
    public var subprotocols: [String]

    /// Makes a configuration; each value left out has the default shown.
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
  /// The host may be a name, an IPv4 literal or an IPv6 literal in brackets; every address it
  /// resolves to is tried in turn. Path and query are sent as they stand. Cancelling the task ends
  /// the attempt at once. Nothing blocks the calling actor.
  ///
  /// Throws ``WebSocketError/invalidURL(_:)`` and ``WebSocketError/invalidHeader(_:)`` before
  /// anything is sent; ``WebSocketError/secureTransportUnavailable`` for `wss://`, which
  /// ``open(_:headers:configuration:)`` takes where the platform has TLS;
  /// ``WebSocketError/nameResolutionFailed(host:reason:)``,
  /// ``WebSocketError/connectFailed(code:)``, ``WebSocketError/timedOut``,
  /// ``WebSocketError/connectionLost``, ``WebSocketError/handshakeRefused(status:retryAfter:)`` and
  /// ``WebSocketError/handshakeInvalid(_:)`` for what their names say; and
  /// ``WebSocketError/cancelled``.
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

  /// Throws ``WebSocketError/invalidURL(_:)``, with what is wrong, when an address cannot be used.
  package static func check(_ url: String) throws(WebSocketError) { _ = try WebSocketURL(url) }

  /// Connects to the address of a `URL`, as the function that takes a string does.
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
