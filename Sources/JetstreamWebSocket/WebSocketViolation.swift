/// A violation of RFC 6455, or of this side's limits, by the peer's bytes.
public enum WebSocketViolation: Error, Sendable, Hashable {
  /// A reserved bit was set although no extension is in use.
  case reservedBit
  /// The opcode is one that the standard does not define.
  case unknownOpcode(UInt8)
  /// A client's frame came without a mask.
  case unmaskedFrame
  /// A server's frame came with a mask.
  case maskedFrame
  /// A control frame announced more than 125 bytes.
  case controlFrameTooLong
  /// A control frame came in fragments.
  case fragmentedControlFrame
  /// A length was written in more bytes than it needs.
  case nonMinimalLength
  /// A 64-bit length had its highest bit set.
  case lengthHighBit
  /// A continuation frame came while no message was unfinished.
  case unexpectedContinuation
  /// A new message began before the fragments of the last one ended.
  case unfinishedMessage
  /// A text message or a close reason was not UTF-8.
  case invalidUTF8
  /// A close frame held a single byte, which is half a code.
  case truncatedCloseCode
  /// A close frame held a code that must not be sent.
  case invalidCloseCode(UInt16)
  /// One frame announced more bytes than this side accepts.
  case frameTooLarge
  /// One message grew beyond what this side accepts.
  case messageTooLarge

  /// The code with which the connection is closed in answer: 1002, 1007 or 1009.
  public var closeCode: WebSocketCloseCode {
    switch self {
    case .invalidUTF8: .invalidPayload
    case .frameTooLarge, .messageTooLarge: .messageTooBig
    default: .protocolError
    }
  }
}
