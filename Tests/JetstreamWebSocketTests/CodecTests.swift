import Testing

@testable import JetstreamWebSocket

@Suite struct CodecTests {
  /// Random traffic of one side: whole and fragmented messages with control frames in between,
  /// and a close frame last.
  private func traffic(
    from role: WebSocketRole, using generator: inout SeededGenerator
  ) -> (wire: [UInt8], events: [FrameDecoder.Event]) {
    var encoder = FrameEncoder(role: role, randomness: generator)
    var wire: [UInt8] = []
    var events: [FrameDecoder.Event] = []
    let sizes = [0, 1, 7, 8, 124, 125, 126, 127, 300, 65_535, 65_536, 66_000]
    for _ in 0..<8 {
      let size = sizes.randomElement(using: &generator)!
      let isText = Bool.random(using: &generator)
      let unit = Array("aß水🐟".utf8)
      let bytes =
        isText
        ? Array(repeating: unit, count: size / unit.count).flatMap { $0 }
        : generator.bytes(size)
      let message = WebSocketMessage(kind: isText ? .text : .binary, bytes: bytes)
      var rest = bytes[...]
      var opcode: Opcode = isText ? .text : .binary
      for _ in 0..<Int.random(in: 0...3, using: &generator) {
        let piece = rest.prefix(Int.random(in: 0...max(1, size), using: &generator))
        rest = rest.dropFirst(piece.count)
        wire += encoder.frame(opcode, payload: Array(piece), fin: false).bytes
        opcode = .continuation
        let ping = generator.bytes(Int.random(in: 0...125, using: &generator))
        wire += encoder.control(.ping, payload: ping).bytes
        events.append(.ping(ping))
      }
      wire += encoder.frame(opcode, payload: Array(rest)).bytes
      events.append(.message(message))
      wire += encoder.control(.pong, payload: []).bytes
      events.append(.pong([]))
    }
    let status = WebSocketCloseStatus(code: 4097, reason: #"{"why":"水"}"#, byPeer: true)
    wire += encoder.close(status).bytes
    events.append(.close(status))
    return (wire + [0xFF, 0xFF], events)
  }

  @Test(arguments: [WebSocketRole.client, .server])
  func whatIsEncodedIsDecodedInAnySplit(sender: WebSocketRole) {
    let receiver: WebSocketRole = sender == .client ? .server : .client
    for _ in 0..<12 {
      var generator = SeededGenerator()
      let seed = generator.seed
      let (wire, events) = traffic(from: sender, using: &generator)
      let whole = decode(wire, as: receiver)
      #expect(whole.events == events && whole.violation == nil, "seed \(seed)")
      let split = decode(wire, as: receiver) { Int.random(in: 1...4000, using: &generator) }
      #expect(split.events == events && split.violation == nil, "seed \(seed)")
    }
  }

  @Test func oneByteAtATime() {
    var generator = SeededGenerator()
    let seed = generator.seed
    let (wire, events) = traffic(from: .client, using: &generator)
    let result = decode(wire, as: .server, pieces: { 1 })
    #expect(result.events == events && result.violation == nil, "seed \(seed)")
  }

  /// The examples of RFC 6455, section 5.7.
  @Test func examplesOfTheStandard() {
    let hello = FrameDecoder.Event.message(.text("Hello"))
    let plain: [UInt8] = [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]
    #expect(decode(plain, as: .client).events == [hello])
    let masked: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
    #expect(decode(masked, as: .server).events == [hello])
    let fragments: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]
    #expect(decode(fragments, as: .client).events == [hello])
    let ping: [UInt8] = [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]
    #expect(decode(ping, as: .client).events == [.ping(Array("Hello".utf8))])
    var server = FrameEncoder(role: .server)
    #expect(server.message(.text("Hello")).bytes == plain)
    #expect(server.message(.binary(Array(repeating: 0, count: 256))).head == [0x82, 0x7E, 1, 0])
    #expect(
      server.message(.binary(Array(repeating: 0, count: 65_536))).head
        == [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0])
  }

  @Test func maskingIsTheSameInAnyPieces() {
    var generator = SeededGenerator()
    for _ in 0..<200 {
      let key = MaskKey(bits: UInt32(truncatingIfNeeded: generator.next()))
      let plain = generator.bytes(Int.random(in: 0...70, using: &generator))
      let expected = plain.enumerated().map { $1 ^ key.bytes[$0 % 4] }
      var masked = plain
      let cut = Int.random(in: 0...plain.count, using: &generator)
      masked.withUnsafeMutableBytes { all in
        key.apply(to: .init(rebasing: all[..<cut]), offset: 0)
        key.apply(to: .init(rebasing: all[cut...]), offset: cut)
      }
      #expect(masked == expected, "seed \(generator.seed)")
    }
  }

  @Test func everyCloseCodeIsAllowedOrRefused() {
    var encoder = FrameEncoder(role: .server)
    for code in UInt16.min ... .max {
      let wire = encoder.frame(.close, payload: [UInt8(code >> 8), UInt8(code & 0xFF)]).bytes
      let result = decode(wire, as: .client)
      let allowed =
        (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
      #expect((result.violation == nil) == allowed, "code \(code)")
      if !allowed { #expect(result.violation == .invalidCloseCode(code)) }
    }
  }

  @Test func longReasonsAreCutBetweenScalars() {
    var encoder = FrameEncoder(role: .server)
    let reason = String(repeating: "水", count: 60)
    let wire = encoder.close(WebSocketCloseStatus(code: 4096, reason: reason)).bytes
    let cut = WebSocketCloseStatus(
      code: 4096, reason: String(repeating: "水", count: 41), byPeer: true)
    #expect(decode(wire, as: .client).events == [.close(cut)])
  }
}
