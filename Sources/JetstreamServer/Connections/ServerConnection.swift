import Jetstream
import JetstreamWebSocket

/// The server's end of a connection, over a WebSocket or within one process.
protocol ServerConnection: AnyObject, Sendable {
  /// Returns the inputs that have come, at least one, in their order. Returns nil when the client has closed.
  func receive() async throws -> [ServerInput]?

  /// The thread on which the connection is read, if it has one: small frames are decoded there.
  var taskExecutor: (any TaskExecutor)? { get }

  /// Queues a frame.
  ///
  /// - Throws: an error if the frame cannot be queued.
  func send(_ frame: ServerText) throws

  /// The number of bytes in memory that wait to be sent, or were received and wait to be taken, also of a message that
  /// is not complete; 0 if that is not known.
  var heldBytes: Int { get }

  /// Sets the size limits for the frames received from now on, and lets more of them wait than without a session.
  func setLimits(_ limits: WebSocketLimits)

  /// Asks the client's WebSocket to confirm that it has received everything sent so far; ``receive()`` returns the
  /// answer as ``ServerInput/probed``.
  func probe()

  func beginClose(code: Int, reason: String)

  /// Drops the connection at once.
  func abort()
}

/// An input on a connection: a frame, or the answer to a probe.
enum ServerInput: Sendable {
  case frame([UInt8])
  case binaryFrame
  case probed
}

/// A connection over a WebSocket.
final class ServerWebSocket: ServerConnection {
  private let connection: WebSocketConnection

  init(_ connection: WebSocketConnection) { self.connection = connection }

  var heldBytes: Int { connection.bufferedBytes + connection.inboundBytes }

  func receive() async throws -> [ServerInput]? {
    try await connection.receiveAll()?.map { message in
      if message.isPong { return .probed }
      return message.kind == .text ? .frame(message.bytes) : .binaryFrame
    }
  }

  var taskExecutor: (any TaskExecutor)? { connection.taskExecutor }

  /// Sends a frame. A connection that its client is closing takes none, and ends by itself: dropping it would take the
  /// answer to the close from the client.
  func send(_ frame: ServerText) throws {
    do { try connection.send(frame) } catch WebSocketError.closed {}
  }

  func setLimits(_ limits: WebSocketLimits) {
    connection.setLimits(limits, maximumInboundBytes: WebSocketConfiguration().maximumInboundBytes)
  }

  func probe() { connection.probe() }

  func beginClose(code: Int, reason: String) {
    connection.beginClose(code: WebSocketCloseCode(rawValue: UInt16(code)), reason: reason)
  }

  func abort() { connection.abort() }
}
