import Foundation
import Jetstream
import Pacing
import Synchronization
import Testing

@testable import JetstreamServer

/// A client that stops reading costs the server what its window allows, however much is changed meanwhile.
@Suite("Clients that stop reading", .live, .timeLimit(.minutes(5)))
@MainActor
struct StoppedReaderTests {
  @Test("Twenty do while 100 changes of 1 MiB are made; each is right when it reads again")
  func twentyReaders() async throws {
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas)
    let server = Server()
    server.host(scope)
    let port = try await server.listen()
    let gate = Gate()
    var readers: [Participant] = []
    for _ in 0..<20 {
      let transport = GatedTransport(WebSocketTransport(url: "ws://127.0.0.1:\(port)"), gate)
      readers.append(try await Participant(Client(transport: transport)))
    }
    gate.close()
    for number in 0..<100 {
      canvas.name = "\(number) " + String(repeating: "x", count: 1 << 20)
      scope.flush()
      // The sockets write what they can.
      await Task.yield()
    }
    let engine = server.runner.engine!
    #expect(engine.sessionCount == 20)
    // Two states of 1 MiB, at most twice.
    #expect(try #require(engine.streamBytes(of: scope)) <= 4 << 20 + 4096)
    for session in engine.sessions.values {
      #expect(session.waiting.bytes + session.channel.keptBytes <= 5 << 20 + 4096)
      let connection = try #require(session.link.connection)
      let socket = try #require(server.runner.connection(connection) as? ServerWebSocket)
      #expect(socket.heldBytes <= 5 << 20 + 4096)
    }
    gate.open()
    for reader in readers {
      await reader.observe(reader.canvas, until: { $0.name?.hasPrefix("99 ") == true })
      #expect(reader.scope.canonicalJSON == scope.canonicalJSON)
    }
    #expect(engine.sessionCount == 20, "the sessions have gone on")
    await server.stop()
  }
}

/// A gate in front of what clients receive.
private final class Gate: Sendable {
  private struct State {
    var isOpen = true
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  func close() { state.withLock { $0.isOpen = false } }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits while the gate is closed.
  func pass() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// Sockets that are read only while a gate is open.
private struct GatedTransport: Transport {
  private let transport: any Transport
  private let gate: Gate

  init(_ transport: any Transport, _ gate: Gate) { (self.transport, self.gate) = (transport, gate) }

  func open(headers: [(String, String)]) async throws -> any TransportConnection {
    Connection(try await transport.open(headers: headers), gate)
  }

  private final class Connection: TransportConnection {
    private let connection: any TransportConnection
    private let gate: Gate

    init(_ connection: any TransportConnection, _ gate: Gate) {
      (self.connection, self.gate) = (connection, gate)
    }

    func receive() async throws -> [UInt8]? {
      await gate.pass()
      return try await connection.receive()
    }

    func send(_ frame: [UInt8]) throws { try connection.send(frame) }

    func close(code: Int, reason: String) { connection.close(code: code, reason: reason) }

    var closeStatus: (code: Int, reason: String)? { connection.closeStatus }
  }
}
