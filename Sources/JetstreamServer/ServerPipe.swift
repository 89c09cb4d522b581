import Jetstream
import JetstreamWebSocket

/// Reads the connections of a server and decodes their frames off the server's actor, then hands the messages to the
/// server there.
struct ServerPipe: Sendable {
  let server: HomeReference<Server>
  private let gate = LargeMessageGate()
  /// The number of messages of one frame that the server handles without a break.
  static let partLimit = 1024

  init(_ server: HomeReference<Server>) { self.server = server }

  /// Serves one connection until its end.
  @concurrent
  func run(_ connection: any ServerConnection, _ request: HTTPRequest) async {
    let id = await server.perform { $0.opened(connection, request) }
    guard let id else { return connection.abort() }
    do {
      while let input = try await connection.receive() {
        guard await take(input, on: id, of: connection) else { return connection.abort() }
      }
    } catch {
      let text = "\(error)"
      await server.perform {
        $0.onDiagnostic.fire(Diagnostic(.info, .connection, connection: id, text))
      }
    }
    await server.perform { $0.closed(id) }
  }

  /// Handles one input. Returns false if there is no server any more.
  private func take(
    _ input: ServerInput, on id: Int, of connection: any ServerConnection
  ) async -> Bool {
    switch input {
    case .probed: return await server.perform { $0.probed(id) } != nil
    case .binaryFrame:
      connection.beginClose(
        code: Int(WebSocketCloseCode.unsupportedData.rawValue),
        reason: "the protocol has text frames only")
      return await server.perform {
        $0.onDiagnostic.fire(
          Diagnostic(.warning, .connection, connection: id, "closed after a binary frame"))
      } != nil
    case .frame(let bytes):
      let isLarge = bytes.count > LargeMessageGate.threshold
      if isLarge { await gate.enter() }
      let isServed = await decode(bytes, on: id)
      if isLarge { await gate.leave() }
      return isServed
    }
  }

  private func decode(_ bytes: [UInt8], on id: Int) async -> Bool {
    let isArray = Message.isArrayFrame(bytes)
    let size = bytes.count
    switch Message.frame(bytes) {
    case .success(let messages) where messages.count > Self.partLimit:
      return await take(ServerEngine.inOrder(messages), size: size, on: id)
    case let frame:
      return await server.perform { $0.received(frame, isArray: isArray, size: size, on: id) }
        != nil
    }
  }

  /// Hands the messages of a long frame to the server in parts, in order. Other connections get their turn between two
  /// parts.
  private func take(
    _ messages: [Result<Message, MessageError>], size: Int, on id: Int
  ) async -> Bool {
    for start in stride(from: 0, to: messages.count, by: Self.partLimit) {
      let end = min(start + Self.partLimit, messages.count)
      let part = Array(messages[start..<end])
      let isLast = end == messages.count
      let isServed: Void? = await server.perform {
        $0.received(
          .success(part), isArray: true, size: isLast ? size : 0, endsFrame: isLast, on: id)
      }
      guard isServed != nil else { return false }
    }
    return true
  }
}
