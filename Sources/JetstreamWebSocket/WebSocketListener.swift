import Dispatch
import Synchronization

/// The answer to a client that asks for a WebSocket.
public enum UpgradeDecision: Sendable {
  /// The connection is upgraded.
  case accept
  /// The request is answered with this response, and the connection is closed.
  case refuse(HTTPResponse)
}

/// A listening socket with just enough HTTP to serve a page and to open WebSockets.
///
/// It works from ``start(host:port:configuration:onRequest:onUpgrade:onConnection:)`` until ``stop(code:reason:)``,
/// even if no reference to it is kept.
public final class WebSocketListener: Sendable {
  /// The settings of a listener.
  public struct Configuration: Sendable {
    /// The settings of each accepted WebSocket.
    public var connection: WebSocketConfiguration
    /// The time that a client may take to send a request, and the time for which it may leave a response unread. After
    /// that, an incomplete request is answered with 408, and a silent connection is closed.
    public var handshakeTimeout: Duration
    /// The subprotocols that the server supports. The first of the client's list that is among them is chosen.
    public var subprotocols: [String]
    /// The number of connections that the kernel may keep waiting to be accepted.
    public var backlog: Int32
    /// The loop of all connections; nil to spread them over the loops of the process.
    package var loop: EventLoop?
    /// The bounds of the sockets that are no WebSockets.
    package var waiting = WaitingSocketLimits()
    /// Accepts one waiting connection from a listening socket: returns its descriptor or a negative `errno`. Replaced by
    /// tests only.
    package var acceptNext: @Sendable (Int32) -> Int32 = { Platform.acceptConnection(on: $0) }

    /// Makes a configuration.
    ///
    /// - Precondition: Every subprotocol is a token as HTTP defines it.
    public init(
      connection: WebSocketConfiguration = WebSocketConfiguration(),
      handshakeTimeout: Duration = .seconds(10),
      subprotocols: [String] = [],
      backlog: Int32 = 1024
    ) {
      precondition(
        subprotocols.allSatisfy { HTTPHeaders.isToken($0) },
        "A subprotocol's name must be a token as HTTP defines it.")
      self.connection = connection
      self.handshakeTimeout = handshakeTimeout
      self.subprotocols = subprotocols
      self.backlog = backlog
    }
  }

  /// Answers a plain GET or HEAD request. The listener leaves out the body for HEAD.
  public typealias RequestHandler = @Sendable (HTTPRequest) async -> HTTPResponse
  /// Decides whether a valid handshake is accepted.
  public typealias UpgradeHandler = @Sendable (HTTPRequest) async -> UpgradeDecision
  /// Serves one connection, in a task of its own. When it returns, the connection is closed with 1000 unless it is
  /// closed already.
  public typealias ConnectionHandler = @Sendable (WebSocketConnection, HTTPRequest) async -> Void

  private let core: ListenerCore

  /// The port to which the listener is bound; chosen by the kernel if 0 was requested.
  public let port: UInt16

  private init(core: ListenerCore) {
    self.core = core
    port = core.port
  }

  /// Binds `host` and `port` and begins to accept connections.
  ///
  /// `host` is an IPv4 or IPv6 literal, without brackets, or a name; the first address of a name that can be bound is
  /// used. `::` accepts IPv4 too. Port 0 lets the kernel choose one.
  ///
  /// Throws ``WebSocketError/bindFailed(code:)`` when no address can be bound, and
  /// ``WebSocketError/nameResolutionFailed(host:reason:)`` when the host has no address.
  public static func start(
    host: String = "127.0.0.1",
    port: UInt16 = 0,
    configuration: Configuration = Configuration(),
    onRequest: @escaping RequestHandler = { _ in .text("Not found\n", status: 404) },
    onUpgrade: @escaping UpgradeHandler = { _ in .accept },
    onConnection: @escaping ConnectionHandler
  ) async throws(WebSocketError) -> WebSocketListener {
    let core = try await ListenerCore.bind(
      host: host, port: port, configuration: configuration,
      handlers: .init(request: onRequest, upgrade: onUpgrade, connection: onConnection))
    core.start()
    return WebSocketListener(core: core)
  }

  /// The number of open sockets: WebSockets, and connections that still speak HTTP.
  public var connectionCount: Int { core.connectionCount }

  /// Stops accepting, drops connections that still speak HTTP, closes every WebSocket with `code` and `reason`, and
  /// waits until all sockets are closed, at most for the close timeout.
  ///
  /// Does not wait for handlers; they see the end of their connections. A second call waits for the same end.
  ///
  /// - Precondition: ``WebSocketCloseCode/isAllowedOnWire`` is true for `code`.
  public func stop(code: WebSocketCloseCode = .goingAway, reason: String = "") async {
    precondition(
      code.isAllowedOnWire,
      "The close code \(code) must not be sent; use 1000 to 1003, 1007 to 1014 or 3000 to 4999.")
    await core.stop(WebSocketCloseStatus(code: code, reason: reason))
  }
}
