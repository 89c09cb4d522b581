import Dispatch
import Synchronization

/// What a server says to a client that asks for a WebSocket.
public enum UpgradeDecision: Sendable {
  /// The connection is upgraded.
  case accept
  /// The request is answered with this response instead, and the connection closed.
  case refuse(HTTPResponse)
}

/// A server socket that speaks just enough HTTP to serve a page and to open WebSockets.
///
/// It works from ``start(host:port:configuration:onRequest:onUpgrade:onConnection:)`` until
/// ``stop(code:reason:)``, whether or not anyone holds it.
public final class WebSocketListener: Sendable {
  /// How a listener behaves.
  public struct Configuration: Sendable {
    /// How each accepted WebSocket behaves.
    public var connection: WebSocketConfiguration
    /// How long a client may take to send a request, and how long it may leave a response unread.
    /// Half a request is answered with 408 after that; a silent connection is just closed.
    public var handshakeTimeout: Duration
    /// The subprotocols this server speaks. The first of the client's list that is here is chosen.
    public var subprotocols: [String]
    /// How many connections the kernel may keep waiting to be accepted.
    public var backlog: Int32

    /// Makes a configuration; each value left out has the default shown.
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

  /// Answers plain GET and HEAD requests; the body is left out for HEAD by the listener.
  public typealias RequestHandler = @Sendable (HTTPRequest) async -> HTTPResponse
  /// Decides whether a sound handshake is accepted.
  public typealias UpgradeHandler = @Sendable (HTTPRequest) async -> UpgradeDecision
  /// Lives through one connection, in a task of its own. When it returns the connection is closed
  /// with 1000, unless it is closed already.
  public typealias ConnectionHandler = @Sendable (WebSocketConnection, HTTPRequest) async -> Void

  private let core: ListenerCore

  /// The port the listener is bound to; the kernel's choice when 0 was asked for.
  public let port: UInt16

  private init(core: ListenerCore) {
    self.core = core
    port = core.port
  }

  /// Binds `host` and `port` and begins to accept connections.
  ///
  /// `host` is an IPv4 or IPv6 literal, without brackets, or a name, of which the first address
  /// that can be bound is taken. `::` accepts IPv4 too. Port 0 has the kernel choose one.
  ///
  /// Throws ``WebSocketError/bindFailed(code:)`` when no address can be bound and
  /// ``WebSocketError/nameResolutionFailed(host:reason:)`` when there is none.
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

  /// How many sockets are open: WebSockets, and connections that still speak HTTP.
  public var connectionCount: Int { core.connectionCount }

  /// Stops accepting, drops connections that still speak HTTP, closes every WebSocket with `code`
  /// and `reason`, and waits until all their sockets are gone, which the close timeout bounds.
  ///
  /// Handlers are not waited for; they see the end of their connections. Calling it again waits
  /// for the same end.
  ///
  /// - Precondition: `code` may be sent, as ``WebSocketCloseCode/isAllowedOnWire`` says.
  public func stop(code: WebSocketCloseCode = .goingAway, reason: String = "") async {
    precondition(
      code.isAllowedOnWire,
      "The close code \(code) must not be sent; use 1000 to 1003, 1007 to 1014 or 3000 to 4999.")
    await core.stop(WebSocketCloseStatus(code: code, reason: reason))
  }
}
