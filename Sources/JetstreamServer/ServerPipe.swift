import Jetstream
import JetstreamWebSocket

/// Reads the connections of a server and decodes what comes, away from the server's actor, and brings it there.
struct ServerPipe: Sendable {
  let server: HomeReference<Server>
  private let gate = LargeMessageGate()

  init(_ server: HomeReference<Server>) { self.server = server }

  /// Serves one connection until its end.
  func run(_ connection: WebSocketConnection, _ request: HTTPRequest) async {
    let id = await server.perform { $0.opened(connection, request) }
    guard let id else { return connection.abort() }
    do throws(WebSocketError) {
      while let message = try await connection.receiveOrPong() {
        let isServed =
          if message.isPong { await server.perform { $0.probed(id) } != nil } else {
            await take(message, on: id, of: connection)
          }
        guard isServed else { return connection.abort() }
      }
    } catch {
      await server.perform { $0.onLog.fire("connection \(id): \(error)") }
    }
    await server.perform { $0.closed(id) }
  }

  /// False if there is no server any more.
  private func take(
    _ message: WebSocketMessage, on id: Int, of connection: WebSocketConnection
  ) async -> Bool {
    guard message.kind == .text else {
      connection.beginClose(code: .unsupportedData, reason: "the protocol has text frames only")
      let text = "connection \(id): closed after a binary frame"
      return await server.perform { $0.onLog.fire(text) } != nil
    }
    let isLarge = message.bytes.count > LargeMessageGate.threshold
    if isLarge { await gate.enter() }
    let isServed = await decode(message, on: id)
    if isLarge { await gate.leave() }
    return isServed
  }

  private func decode(_ message: WebSocketMessage, on id: Int) async -> Bool {
    let isArray = Message.isArrayFrame(message.bytes)
    let frame = Message.frame(message.bytes)
    let size = message.bytes.count
    return await server.perform { $0.received(frame, isArray: isArray, size: size, on: id) } != nil
  }
}
