/// Which side of a connection this is. Clients mask what they send; servers do not.
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

/// How much a peer may send at once.
public struct WebSocketLimits: Sendable, Hashable {
  /// The largest payload of one frame, in bytes.
  public var maximumFrameBytes: Int

  /// The largest message, in bytes, over all its fragments.
  public var maximumMessageBytes: Int

  /// Makes limits. Both are 16 MiB unless told otherwise.
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

  /// How many bytes the frame takes on the wire.
  var count: Int { head.count + payload.count }

  /// Header and payload in one array.
  var bytes: [UInt8] { head + payload }
}
