import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Pacing
import Testing

@Suite("Frames that are no protocol, while others keep working", .live, .timeLimit(.minutes(5)))
@MainActor
struct HostileFrameTests {
  @Test(
    "What is not JSON ends the connection and says where it is wrong",
    arguments: [
      (#"{"type":"#, "unexpected end at byte 8"),
      (#"{"type":"Ping","index":0,"ack":01}"#, "invalid number at byte 32"),
      ("5", "neither an object nor an array"),
      ("", "unexpected end at byte 0"),
      (#"{"a":1,"a":2}"#, "duplicate key \"a\" at byte 7"),
      (String(repeating: "[", count: 10_000), "nesting too deep at byte 64"),
      (String(repeating: #"{"a":"#, count: 10_000), "nesting too deep at byte 320"),
    ])
  func malformedJSON(text: String, problem: String) async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      try peer.send(text)
      return await peer.end()
    }
    #expect(status?.code == 1007)
    #expect(status?.reason.contains(problem) == true, "\(status?.reason ?? "")")
  }

  @Test("A binary frame ends the connection, whatever it holds")
  func binaryFrame() async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      try peer.connection.send(binary: Array(#"{"type":"Ping","index":0,"ack":0}"#.utf8))
      return await peer.end()
    }
    #expect(status?.code == .unsupportedData)
    #expect(room.log.contains { $0.contains("binary frame") })
  }

  @Test("A client leaves a server that sends a binary frame, and says why")
  func binaryFrameOfServer() async throws {
    let listener = try await WebSocketListener.start(configuration: .patient) { connection, _ in
      try? connection.send(binary: [0x5B, 0x5D])
      _ = try? await connection.receive()
    }
    let client = Client(url: "ws://127.0.0.1:\(listener.port)")
    let attempt = Task { try await client.connect() }
    try await awaitCall { done in
      client.onDiagnostic.listen { if "\($0)".contains("binary frame") { done(()) } }
    }
    client.close()
    await #expect(throws: SyncError.self) { try await attempt.value }
    await listener.stop()
  }

  @Test(
    "A wrong first message is refused with a reason",
    arguments: [
      ("garbage", "unexpected character at byte 0", nil),
      (
        #"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#, "SessionCreate",
        "unrecognized-handshake"
      ),
      (
        #"[{"type":"SessionCreate","index":0,"version":"0.1.0"}]"#, "Session",
        "unrecognized-handshake"
      ),
      ("[]", "SessionCreate", "unrecognized-handshake"),
      (#"{"type":"SessionCreate","index":0}"#, "version is missing", nil),
      (#"{"type":"SessionCreate","index":0,"version":"1.0"}"#, "semantic version", nil),
      (#"{"type":"SessionCreate","index":0,"version":1}"#, "version should be a string", nil),
      (#"{"type":"SessionCreate","version":"0.1.0"}"#, "index is missing", nil),
      (#"{"type":"SessionCreate","index":-1,"version":"0.1.0"}"#, "index should be", nil),
      (#"{"type":"Nope","index":0}"#, "unknown message type \"Nope\"", nil),
      (String(repeating: "[", count: 10_000), "nesting too deep", nil),
    ] as [(String, String, String?)])
  func firstMessage(text: String, problem: String, type: String?) async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      let peer = try await BadPeer(port: room.port)
      try peer.send(text)
      return await peer.end()
    }
    #expect(status?.code == 4096)
    let error = try WireError(json: JSONValue(parsing: status?.reason ?? ""))
    #expect(error.message.contains(problem), "\(error.message)")
    #expect(error.type == type)
  }

  @Test("A token that the server does not know is refused")
  func unknownToken() async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      await (try BadPeer(port: room.port, token: "constructor")).end()
    }
    #expect(status?.code == 4096)
    #expect(
      status?.reason
        == #"{"message":"Session token unrecognized","type":"session-token-unrecognized"}"#)
  }

  @Test(
    "Broken WebSocket frames get the right code",
    arguments: [
      ([0x81, 0x02, 0x68, 0x69], 1002),
      ([0xC1, 0x80, 0, 0, 0, 0], 1002),
      ([0x81, 0x82, 0, 0, 0, 0, 0xC3, 0x28], 1007),
      ([0x81, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0], 1009),
    ] as [([UInt8], Int)])
  func brokenFrames(bytes: [UInt8], code: Int) async throws {
    let room = try await LiveRoom()
    let end = try await room.withstand {
      let socket = try await BareSocket.upgraded(port: room.port)
      socket.send(text: #"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#)
      _ = await socket.read { String(decoding: $0, as: UTF8.self).contains("}]") }
      socket.send(bytes)
      return await socket.read()
    }
    let expected = [UInt8(code >> 8), UInt8(code & 255)]
    #expect(end.prefix(1) == [0x88] && end.dropFirst(2).prefix(2) == expected[...], "\(end)")
  }

  @Test("Half a handshake ends with 408, beside clients at work")
  func halfAHandshake() async throws {
    let room = try await LiveRoom()
    let head = try await room.withstand {
      try await withHastyServer { port in
        while true {
          let half = try BareSocket(port: port)
          half.send(Array("GET / HTTP/1.1\r\nHost: a\r\nUpgr".utf8))
          let head = await half.read()
          // Without an answer, the time was up before the server had read anything.
          if !head.isEmpty { return head }
          try Task.checkCancellation()
        }
      }
    }
    #expect(String(decoding: head, as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
  }

  @Test("Silence after the handshake ends with a reason, beside clients at work")
  func silenceAfterTheHandshake() async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      try await withHastyServer { port in
        while true {
          do {
            return await (try BadPeer(port: port)).end()
          } catch WebSocketError.handshakeRefused(status: 408, retryAfter: _),
            WebSocketError.connectionLost
          {
            // The time was up before the opening handshake was over.
          }
        }
      }
    }
    #expect(status?.code == 4096)
    #expect(status?.reason.contains("session-establish-timedout") == true)
  }

  /// Runs `attack` against a server of its own with a short timeout, on the actor and the event loops of all others.
  ///
  /// No machine is fast enough for a short timeout all the time. So the clients at work are connected to a server that
  /// waits longer, and an attack that was too slow to get as far as it means to is made again.
  private func withHastyServer<Value>(
    _ attack: @MainActor (UInt16) async throws -> Value
  ) async throws -> Value {
    var configuration = Server.Configuration()
    configuration.handshakeTimeout = .milliseconds(250)
    let server = Server(configuration: configuration)
    let result = try await attack(try await server.listen())
    await server.stop()
    return result
  }

  @Test("When unfinished messages take too much memory together, the largest is dropped")
  func unfinishedMessages() async throws {
    var configuration = Server.Configuration()
    configuration.limits.unreadBytes = 7 << 19
    let room = try await LiveRoom(configuration)
    try await room.withstand {
      let (small, large) = (
        try await BareSocket.upgraded(port: room.port),
        try await BareSocket.upgraded(port: room.port)
      )
      // A frame of 4 MiB, of which the rest never comes.
      for (socket, size) in [(small, 1 << 20), (large, 3 << 20)] {
        socket.send(text: #"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#)
        _ = await socket.read { String(decoding: $0, as: UTF8.self).contains("}]") }
        socket.send(
          [0x81, 0xFF, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0]
            + [UInt8](repeating: UInt8(ascii: " "), count: size))
      }
      try await wait { !room.server.limitHits.isEmpty }
      _ = await large.read()
      try await wait { room.server.connectionCount == 3 }
      #expect(room.server.limitHits == ["unreadBytes": 1])
      withExtendedLifetime(small) {}
    }
  }

  @Test("A client that never reads is dropped")
  func neverReads() async throws {
    var configuration = Server.Configuration()
    configuration.maximumOutboundBytes = 512 << 10
    let room = try await LiveRoom(configuration)
    try await room.withstand {
      let socket = try await BareSocket.upgraded(port: room.port)
      socket.send(text: #"{"type":"SessionCreate","index":0,"version":"0.1.0"}"#)
      _ = await socket.read { String(decoding: $0, as: UTF8.self).contains("}]") }
      socket.send(text: #"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#)
      let page = String(repeating: "x", count: 128 << 10)
      // Enough for what the two kernels' buffers take, and the server's queue on top.
      for round in 0..<200 where room.server.connectionCount > 2 || round < 2 {
        let name = "\(round)\(page)"
        room.first.canvas.name = name
        await room.second.observe(room.second.canvas, until: { $0.name == name })
      }
      #expect(room.server.connectionCount == 2)
      #expect(room.log.contains { $0.contains("dropped") })
      room.first.canvas.name = "room"
      await room.second.observe(room.second.canvas, until: { $0.name == "room" })
      withExtendedLifetime(socket) {}
    }
  }
}
