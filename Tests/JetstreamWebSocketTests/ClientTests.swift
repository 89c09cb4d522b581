import Testing

@testable import JetstreamWebSocket

@Suite(.live, .timeLimit(.minutes(5))) struct ClientTests {
  @Test func secureAddressesSayWhyTheyCannotWork() async {
    await #expect(throws: WebSocketError.secureTransportUnavailable) {
      _ = try await WebSocketClient.connect(to: "wss://localhost")
    }
    #if !canImport(Darwin)
    await #expect(throws: WebSocketError.secureTransportUnavailable) {
      _ = try await WebSocketClient.open("wss://localhost")
    }
    #endif
  }

  @Test func badInputIsRefusedBeforeAnythingIsSent() async throws {
    await #expect(throws: WebSocketError.invalidHeader(name: "X")) {
      _ = try await WebSocketClient.connect(to: "ws://localhost", headers: [("X", "a\r\nY: b")])
    }
    await #expect(throws: WebSocketError.self) {
      _ = try await WebSocketClient.connect(to: "http://localhost")
    }
  }

  @Test func nobodyListens() async throws {
    let port = try RawServer().port
    await #expect {
      _ = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)")
    } throws: { error in
      if case .connectFailed = error as? WebSocketError { true } else { false }
    }
  }

  @Test func aNameThatCannotBe() async throws {
    await #expect {
      _ = try await WebSocketClient.connect(to: "ws://no-such-host.invalid")
    } throws: { error in
      if case .nameResolutionFailed = error as? WebSocketError { true } else { false }
    }
  }

  @Test func aServerThatNeverAnswersTimesOut() async throws {
    let server = try RawServer()
    await #expect(throws: WebSocketError.timedOut) {
      _ = try await WebSocketClient.connect(
        to: "ws://127.0.0.1:\(server.port)",
        configuration: .init(connectTimeout: .milliseconds(30)))
    }
  }

  @Test func cancellingEndsTheAttempt() async throws {
    let server = try RawServer()
    let task = Task {
      try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)")
    }
    let (socket, _) = try await server.accept()
    task.cancel()
    await #expect(throws: WebSocketError.cancelled) { _ = try await task.value }
    #expect(await socket.readToEnd().isEmpty)
  }

  @Test(arguments: [
    ("HTTP/1.1 101 Switching Protocols\r\n\r\n", WebSocketError.handshakeInvalid(.missingUpgrade)),
    (
      "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
      .handshakeInvalid(.wrongAccept)
    ),
    ("HTTP/1.1 200 OK\r\n\r\n", .handshakeRefused(status: 200)),
    (
      "HTTP/1.1 503 Busy\r\nretry-after: 7\r\n\r\n",
      .handshakeRefused(status: 503, retryAfter: .seconds(7))
    ),
    ("SSH-2.0-x\r\n\r\n", .handshakeInvalid(.malformedResponse)),
    ("HTTP/1.1 101 X\n\n", .handshakeInvalid(.malformedResponse)),
    ("HTTP/1.1 101", .connectionLost),
  ])
  func badAnswers(answer: String, error: WebSocketError) async throws {
    let server = try RawServer()
    async let served: Void = {
      let (socket, _) = try await server.accept()
      socket.send(answer)
    }()
    await #expect(throws: error) {
      _ = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)")
    }
    try await served
  }

  @Test(
    "An answer of a server that refuses the request, or serves no WebSocket, is permanent",
    arguments: [400, 401, 403, 404, 405, 410, 426, 501])
  func permanentAnswer(status: Int) {
    #expect(WebSocketError.handshakeRefused(status: status).isPermanent)
  }

  @Test(
    "An answer that may change, such as that of a captive portal, is not permanent",
    arguments: [200, 204, 301, 302, 307, 308, 408, 425, 429, 500, 502, 503, 504, 511])
  func passingAnswer(status: Int) {
    #expect(!WebSocketError.handshakeRefused(status: status).isPermanent)
  }

  @Test(
    "An answer that names a time to come back is not permanent", arguments: [405, 410, 501])
  func answerForNow(status: Int) {
    let error = WebSocketError.handshakeRefused(status: status, retryAfter: .seconds(7))
    #expect(!error.isPermanent)
  }

  /// A load balancer without a server behind it does that.
  @Test(arguments: [false, true])
  func aPeerThatClosesRightAfterItHasAcceptedEndsTheAttempt(resets: Bool) async throws {
    let server = try RawServer()
    server.drop(100, resets: resets)
    for attempt in 1...100 {
      do throws(WebSocketError) {
        _ = try await WebSocketClient.connect(
          to: "ws://127.0.0.1:\(server.port)", configuration: .init(connectTimeout: .seconds(20)))
        Issue.record("There is nobody to connect to.")
      } catch {
        try #require(error != .timedOut, "attempt \(attempt)")
      }
    }
  }

  @Test func aServerThatNeverAnswersTheCloseIsGivenUp() async throws {
    let server = try RawServer()
    async let accepted = server.acceptUpgraded()
    let connection = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(server.port)",
      configuration: .init(connection: .init(closeTimeout: .milliseconds(30))))
    let socket = try await accepted
    await connection.close()
    #expect(connection.closeStatus == WebSocketCloseStatus(code: .abnormal))
    await #expect(throws: WebSocketError.connectionLost) { _ = try await connection.receive() }
    _ = await socket.readToEnd()
  }

  @Test func messagesBeforeALossAreStillReceived() async throws {
    let server = try RawServer()
    async let accepted = server.acceptUpgraded()
    let connection = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)")
    let socket = try await accepted
    socket.send([0x81, 1, 0x61, 0x82, 1, 0x62, 0x81, 9, 0x63])
    socket.finishSending()
    #expect(try await connection.receive() == .text("a"))
    #expect(try await connection.receive() == .binary([0x62]))
    await #expect(throws: WebSocketError.connectionLost) { _ = try await connection.receive() }
  }
}
