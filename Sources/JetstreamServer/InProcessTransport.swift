import Jetstream
import JetstreamWebSocket
import Synchronization

/// Connects clients to a server in the same process, without sockets.
struct InProcessTransport: Transport {
  struct ServerGone: TransportError, CustomStringConvertible {
    var retryAfter: Duration? { nil }
    var isPermanent: Bool { true }
    var description: String { "the server of this process is gone" }
  }

  struct ServerStopped: Error, CustomStringConvertible {
    var description: String { "the server of this process has stopped" }
  }

  let pipe: ServerPipe

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    guard let isUsed = await pipe.server.perform({ $0.isUsed }) else { throw ServerGone() }
    guard isUsed else { throw ServerStopped() }
    let line = InProcessLine()
    let request = HTTPRequest(method: "GET", target: "/", headers: HTTPHeaders(headers))
    Task { await pipe.run(InProcessLine.ServerEnd(line), request) }
    return InProcessLine.ClientEnd(line)
  }
}

/// A connection within one process: two queues of frames.
final class InProcessLine: Sendable {
  fileprivate let toServer = AsyncStream<ServerInput>.makeStream()
  fileprivate let toClient = AsyncStream<[UInt8]>.makeStream()
  /// The close code and reason that the server has given; nil while it has not closed.
  private let status = Mutex<(code: Int, reason: String)?>(nil)

  private func close() {
    toServer.continuation.finish()
    toClient.continuation.finish()
  }

  /// The client's end. The line is closed when the last reference to it is released.
  final class ClientEnd: TransportConnection {
    private let line: InProcessLine

    init(_ line: InProcessLine) { self.line = line }

    deinit { line.close() }

    func receive() async throws -> [UInt8]? {
      for await frame in line.toClient.stream { return frame }
      return nil
    }

    func send(_ frame: [UInt8]) { line.toServer.continuation.yield(.frame(frame)) }

    func close(code: Int, reason: String) { line.close() }

    var closeStatus: (code: Int, reason: String)? { line.status.withLock { $0 } }
  }

  /// The server's end.
  final class ServerEnd: ServerConnection {
    private let line: InProcessLine

    init(_ line: InProcessLine) { self.line = line }

    func receive() async throws -> [ServerInput]? {
      for await input in line.toServer.stream { return [input] }
      return nil
    }

    var taskExecutor: (any TaskExecutor)? { nil }

    func send(_ frame: ServerText) { line.toClient.continuation.yield(frame.bytes) }

    var heldBytes: Int { 0 }

    func setLimits(_ limits: WebSocketLimits) {}

    /// Answers the probe at once: a frame that was sent counts as received.
    func probe() { line.toServer.continuation.yield(.probed) }

    func beginClose(code: Int, reason: String) {
      line.status.withLock { $0 = $0 ?? (code, reason) }
      line.close()
    }

    func abort() { line.close() }
  }
}
