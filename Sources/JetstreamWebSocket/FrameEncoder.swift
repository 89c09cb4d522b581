/// Turns messages and control frames into wire bytes.
///
/// A server's frames share the payload's storage; a client's hold a masked copy, each under a key
/// of its own.
struct FrameEncoder: Sendable {
  let role: WebSocketRole
  private var randomness: any RandomNumberGenerator & Sendable

  /// Makes an encoder. `randomness` yields the mask keys of a client and is not used by a server.
  init(
    role: WebSocketRole,
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.role = role
    self.randomness = randomness
  }

  /// Returns a whole message in one frame.
  mutating func message(_ message: WebSocketMessage) -> EncodedFrame {
    frame(message.kind == .text ? .text : .binary, payload: message.bytes)
  }

  /// Returns a ping or pong.
  mutating func control(_ opcode: Opcode, payload: [UInt8]) -> EncodedFrame {
    precondition(
      opcode.isControl && payload.count <= 125,
      "A control frame carries at most 125 bytes.")
    return frame(opcode, payload: payload)
  }

  /// Returns a close frame, which is empty when `status` is nil or holds ``WebSocketCloseCode/noStatus``. A reason that
  /// is too long is cut.
  mutating func close(_ status: WebSocketCloseStatus?) -> EncodedFrame {
    guard let status, status.code != .noStatus else { return frame(.close, payload: []) }
    let code = status.code.rawValue
    let reason = WebSocketCloseStatus.fitting(status.reason)
    return frame(.close, payload: [UInt8(code >> 8), UInt8(code & 0xFF)] + reason.utf8)
  }

  /// Returns a frame of any kind. With `fin` false, and then with opcode `.continuation`, it writes fragments, which
  /// the other functions never make.
  mutating func frame(_ opcode: Opcode, payload: [UInt8], fin: Bool = true) -> EncodedFrame {
    var head: [UInt8] = []
    head.reserveCapacity(14)
    head.append((fin ? 0x80 : 0) | opcode.rawValue)
    let maskBit: UInt8 = role == .client ? 0x80 : 0
    switch payload.count {
    case ...125:
      head.append(maskBit | UInt8(payload.count))
    case ...0xFFFF:
      head.append(maskBit | 126)
      head.append(UInt8(payload.count >> 8))
      head.append(UInt8(payload.count & 0xFF))
    default:
      head.append(maskBit | 127)
      for shift in stride(from: 56, through: 0, by: -8) {
        head.append(UInt8(truncatingIfNeeded: UInt64(payload.count) >> UInt64(shift)))
      }
    }
    guard role == .client else { return EncodedFrame(head: head, payload: payload) }

    let key = MaskKey(bits: UInt32(truncatingIfNeeded: randomness.next()))
    head.append(contentsOf: key.bytes)
    var masked = payload
    masked.withUnsafeMutableBytes { key.apply(to: $0, offset: 0) }
    return EncodedFrame(head: head, payload: masked)
  }
}
