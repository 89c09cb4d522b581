import Pacing
import Synchronization
import Testing

@testable import JetstreamWebSocket

@Suite(.live, .timeLimit(.minutes(5))) struct LifetimeTests {
  /// A handler that reports how each connection ended.
  private func reporting() -> (Reports<WebSocketError?>, WebSocketListener.ConnectionHandler) {
    let errors = Reports(of: WebSocketError?.self)
    return (
      errors,
      { connection, _ in
        do throws(WebSocketError) {
          while let message = try await connection.receive() {
            if message.text == "abort" { connection.abort() } else { try connection.send(message) }
          }
          errors.add(nil)
        } catch {
          errors.add(error)
        }
      }
    )
  }

  @Test func anAbortIsALossOnBothSides() async throws {
    let (errors, handler) = reporting()
    try await withListener(onConnection: handler) { listener in
      let aborting = try await connect(to: listener)
      try aborting.send(text: "x")
      _ = try await aborting.receive()
      aborting.abort()
      #expect(try await errors.next() == .connectionLost)
      #expect(aborting.closeStatus == WebSocketCloseStatus(code: .abnormal))
      await #expect(throws: WebSocketError.connectionLost) { _ = try await aborting.receive() }

      let aborted = try await connect(to: listener)
      try aborted.send(text: "abort")
      await #expect(throws: WebSocketError.connectionLost) { _ = try await aborted.receive() }
      #expect(try await errors.next() == .connectionLost)
      #expect(throws: WebSocketError.closed) { try aborted.send(text: "late") }
    }
  }

  @Test func lettingGoOfAConnectionAbortsIt() async throws {
    let (errors, handler) = reporting()
    try await withListener(onConnection: handler) { listener in
      var connection: WebSocketConnection? = try await connect(to: listener)
      try connection?.send(text: "x")
      _ = try await connection?.receive()
      connection = nil
      #expect(try await errors.next() == .connectionLost)
    }
  }

  @Test func aCloseGoesOnWhenNobodyHoldsTheConnection() async throws {
    let (errors, handler) = reporting()
    try await withListener(onConnection: handler) { listener in
      var connection: WebSocketConnection? = try await connect(to: listener)
      connection?.beginClose()
      connection = nil
      #expect(try await errors.next() == nil)
    }
  }

  @Test func cancellingAReceiveLosesNothing() async throws {
    try await withListener { listener in
      let connection = try await connect(to: listener)
      for round in 0..<50 {
        let waiting = Task { try await connection.receive() }
        if round % 2 == 0 { await Task.yield() }
        waiting.cancel()
        await #expect(throws: WebSocketError.cancelled) { _ = try await waiting.value }
        try connection.send(text: "\(round)")
        #expect(try await connection.receive()?.text == "\(round)")
      }
    }
  }

  @Test func stopEndsEverything() async throws {
    let (errors, handler) = reporting()
    // The last connect has to meet no other listener.
    let listener = try await WebSocketListener.start(port: keptPort(), onConnection: handler)
    var connections: [WebSocketConnection] = []
    for _ in 0..<20 { connections.append(try await connect(to: listener)) }
    let half = try RawSocket(port: listener.port)
    half.send("GET / HT")
    try await wait { listener.connectionCount == 21 }

    async let other: Void = listener.stop()
    await listener.stop(code: 4096, reason: "over")
    await other
    #expect(listener.connectionCount == 0)
    for connection in connections {
      #expect(try await connection.receive() == nil)
      #expect(connection.closeStatus?.byPeer == true)
      #expect(try await errors.next() == nil)
    }
    #expect(await half.readToEnd().isEmpty)
    await #expect {
      _ = try await connect(to: listener)
    } throws: { error in
      if case .connectFailed = error as? WebSocketError { true } else { false }
    }
    await listener.stop()
  }

  /// A listener that decides on a handshake when the test says so.
  private final class Gatekeeper: HTTPServerDelegate {
    let asked = Reports(of: Bool.self)
    let mayAnswer = Atomic(false)

    var configuration: WebSocketListener.Configuration { .init(handshakeTimeout: .seconds(120)) }
    var keepsAlive: Bool { true }

    func respond(to request: HTTPRequest) async -> HTTPResponse { .text("page") }
    func decide(on request: HTTPRequest) async -> UpgradeDecision {
      asked.add(true)
      while !mayAnswer.load(ordering: .acquiring) { await Task.yield() }
      return .accept
    }
    func adopt(_ connection: WebSocketConnection, of socket: Int, request: HTTPRequest) {}
    func noteClosing(of socket: Int) {}
  }

  @Test("A stop in the middle of a handshake drops the client, or closes behind the response")
  func stopsWithinHandshake() async throws {
    let listening = try RawServer()
    for round in 0..<400 {
      let client = try RawSocket(port: listening.port)
      let accepted = await blocking { Platform.acceptConnection(on: listening.descriptor) }
      let gatekeeper = Gatekeeper()
      let connection = HTTPServerConnection(
        id: 1, transport: SocketTransport(descriptor: accepted, loop: .next()),
        addresses: (nil, nil), server: gatekeeper)
      connection.start()
      client.send(RawSocket.upgrade)
      _ = try await gatekeeper.asked.next()
      gatekeeper.mayAnswer.store(true, ordering: .releasing)
      // A moment that is another one in each round.
      for _ in 0..<(round * 20) { _ = gatekeeper.mayAnswer.load(ordering: .relaxed) }
      connection.stop(WebSocketCloseStatus(code: .goingAway))
      let head = await client.readHead()
      guard !head.isEmpty else { continue }
      #expect(head.hasPrefix("HTTP/1.1 101 "), "round \(round)")
      #expect(await client.readExactly(4) == [0x88, 2, 3, 0xE9], "round \(round)")
    }
  }

  @Test func aPortIsBoundOnceAndReusedAtOnce() async throws {
    let first = try await WebSocketListener.start(port: keptPort(), onConnection: echo)
    await #expect {
      _ = try await WebSocketListener.start(port: first.port, onConnection: echo)
    } throws: { error in
      if case .bindFailed = error as? WebSocketError { true } else { false }
    }
    let connection = try await connect(to: first)
    await first.stop()
    _ = connection.closeStatus
    let second = try await WebSocketListener.start(port: first.port, onConnection: echo)
    #expect(second.port == first.port)
    await second.stop()
  }
}
