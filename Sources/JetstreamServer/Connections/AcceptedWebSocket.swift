import Jetstream
import JetstreamWebSocket
import Synchronization

/// A WebSocket that another library has accepted, as ``Server/accept(_:for:)`` uses it.
///
/// A server calls ``receive()`` from one task, and the other methods from any thread, often on its actor. None of these
/// may block.
public protocol AcceptedWebSocket: AnyObject, Sendable {
  /// Returns the messages that have come since the last call, at least one, in their order; waits for the first. Returns
  /// nil once the other end has closed.
  ///
  /// The server handles all of them in one step of its actor, and calls again when that is done. Until then, let the
  /// other end wait.
  ///
  /// - Throws: the reason for which the connection was lost.
  func receive() async throws -> [WebSocketMessage]?

  /// Queues a text message, the UTF-8 of which is `text`, behind those of earlier calls, and returns at once.
  ///
  /// - Throws: the reason for which it cannot be queued, such as an end that does not read. The server drops the
  ///   connection then; its client resumes the session on another one.
  func send(text: [UInt8]) throws

  /// Begins to close the connection, behind everything that is queued, and returns at once. ``receive()`` must return
  /// nil or throw after that, also if the other end never answers. The server calls this at most once.
  ///
  /// - Parameters:
  ///   - code: the code of the close frame.
  ///   - reason: its reason, at most 123 bytes of UTF-8.
  func close(code: WebSocketCloseCode, reason: String)

  /// Drops the connection at once. ``receive()`` returns nil or throws.
  func abort()
}

/// A WebSocket of another library as a connection of a server. It checks what the server's own sockets have checked.
final class ForeignWebSocket: ServerConnection {
  private let socket: any AcceptedWebSocket
  private let maximumBytes: Atomic<Int>
  private let wasRefused = Atomic(false)
  /// True once the connection is being closed: each channel of its session may ask for that.
  private let isClosing = Atomic(false)

  init(_ socket: any AcceptedWebSocket, _ limits: WebSocketLimits) {
    self.socket = socket
    maximumBytes = Atomic(limits.maximumMessageBytes)
  }

  /// Returns the messages in front of the first one that is refused.
  func receive() async throws -> [ServerInput]? {
    while !wasRefused.load(ordering: .relaxed) {
      guard let messages = try await socket.receive() else { return nil }
      var inputs: [ServerInput] = []
      for message in messages {
        if let (code, reason) = objection(to: message) {
          close(code, reason)
          wasRefused.store(true, ordering: .relaxed)
          break
        }
        inputs.append(message.kind == .text ? .frame(message.bytes) : .binaryFrame)
      }
      if !inputs.isEmpty { return inputs }
    }
    // The library may drop the connection once the server has let go of it, before the other end knows the reason.
    while try await socket.receive() != nil {}
    throw Refused()
  }

  /// The end of a connection whose last message was refused.
  private struct Refused: Error, CustomStringConvertible {
    var description: String { "closed after a message that is too large, or is no UTF-8" }
  }

  private func objection(to message: WebSocketMessage) -> (WebSocketCloseCode, String)? {
    let limit = maximumBytes.load(ordering: .relaxed)
    if message.bytes.count > limit {
      return (
        .messageTooBig, "a message of \(message.bytes.count) bytes, where \(limit) are allowed"
      )
    }
    if message.kind == .text, String(validating: message.bytes, as: UTF8.self) == nil {
      return (.invalidPayload, "a text message that is not UTF-8")
    }
    return nil
  }

  var taskExecutor: (any TaskExecutor)? { nil }

  /// Sends a frame. A connection that is being closed takes none, and ends by itself: dropping it would take the reason
  /// for the close from the client.
  func send(_ frame: ServerText) throws {
    if isClosing.load(ordering: .relaxed) { return }
    do {
      try socket.send(text: frame.bytes)
    } catch {
      // The close may have begun on another thread meanwhile.
      if !isClosing.load(ordering: .relaxed) { throw error }
    }
  }

  var heldBytes: Int { 0 }

  func setLimits(_ limits: WebSocketLimits) {
    maximumBytes.store(limits.maximumMessageBytes, ordering: .relaxed)
  }

  /// Does nothing: the pongs of other libraries do not come in order with the messages. A server gets along without.
  func probe() {}

  func beginClose(code: Int, reason: String) {
    close(WebSocketCloseCode(rawValue: UInt16(code)), CloseReason.plain(reason))
  }

  private func close(_ code: WebSocketCloseCode, _ reason: String) {
    if isClosing.exchange(true, ordering: .relaxed) { return }
    socket.close(code: code, reason: reason)
  }

  func abort() { socket.abort() }
}
