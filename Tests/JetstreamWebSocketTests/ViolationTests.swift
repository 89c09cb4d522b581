import Testing

@testable import JetstreamWebSocket

/// A header or frame that breaks one rule, for the side that has to refuse it.
struct BadBytes: Sendable, CustomTestStringConvertible {
  var name: String
  var role: WebSocketRole
  var bytes: [UInt8]
  var violation: WebSocketViolation
  var code: WebSocketCloseCode
  var testDescription: String { name }

  init(
    _ name: String, _ role: WebSocketRole, _ bytes: [UInt8], _ violation: WebSocketViolation,
    _ code: WebSocketCloseCode
  ) {
    (self.name, self.role, self.bytes, self.violation) = (name, role, bytes, violation)
    self.code = code
  }

  /// In each, the last byte is the first that shows the rule broken.
  static let all: [BadBytes] = [
    .init("reserved bit 1", .server, [0xC1], .reservedBit, 1002),
    .init("reserved bit 2", .server, [0xA1], .reservedBit, 1002),
    .init("reserved bit 3", .client, [0x91], .reservedBit, 1002),
    .init("opcode 3", .server, [0x83], .unknownOpcode(3), 1002),
    .init("opcode 7", .client, [0x87], .unknownOpcode(7), 1002),
    .init("opcode 11", .client, [0x8B], .unknownOpcode(11), 1002),
    .init("opcode 15", .client, [0x8F], .unknownOpcode(15), 1002),
    .init("unmasked from a client", .server, [0x81, 0x05], .unmaskedFrame, 1002),
    .init("masked from a server", .client, [0x81, 0x85], .maskedFrame, 1002),
    .init("long ping", .client, [0x89, 126], .controlFrameTooLong, 1002),
    .init("long close", .server, [0x88, 0xFF], .controlFrameTooLong, 1002),
    .init("ping in fragments", .client, [0x09], .fragmentedControlFrame, 1002),
    .init("close in fragments", .client, [0x08], .fragmentedControlFrame, 1002),
    .init("125 in two bytes", .client, [0x82, 126, 0, 125], .nonMinimalLength, 1002),
    .init(
      "65535 in eight bytes", .client, [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF],
      .nonMinimalLength, 1002),
    .init("high bit of a length", .client, [0x82, 127, 0x80], .lengthHighBit, 1002),
    .init("2^62 bytes", .client, [0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0], .frameTooLarge, 1009),
    .init("2^62 masked", .server, [0x82, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0], .frameTooLarge, 1009),
    .init("continuation of nothing", .client, [0x80], .unexpectedContinuation, 1002),
    .init("message in a message", .client, [0x01, 0x00, 0x82], .unfinishedMessage, 1002),
    .init("half a close code", .client, [0x88, 0x01, 0x03], .truncatedCloseCode, 1002),
    .init("close with 1005", .client, [0x88, 2, 0x03, 0xED], .invalidCloseCode(1005), 1002),
    .init("close with 999", .client, [0x88, 2, 0x03, 0xE7], .invalidCloseCode(999), 1002),
    .init("reason not UTF-8", .client, [0x88, 3, 0x03, 0xE8, 0xFF], .invalidUTF8, 1007),
    .init("text not UTF-8", .client, [0x81, 100, 0x61, 0xC0], .invalidUTF8, 1007),
    .init("surrogate", .client, [0x81, 100, 0xED, 0xA0], .invalidUTF8, 1007),
    .init(
      "bad UTF-8 across fragments", .client, [0x01, 1, 0xE0, 0x80, 50, 0x9F], .invalidUTF8, 1007),
    .init("text that ends in a scalar", .client, [0x81, 2, 0xE6, 0xB0], .invalidUTF8, 1007),
    .init("empty end in a scalar", .client, [0x01, 1, 0xE6, 0x80, 0], .invalidUTF8, 1007),
  ]
}

@Suite struct ViolationTests {
  @Test(arguments: BadBytes.all)
  func isRefusedAtItsFirstWrongByte(bad: BadBytes) {
    let before = decode(Array(bad.bytes.dropLast()), as: bad.role, pieces: { 1 })
    #expect(before.violation == nil && before.events.isEmpty)
    for size in [1, Int.max] {
      let result = decode(bad.bytes + [0, 0, 0, 0], as: bad.role, pieces: { size })
      #expect(result.violation == bad.violation)
      #expect(result.events.isEmpty)
    }
    #expect(bad.violation.closeCode == bad.code)
  }

  @Test func messagesBeforeTheViolationStillCome() {
    let result = decode([0x81, 1, 0x61, 0x83], as: .client)
    #expect(result.events == [.message(.text("a"))])
    #expect(result.violation == .unknownOpcode(3))
  }

  @Test func limitsHoldForFramesAndForMessagesOverTheirFragments() {
    let limits = WebSocketLimits(maximumFrameBytes: 4, maximumMessageBytes: 6)
    #expect(decode([0x82, 5], as: .client, limits: limits).violation == .frameTooLarge)
    let exact: [UInt8] = [0x02, 4, 1, 2, 3, 4, 0x80, 2, 5, 6]
    #expect(
      decode(exact, as: .client, limits: limits).events == [.message(.binary([1, 2, 3, 4, 5, 6]))])
    let over: [UInt8] = [0x02, 4, 1, 2, 3, 4, 0x80, 3]
    #expect(decode(over, as: .client, limits: limits).violation == .messageTooLarge)
  }

  @Test func aFrameOfAnyLengthMayBegin() {
    let limits = WebSocketLimits(maximumFrameBytes: .max, maximumMessageBytes: .max)
    let announced: [UInt8] = [0x82, 127, 0x7F] + Array(repeating: 0xFF, count: 7)
    let result = decode(announced + [1, 2, 3, 4], as: .client, limits: limits)
    #expect(result.violation == nil && result.events.isEmpty)
  }

  @Test func aFailedDecoderStaysFailed() {
    var decoder = FrameDecoder(role: .client)
    for _ in 0..<2 {
      #expect(throws: WebSocketViolation.reservedBit) {
        try decoder.decode([0xC1]) { _ in }
      }
    }
  }

  @Test func randomBytesNeverTrap() {
    for _ in 0..<400 {
      var generator = SeededGenerator()
      let wire = generator.bytes(200)
      let role: WebSocketRole = Bool.random(using: &generator) ? .client : .server
      let whole = decode(wire, as: role)
      let bytewise = decode(wire, as: role, pieces: { 1 })
      #expect(whole.events == bytewise.events, "seed \(generator.seed)")
      #expect(whole.violation == bytewise.violation, "seed \(generator.seed)")
    }
  }
}
