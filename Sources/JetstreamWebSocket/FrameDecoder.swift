/// Turns wire bytes, in pieces of any size, into whole messages and control frames.
///
/// It does no I/O and never traps on what a peer sends. A rule is enforced at the first byte that
/// shows it broken, and no memory is set aside for bytes that have only been announced.
struct FrameDecoder: Sendable {
  /// A whole message or control frame.
  enum Event: Sendable, Equatable {
    case message(WebSocketMessage)
    case ping([UInt8])
    case pong([UInt8])
    /// The peer's close frame; nil when it held no code. Nothing follows it.
    case close(WebSocketCloseStatus?)
  }

  private enum Phase: Sendable {
    case opcode
    case length
    case extendedLength(missing: Int)
    case mask(missing: Int)
    case payload
    case closed
    case failed(WebSocketViolation)
  }

  /// The largest number of bytes reserved ahead for a payload that has only been announced.
  private static let reservation = 64 << 10

  private let role: WebSocketRole
  /// The limits for frames and messages that begin from now on.
  var limits: WebSocketLimits
  private var phase = Phase.opcode

  /// The frame under way.
  private var opcode = Opcode.continuation
  private var fin = true
  private var length: UInt64 = 0
  private var extendedSize = 0
  private var key = MaskKey(bits: 0)
  private var received = 0

  /// The message under way, over its fragments, and the control frame that may interrupt it.
  private var messageKind: WebSocketMessage.Kind?
  private var message: [UInt8] = []
  private var control: [UInt8] = []
  private var utf8 = UTF8Validator()

  /// The number of bytes of the message under way.
  var unfinishedBytes: Int { message.count }

  /// Makes a decoder for the side named by `role`, which decides whether frames must be masked.
  init(role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits()) {
    self.role = role
    self.limits = limits
  }

  /// Takes more bytes and hands each event to `emit` as it completes. Linear in the bytes.
  ///
  /// Bytes after a close frame are ignored. Throws at the first violation, after the events that
  /// came before it; every later call throws the same.
  mutating func decode(
    _ bytes: ArraySlice<UInt8>, emit: (Event) -> Void
  ) throws(WebSocketViolation) {
    do {
      var place = bytes.startIndex
      while place < bytes.endIndex {
        switch phase {
        case .payload:
          let end = place + min(bytes.endIndex - place, Int(length) - received)
          try takePayload(bytes[place..<end])
          place = end
        case .closed: return
        case .opcode where bytes.endIndex - place >= Self.longestHeader:
          try takeHeader(bytes, &place)
        default:
          try takeHeader(bytes[place])
          place += 1
        }
        if case .payload = phase, received == Int(length) {
          try finishFrame(emit: emit)
        }
      }
    } catch {
      phase = .failed(error)
      message = []
      throw error
    }
  }

  // MARK: Header

  /// The number of bytes of the longest header.
  private static let longestHeader = 14

  /// Takes the header of a frame, at `place`, of which all bytes have arrived. The rules are those of ``takeHeader(_:)``.
  private mutating func takeHeader(
    _ bytes: ArraySlice<UInt8>, _ place: inout Int
  ) throws(WebSocketViolation) {
    try takeOpcode(bytes[place])
    let marked = bytes[place + 1]
    place += 2
    if marked & 0x7F == 126, !opcode.isControl {
      try checkMask(marked)
      length = UInt64(bytes[place]) << 8 | UInt64(bytes[place + 1])
      place += 2
      guard length > 125 else { throw .nonMinimalLength }
      try finishLength()
    } else {
      try takeLength(marked)
      while case .extendedLength = phase {
        try takeHeader(bytes[place])
        place += 1
      }
    }
    guard role == .server else { return }
    let low = UInt32(bytes[place]) | UInt32(bytes[place + 1]) << 8
    key = MaskKey(bits: low | UInt32(bytes[place + 2]) << 16 | UInt32(bytes[place + 3]) << 24)
    place += 4
    beginPayload()
  }

  private mutating func takeHeader(_ byte: UInt8) throws(WebSocketViolation) {
    switch phase {
    case .opcode:
      try takeOpcode(byte)
    case .length:
      try takeLength(byte)
    case .extendedLength(let missing):
      if extendedSize == 8, missing == 8, byte & 0x80 != 0 { throw .lengthHighBit }
      length = length << 8 | UInt64(byte)
      if missing > 1 {
        phase = .extendedLength(missing: missing - 1)
      } else {
        guard length > (extendedSize == 2 ? 125 : 0xFFFF) else { throw .nonMinimalLength }
        try finishLength()
      }
    case .mask(let missing):
      key.append(byte)
      if missing > 1 { phase = .mask(missing: missing - 1) } else { beginPayload() }
    case .failed(let violation):
      throw violation
    case .payload, .closed:
      break
    }
  }

  private mutating func takeOpcode(_ byte: UInt8) throws(WebSocketViolation) {
    guard byte & 0x70 == 0 else { throw .reservedBit }
    guard let opcode = Opcode(rawValue: byte & 0x0F) else { throw .unknownOpcode(byte & 0x0F) }
    (fin, phase) = (byte & 0x80 != 0, .length)
    self.opcode = opcode
    switch opcode {
    case .continuation:
      guard messageKind != nil else { throw .unexpectedContinuation }
    case .text, .binary:
      guard messageKind == nil else { throw .unfinishedMessage }
      messageKind = opcode == .text ? .text : .binary
      utf8 = UTF8Validator()
    case .close, .ping, .pong:
      guard fin else { throw .fragmentedControlFrame }
    }
  }

  private mutating func takeLength(_ byte: UInt8) throws(WebSocketViolation) {
    try checkMask(byte)
    let short = byte & 0x7F
    if opcode.isControl, short > 125 { throw .controlFrameTooLong }
    length = 0
    switch short {
    case 126: extendedSize = 2
    case 127: extendedSize = 8
    default:
      length = UInt64(short)
      try finishLength()
      return
    }
    phase = .extendedLength(missing: extendedSize)
  }

  private func checkMask(_ byte: UInt8) throws(WebSocketViolation) {
    let isMasked = byte & 0x80 != 0
    if isMasked == (role == .server) { return }
    throw isMasked ? .maskedFrame : .unmaskedFrame
  }

  /// Compares the announced length with the limits before a single byte of the payload is taken.
  private mutating func finishLength() throws(WebSocketViolation) {
    if !opcode.isControl {
      guard length <= UInt64(limits.maximumFrameBytes) else { throw .frameTooLarge }
      guard length <= UInt64(max(0, limits.maximumMessageBytes - message.count)) else {
        throw .messageTooLarge
      }
    }
    if role == .server { phase = .mask(missing: 4) } else { beginPayload() }
  }

  private mutating func beginPayload() {
    received = 0
    phase = .payload
    if message.isEmpty, !opcode.isControl {
      message.reserveCapacity(min(Int(length), Self.reservation))
    }
  }

  // MARK: Payload

  private mutating func takePayload(_ piece: ArraySlice<UInt8>) throws(WebSocketViolation) {
    if opcode.isControl {
      Self.append(piece, to: &control, unmaskedWith: maskKey, offset: received)
    } else {
      let start = message.count
      Self.append(piece, to: &message, unmaskedWith: maskKey, offset: received)
      if messageKind == .text {
        let valid = message.withUnsafeBytes { utf8.accept(.init(rebasing: $0[start...])) }
        guard valid else { throw .invalidUTF8 }
      }
    }
    received += piece.count
  }

  private var maskKey: MaskKey? { role == .server ? key : nil }

  /// Appends a piece to a buffer and unmasks it. Static, because a method would hold a copy of the decoder, and with it
  /// of the buffer, so that every piece would cost a copy of everything before it.
  private static func append(
    _ piece: ArraySlice<UInt8>, to buffer: inout [UInt8], unmaskedWith key: MaskKey?, offset: Int
  ) {
    let start = buffer.count
    buffer.append(contentsOf: piece)
    guard let key else { return }
    buffer.withUnsafeMutableBytes {
      key.apply(to: .init(rebasing: $0[start...]), offset: offset)
    }
  }

  private mutating func finishFrame(emit: (Event) -> Void) throws(WebSocketViolation) {
    phase = .opcode
    switch opcode {
    case .ping:
      emit(.ping(takeControl()))
    case .pong:
      emit(.pong(takeControl()))
    case .close:
      let status = try Self.closeStatus(takeControl())
      phase = .closed
      message = []
      emit(.close(status))
    case .text, .binary, .continuation:
      guard fin, let kind = messageKind else { return }
      if kind == .text, !utf8.isComplete { throw .invalidUTF8 }
      let bytes = message
      message = []
      messageKind = nil
      emit(.message(WebSocketMessage(kind: kind, bytes: bytes)))
    }
  }

  private mutating func takeControl() -> [UInt8] {
    defer { control = [] }
    return control
  }

  /// Reads a close frame's payload: nothing, or two bytes of code and a reason in UTF-8.
  private static func closeStatus(
    _ payload: [UInt8]
  ) throws(WebSocketViolation) -> WebSocketCloseStatus? {
    guard !payload.isEmpty else { return nil }
    guard payload.count >= 2 else { throw .truncatedCloseCode }
    let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
    guard code.isAllowedOnWire else { throw .invalidCloseCode(code.rawValue) }
    guard let reason = String(validating: payload[2...], as: UTF8.self) else {
      throw .invalidUTF8
    }
    return WebSocketCloseStatus(code: code, reason: reason, byPeer: true)
  }
}
