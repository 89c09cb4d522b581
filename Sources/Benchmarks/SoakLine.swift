import Jetstream
import JetstreamWebSocket
import Synchronization

/// The network of one client, which may stall or fail.
///
/// While it is stalled, nothing that the server sends is read. While it is dark, connections cannot be opened, and
/// nothing is carried in either direction: the server is told of that at once, as by a broken connection, or never.
final class SoakLine: Sendable {
  private struct State {
    var isStalled = false
    var isDark = false
    var connection: SoakConnection?
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  var isDark: Bool { state.withLock(\.isDark) }

  /// Stops reading.
  func stall() { state.withLock { $0.isStalled = true } }

  /// Breaks the connection, without a close frame. A client opens another one.
  func cut() { state.withLock(\.connection)?.abort() }

  /// Carries nothing any more.
  ///
  /// - Parameter silently: true if the connection stays open.
  func darken(silently: Bool) {
    state.withLock { $0.isDark = true }
    if !silently { cut() }
  }

  /// Reads and carries everything again, on a new connection if frames were lost.
  func restore() {
    // The connection ends before frames are carried again: none may follow one that was lost.
    if isDark { cut() }
    let waiting = state.withLock { state in
      (state.isStalled, state.isDark) = (false, false)
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  fileprivate func note(_ connection: SoakConnection) {
    state.withLock { $0.connection = connection }
  }

  /// Waits while nothing is read.
  fileprivate func pass() async {
    await withCheckedContinuation { continuation in
      let passes = state.withLock { state in
        let passes = !state.isStalled && !state.isDark
        if !passes { state.waiting.append(continuation) }
        return passes
      }
      if passes { continuation.resume() }
    }
  }
}

/// Connects over WebSocket, through a line.
struct SoakTransport: Transport {
  private let transport: WebSocketTransport
  private let line: SoakLine

  init(url: String, _ line: SoakLine) {
    (transport, self.line) = (WebSocketTransport(url: url), line)
  }

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    if line.isDark { throw RoleProblem(text: "the network is down") }
    let connection = SoakConnection(try await transport.open(headers: headers), line)
    line.note(connection)
    return connection
  }
}

/// A connection through a line.
private final class SoakConnection: TransportConnection {
  private let connection: any TransportConnection
  private let line: SoakLine

  init(_ connection: any TransportConnection, _ line: SoakLine) {
    (self.connection, self.line) = (connection, line)
  }

  func receive() async throws -> [UInt8]? {
    await line.pass()
    return try await connection.receive()
  }

  func send(_ frame: [UInt8]) throws {
    if !line.isDark { try connection.send(frame) }
  }

  func close(code: Int, reason: String) {
    if line.isDark { abort() } else { connection.close(code: code, reason: reason) }
  }

  func abort() { (connection as? WebSocketTransportConnection)?.abort() }

  var closeStatus: (code: Int, reason: String)? { connection.closeStatus }
}
