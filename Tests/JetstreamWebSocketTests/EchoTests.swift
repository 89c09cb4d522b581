import Foundation
import Testing

@testable import JetstreamWebSocket

@Suite(.live, .timeLimit(.minutes(5))) struct EchoTests {
  @Test func everySizeComesBack() async throws {
    var generator = SeededGenerator()
    let seed = generator.seed
    try await withListener { listener in
      let connection = try await connect(to: listener)
      for size in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
        let bytes = generator.bytes(size)
        try connection.send(binary: bytes)
        let binary = try await connection.receive()
        #expect(binary == .binary(bytes), "seed \(seed), size \(size)")
        let text = String(repeating: "é", count: size / 2)
        try connection.send(text: text)
        #expect(try await connection.receive()?.text == text)
      }
      await connection.close()
      #expect(connection.closeStatus == WebSocketCloseStatus(code: .normal))
      #expect(try await connection.receive() == nil)
      #expect(throws: WebSocketError.closed) { try connection.send(text: "late") }
    }
  }

  @Test func messagesKeepTheirOrderAndEndAsASequence() async throws {
    try await withListener { listener in
      let connection = try await connect(to: listener)
      for number in 0..<1000 { try connection.send(text: "\(number)") }
      var expected = 0
      for try await message in connection.messages {
        #expect(message.text == "\(expected)")
        expected += 1
        if expected == 1000 { connection.beginClose() }
      }
      #expect(expected == 1000)
    }
  }

  @Test func theAnswerToAProbeStandsAmongTheMessages() async throws {
    try await withListener { listener in
      let connection = try await connect(to: listener)
      for _ in 0..<3 {
        try connection.send(text: "a")
        connection.probe()
        let first = try await connection.receiveOrPong()
        let second = try await connection.receiveOrPong()
        #expect([first, second].count { $0?.isPong == true } == 1)
        #expect([first, second].count { $0?.text == "a" } == 1)
        connection.probe()
        try connection.send(text: "b")
        #expect(try await connection.receive()?.text == "b")
      }
    }
  }

  @Test func ipv6() async throws {
    try await withListener(host: "::1") { listener in
      let connection = try await WebSocketClient.connect(to: "ws://[::1]:\(listener.port)")
      try connection.send(text: "six")
      #expect(try await connection.receive()?.text == "six")
    }
  }

  @Test func theWildcardTakesBothFamilies() async throws {
    try await withListener(host: "::") { listener in
      for host in ["127.0.0.1", "[::1]", "localhost"] {
        let connection = try await WebSocketClient.connect(
          to: URL(string: "ws://\(host):\(listener.port)")!)
        try connection.send(text: host)
        #expect(try await connection.receive()?.text == host)
      }
    }
  }

  @Test func aNameIsTriedAtAllItsAddresses() async throws {
    try await withListener(host: "127.0.0.1") { listener in
      let connection = try await WebSocketClient.connect(to: "ws://localhost:\(listener.port)")
      try connection.send(text: "found")
      #expect(try await connection.receive()?.text == "found")
    }
  }

  @Test func theHandlerSeesTargetHeadersAndSubprotocol() async throws {
    let handler: WebSocketListener.ConnectionHandler = { connection, request in
      let parts = [
        request.path, request.query ?? "-", request.headers["x-test"] ?? "-",
        request.headers["Host"] ?? "-", connection.subprotocol ?? "-",
      ]
      try? connection.send(text: parts.joined(separator: " "))
    }
    try await withListener(
      configuration: .init(subprotocols: ["b", "a"]), onConnection: handler
    ) { listener in
      let connection = try await WebSocketClient.connect(
        to: "ws://127.0.0.1:\(listener.port)/p/q?r=s%20t", headers: [("X-Test", "yes")],
        configuration: .init(subprotocols: ["a", "c"]))
      #expect(connection.subprotocol == "a")
      let text = try await connection.receive()?.text
      #expect(text == "/p/q r=s%20t yes 127.0.0.1:\(listener.port) a")
      // The handler has returned, so that the server closes normally.
      #expect(try await connection.receive() == nil)
      #expect(connection.closeStatus == WebSocketCloseStatus(code: .normal, byPeer: true))
    }
  }

  @Test func closeCodesAndReasonsTravelBothWays() async throws {
    let reason = #"{"error":"denied"}"#
    let reports = Reports(of: WebSocketCloseStatus?.self)
    try await withListener(onConnection: { connection, request in
      if request.path == "/server" {
        await connection.close(code: 4096, reason: reason)
      } else {
        while let message = try? await connection.receive() { try? connection.send(message) }
      }
      reports.add(connection.closeStatus)
    }) { listener in
      let closed = try await connect(to: listener, path: "/server")
      #expect(try await closed.receive() == nil)
      #expect(
        closed.closeStatus == WebSocketCloseStatus(code: 4096, reason: reason, byPeer: true))
      #expect(try await reports.next() == WebSocketCloseStatus(code: 4096, reason: reason))

      let closing = try await connect(to: listener)
      await closing.close(code: 4097, reason: reason)
      #expect(closing.closeStatus == WebSocketCloseStatus(code: 4097, reason: reason))
      #expect(
        try await reports.next() == WebSocketCloseStatus(code: 4097, reason: reason, byPeer: true))
    }
  }
}
