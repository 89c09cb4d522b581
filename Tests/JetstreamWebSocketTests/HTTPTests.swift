import Testing

@testable import JetstreamWebSocket

@Suite(.live, .timeLimit(.minutes(5))) struct HTTPTests {
  private func answer(
    to request: String,
    configuration: WebSocketListener.Configuration = .init(handshakeTimeout: .seconds(120)),
    onUpgrade: @escaping WebSocketListener.UpgradeHandler = { _ in .accept }
  ) async throws -> String {
    var answer = ""
    try await withListener(
      configuration: configuration,
      onRequest: { request in
        HTTPResponse(
          status: 200, headers: ["Content-Type": "text/html"],
          body: Array("<\(request.method) \(request.target)>".utf8))
      }, onUpgrade: onUpgrade
    ) { listener in
      let socket = try RawSocket(port: listener.port)
      socket.send(request)
      answer = String(decoding: await socket.readToEnd(), as: UTF8.self)
    }
    return answer
  }

  @Test func aPageIsServed() async throws {
    let answer = try await answer(
      to: "GET /page?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    #expect(
      answer == """
        HTTP/1.1 200 OK\r
        Content-Type: text/html\r
        Content-Length: 13\r
        Connection: close\r
        \r
        <GET /page?x>
        """)
  }

  @Test func headGetsTheLengthButNoBody() async throws {
    let answer = try await answer(to: "HEAD / HTTP/1.0\r\n\r\n")
    #expect(answer.contains("Content-Length: 8\r\n") && answer.hasSuffix("\r\n\r\n"))
  }

  @Test func aConnectionIsKeptAliveForPipelinedRequests() async throws {
    let answer = try await answer(
      to: """
        GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
        HEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n\
        GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
        GET /4 HTTP/1.1\r\nHost: a\r\n\r\n
        """)
    #expect(answer.split(separator: "HTTP/1.1 200 OK").count == 3)
    #expect(answer.contains("Connection: keep-alive\r\n\r\n<GET /1>HTTP"))
    #expect(answer.hasSuffix("Connection: close\r\n\r\n<GET /3>"))
  }

  @Test(arguments: [
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", 405),
    ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("nonsense\r\n\r\n", 400),
    ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    (RawSocket.upgrade.replacing("Version: 13", with: "Version: 7"), 426),
    (RawSocket.upgrade.replacing("dGhl", with: ""), 400),
  ])
  func whatCannotBeServedIsRefused(request: String, status: Int) async throws {
    let answer = try await answer(to: request)
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
    #expect(answer.contains("\r\nConnection: close\r\n"))
    #expect(answer.contains("\r\nAllow: GET, HEAD\r\n") == (status == 405))
    #expect(answer.contains("\r\nSec-WebSocket-Version: 13\r\n") == (status == 426))
  }

  @Test func aHeadWithoutEndIsRefused() async throws {
    let answer = try await answer(
      to: "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 17_000))
    #expect(answer.hasPrefix("HTTP/1.1 431 "))
  }

  @Test func halfARequestIsCutOff() async throws {
    var answer = ""
    // Without an answer, the time was up before the listener had read anything.
    while answer.isEmpty {
      try Task.checkCancellation()
      answer = try await self.answer(
        to: String(RawSocket.upgrade.dropLast(1)),
        configuration: .init(handshakeTimeout: .milliseconds(30)))
    }
    #expect(answer.hasPrefix("HTTP/1.1 408 "))
  }

  @Test func silenceIsCutOff() async throws {
    let answer = try await answer(
      to: "", configuration: .init(handshakeTimeout: .milliseconds(30)))
    #expect(answer.isEmpty)
  }

  @Test func anUpgradeCanBeRefused() async throws {
    let refuse: WebSocketListener.UpgradeHandler = { request in
      request.path == "/yes" ? .accept : .refuse(.text("no", status: 403))
    }
    let answer = try await answer(to: RawSocket.upgrade, onUpgrade: refuse)
    #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.hasSuffix("no"))
    try await withListener(onUpgrade: refuse) { listener in
      await #expect(throws: WebSocketError.handshakeRefused(status: 403)) {
        _ = try await connect(to: listener, path: "/no")
      }
      let connection = try await connect(to: listener, path: "/yes")
      try connection.send(text: "in")
      #expect(try await connection.receive()?.text == "in")
    }
  }

  @Test func framesRightBehindTheHandshakeAreNotLost() async throws {
    try await withListener { listener in
      var encoder = FrameEncoder(role: .client)
      let socket = try RawSocket(port: listener.port)
      socket.send(Array(RawSocket.upgrade.utf8) + encoder.message(.text("early")).bytes)
      _ = await socket.readHead()
      #expect(await socket.readExactly(7) == [0x81, 5] + Array("early".utf8))
      socket.send(encoder.close(WebSocketCloseStatus(code: 4096)).bytes)
      #expect(
        await socket.readEvents() == [.close(WebSocketCloseStatus(code: 4096, byPeer: true))])
    }
  }
}
