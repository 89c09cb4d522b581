import Testing

@testable import JetstreamWebSocket

@Suite(.live, .timeLimit(.minutes(5))) struct LiveViolationTests {
  /// Wire bytes of a client, with a mask of zeros where they are masked.
  @Test(arguments: [
    BadBytes("unmasked", .server, [0x81, 0x02, 0x68, 0x69], .unmaskedFrame, 1002),
    .init("reserved bit", .server, [0xC1, 0x80, 0, 0, 0, 0], .reservedBit, 1002),
    .init("text", .server, [0x81, 0x82, 0, 0, 0, 0, 0xC3, 0x28], .invalidUTF8, 1007),
    .init("2^62", .server, [0x82, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0], .frameTooLarge, 1009),
    .init("2^63", .server, [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], .lengthHighBit, 1002),
    .init("1005", .server, [0x88, 0x82, 0, 0, 0, 0, 3, 0xED], .invalidCloseCode(1005), 1002),
  ])
  func theServerAnswersWithTheCodeAndDrops(bad: BadBytes) async throws {
    let errors = Reports(of: WebSocketError?.self)
    try await withListener(onConnection: { connection, _ in
      do throws(WebSocketError) {
        while let message = try await connection.receive() { try? connection.send(message) }
        errors.add(nil)
      } catch {
        errors.add(error)
      }
    }) { listener in
      let socket = try await RawSocket.upgraded(port: listener.port)
      var encoder = FrameEncoder(role: .client)
      socket.send(encoder.message(.text("before")).bytes)
      socket.send(bad.bytes)
      let status = WebSocketCloseStatus(code: bad.code, byPeer: true)
      let events = await socket.readEvents()
      #expect(events.last == .close(status))
      #expect(try await errors.next() == .protocolViolation(bad.violation))
    }
  }

  @Test func theClientRefusesMaskedFrames() async throws {
    let server = try RawServer()
    async let accepted = server.acceptUpgraded()
    let connection = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)")
    let socket = try await accepted
    socket.send([0x81, 0x81, 0, 0, 0, 0, 0x61])
    await #expect(throws: WebSocketError.protocolViolation(.maskedFrame)) {
      _ = try await connection.receive()
    }
    #expect(connection.closeStatus == WebSocketCloseStatus(code: .protocolError))
    let events = decode(await socket.readToEnd(), as: .server).events
    #expect(events == [.close(WebSocketCloseStatus(code: .protocolError, byPeer: true))])
  }

  @Test func bytesOfIncompleteMessagesAreCounted() async throws {
    let server = try RawServer()
    async let accepted = server.acceptUpgraded()
    let connection = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(server.port)")
    let socket = try await accepted
    // A message that goes on, and a ping, whose answer says that both have arrived.
    socket.send([0x01, 2, 0x61, 0x62])
    socket.send([0x89, 0])
    #expect(await socket.readExactly(6).first == 0x8A)
    #expect(connection.receivedBytes == 6 && connection.unread.count == 0)
  }

  @Test func pingsAreAnsweredInTheMiddleOfAMessage() async throws {
    try await withListener { listener in
      let socket = try await RawSocket.upgraded(port: listener.port)
      var encoder = FrameEncoder(role: .client)
      socket.send(encoder.frame(.text, payload: [0x61], fin: false).bytes)
      socket.send(encoder.control(.ping, payload: [1, 2, 3]).bytes)
      #expect(await socket.readExactly(5) == [0x8A, 3, 1, 2, 3])
      socket.send(encoder.frame(.continuation, payload: [0x62]).bytes)
      #expect(await socket.readExactly(4) == [0x81, 2, 0x61, 0x62])
    }
  }
}
