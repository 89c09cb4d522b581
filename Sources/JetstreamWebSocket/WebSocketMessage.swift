/// One whole WebSocket message: its bytes, and whether they are text.
///
/// The bytes are kept as received, so that a parser that reads UTF-8 need not build a `String`.
public struct WebSocketMessage: Sendable, Hashable {
  /// The kind of a message's bytes.
  public enum Kind: Sendable, Hashable {
    /// UTF-8 text. Received text was checked and is well formed.
    case text
    /// Any bytes.
    case binary
  }

  /// The kind of the message: text or binary.
  public var kind: Kind

  /// The payload, unmasked and put together from its fragments.
  public var bytes: [UInt8]

  /// True for the answer to a ``WebSocketConnection/probe()``, which is delivered in order with the messages.
  package private(set) var isPong = false

  /// Makes the answer to a probe.
  static var pong: WebSocketMessage {
    var result = WebSocketMessage(kind: .binary, bytes: [])
    result.isPong = true
    return result
  }

  /// Makes a message with the given bytes, which are not copied.
  ///
  /// Bytes of kind `.text` must be well-formed UTF-8. This is not checked here, so as not to read
  /// large messages twice; a peer answers ill-formed text by closing with 1007.
  public init(kind: Kind, bytes: [UInt8]) {
    self.kind = kind
    self.bytes = bytes
  }

  /// Returns a text message with the UTF-8 of `text`. Copies the text once.
  public static func text(_ text: String) -> WebSocketMessage {
    WebSocketMessage(kind: .text, bytes: Array(text.utf8))
  }

  /// Returns a binary message with `bytes`, which are not copied.
  public static func binary(_ bytes: [UInt8]) -> WebSocketMessage {
    WebSocketMessage(kind: .binary, bytes: bytes)
  }

  /// The message as a string, or nil when it is binary. Decodes the bytes anew at each call.
  public var text: String? {
    kind == .text ? String(decoding: bytes, as: UTF8.self) : nil
  }
}
