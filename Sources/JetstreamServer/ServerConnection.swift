import Jetstream
import JetstreamWebSocket

/// The server's end of a connection, whatever carries it.
protocol ServerConnection: AnyObject, Sendable {
  /// What comes next: a frame, or the answer to a probe. Nil when the client has closed.
  func receive() async throws -> ServerInput?

  /// Queues a frame; throws when it cannot be queued.
  func send(_ frame: [UInt8]) throws

  /// From now on, frames may be as large as this.
  func setLimits(_ limits: WebSocketLimits)

  /// Finds out when the client has received what was sent until now.
  func probe()

  func beginClose(code: Int, reason: String)

  /// Drops the connection.
  func abort()
}

/// What comes on a connection.
enum ServerInput: Sendable {
  case frame([UInt8])
  case binaryFrame
  case probed
}

/// A WebSocket.
final class ServerWebSocket: ServerConnection {
  private let connection: WebSocketConnection

  init(_ connection: WebSocketConnection) { self.connection = connection }

  func receive() async throws -> ServerInput? {
    guard let message = try await connection.receiveOrPong() else { return nil }
    if message.isPong { return .probed }
    return message.kind == .text ? .frame(message.bytes) : .binaryFrame
  }

  func send(_ frame: [UInt8]) throws { try connection.send(text: frame) }

  func setLimits(_ limits: WebSocketLimits) { connection.setLimits(limits) }

  func probe() { connection.probe() }

  func beginClose(code: Int, reason: String) {
    connection.beginClose(code: WebSocketCloseCode(rawValue: UInt16(code)), reason: reason)
  }

  func abort() { connection.abort() }
}
