/// The side of a connection. Clients mask what they send; servers do not.
enum WebSocketRole: Sendable {
  case client
  case server
}

/// The kinds of frame that RFC 6455 defines.
enum Opcode: UInt8, Sendable {
  case continuation = 0x0
  case text = 0x1
  case binary = 0x2
  case close = 0x8
  case ping = 0x9
  case pong = 0xA

  /// Close, ping and pong: small, whole, and allowed between a message's fragments.
  var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The largest frame and message that a peer may send.
public struct WebSocketLimits: Sendable, Hashable {
  /// The largest payload of one frame, in bytes.
  public var maximumFrameBytes: Int

  /// The largest message, in bytes, over all its fragments.
  public var maximumMessageBytes: Int

  /// Makes limits; both are 16 MiB by default.
  ///
  /// - Precondition: Neither limit is negative.
  public init(maximumFrameBytes: Int = 16 << 20, maximumMessageBytes: Int = 16 << 20) {
    precondition(
      maximumFrameBytes >= 0 && maximumMessageBytes >= 0,
      "The limits of a WebSocket connection must not be negative.")
    self.maximumFrameBytes = maximumFrameBytes
    self.maximumMessageBytes = maximumMessageBytes
  }
}

/// A frame ready to be written: its header, and a payload that is shared rather than copied.
struct EncodedFrame: Sendable, Equatable {
  var head: [UInt8]
  var payload: [UInt8]

  /// The number of bytes that the frame takes on the wire.
  var count: Int { head.count + payload.count }

  /// Header and payload in one array.
  var bytes: [UInt8] { head + payload }

  /// True for the close frame of a WebSocket.
  var isClose: Bool { head.first == 0x80 | Opcode.close.rawValue }
}
