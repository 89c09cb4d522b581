/// Opens connections to a server.
///
/// ``WebSocketTransport`` is the one that apps use. Another way to carry frames, such as a pair of
/// queues in a test, is an implementation of this protocol and of ``TransportConnection``.
public protocol Transport: Sendable {
  /// Opens a connection. `headers` tell the server what it has to know before the first frame: the
  /// token of a session that is resumed.
  ///
  /// Throws any error; its description is what the app is told. One that knows whether and when to try again is a
  /// ``TransportError``.
  func open(headers: [(String, String)]) async throws -> any TransportConnection
}

/// Why there is no connection, from somebody who knows whether and when there may be one.
public protocol TransportError: Error {
  /// How long not to try again; nil if that is not known. The client waits at least as long.
  var retryAfter: Duration? { get }

  /// Whether trying again can never succeed, as with an address that cannot be read. A client that has had no session
  /// then ends ``Client/connect(params:isolation:)`` with the error; one that has goes on trying, since it worked
  /// before. False unless implemented.
  var isPermanent: Bool { get }

  /// Whether the server has refused who the client says it is. One that has ``Client/credentials`` asks for others
  /// then, and tries again. False unless implemented.
  var refusesCredentials: Bool { get }
}

extension TransportError {
  /// False: the client tries again.
  public var isPermanent: Bool { false }

  /// False: other credentials would not help.
  public var refusesCredentials: Bool { false }
}

/// One connection that carries frames of text both ways, in order.
public protocol TransportConnection: AnyObject, Sendable {
  /// The next frame, or nil when the peer has closed; ``closeStatus`` tells how. Throws when the
  /// connection was lost. A frame is UTF-8 text.
  func receive() async throws -> [UInt8]?

  /// Queues a frame without waiting. Throws when it cannot be queued, which ends the connection.
  func send(_ frame: [UInt8]) throws

  /// Closes the connection after what was queued. Does not wait.
  func close(code: Int, reason: String)

  /// The code and reason with which the peer has closed; nil while it has not.
  var closeStatus: (code: Int, reason: String)? { get }
}
