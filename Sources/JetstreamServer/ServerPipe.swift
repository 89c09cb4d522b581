import Jetstream
import JetstreamWebSocket

/// Reads the connections of a server and decodes what comes, away from the server's actor, and brings it there.
struct ServerPipe: Sendable {
  let server: HomeReference<Server>
  private let gate = LargeMessageGate()

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
      let text = "connection \(id): \(error)"
      await server.perform { $0.onLog.fire(text) }
    }
    await server.perform { $0.closed(id) }
  }

  /// False if there is no server any more.
  private func take(
    _ input: ServerInput, on id: Int, of connection: any ServerConnection
  ) async -> Bool {
    switch input {
    case .probed: return await server.perform { $0.probed(id) } != nil
    case .binaryFrame:
      connection.beginClose(
        code: Int(WebSocketCloseCode.unsupportedData.rawValue),
        reason: "the protocol has text frames only")
      let text = "connection \(id): closed after a binary frame"
      return await server.perform { $0.onLog.fire(text) } != nil
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
    let frame = Message.frame(bytes)
    let size = bytes.count
    return await server.perform { $0.received(frame, isArray: isArray, size: size, on: id) } != nil
  }
}
