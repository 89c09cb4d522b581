/// A way to open connections to a server.
///
/// ``Client/init(url:headers:backoff:isolation:)`` connects over WebSocket. To carry frames in another way, such as through a pair of queues in a test,
/// implement this protocol and ``TransportConnection``.
public protocol Transport: Sendable {
  /// Opens a connection. `headers` give the server what it needs before the first frame: the token of the session to
  /// resume, and the headers of the client's ``Credentials``.
  ///
  /// Throws any error; the app gets its description, and the client tries again.
  func open(headers: [(String, String)]) async throws -> any TransportConnection
}

/// An error that says whether, and when, it makes sense to try to connect again.
package protocol TransportError: Error {
  /// The shortest time to wait before the next attempt; nil if it is not known. The client waits at least as long.
  var retryAfter: Duration? { get }

  /// True if no later attempt can succeed, for instance because the address is not valid. If the client has had no
  /// session yet, ``Client/connect(params:)`` then throws; otherwise the client keeps trying, since it
  /// connected before. False unless implemented.
  var isPermanent: Bool { get }

  /// True if the server has refused the client's credentials. A client that has ``Client/credentials`` then asks for
  /// others and tries again. False unless implemented.
  var refusesCredentials: Bool { get }
}

extension TransportError {
  /// False: the client tries again.
  package var isPermanent: Bool { false }

  /// False: other credentials would not help.
  package var refusesCredentials: Bool { false }
}

/// One connection that carries text frames in both directions, in order.
public protocol TransportConnection: AnyObject, Sendable {
  /// Waits for the next frame, which is UTF-8 text. Returns nil when the peer has closed the connection;
  /// ``closeStatus`` then holds the reason. Throws if the connection was lost.
  func receive() async throws -> [UInt8]?

  /// Queues a frame without waiting. Throws if it cannot be queued; the client then closes the connection.
  func send(_ frame: [UInt8]) throws

  /// Closes the connection after the queued frames have been sent. Does not wait.
  func close(code: Int, reason: String)

  /// The code and the reason with which the peer has closed the connection; nil if it has not.
  var closeStatus: (code: Int, reason: String)? { get }
}
