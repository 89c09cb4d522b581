/// One whole WebSocket message: its bytes, and whether they are text.
///
/// The bytes are kept as they came so that a parser which reads UTF-8 need not build a `String`.
public struct WebSocketMessage: Sendable, Hashable {
  /// What the bytes of a message are.
  public enum Kind: Sendable, Hashable {
    /// UTF-8 text. Received text has been checked and is well formed.
    case text
    /// Any bytes.
    case binary
  }

  /// Whether the message is text or binary.
  public var kind: Kind

  /// The payload, unmasked and put together from its fragments.
  public var bytes: [UInt8]

  /// True for the answer to a ``WebSocketConnection/probe()``, which stands in the order of the messages.
  package private(set) var isPong = false

  /// The answer to a probe.
  static var pong: WebSocketMessage {
    var result = WebSocketMessage(kind: .binary, bytes: [])
    result.isPong = true
    return result
  }

  /// Makes a message of bytes that are already there; nothing is copied.
  ///
  /// Bytes of kind `.text` must be well-formed UTF-8. This is not checked here, so as not to read
  /// large messages twice; a peer answers ill-formed text by closing with 1007.
  public init(kind: Kind, bytes: [UInt8]) {
    self.kind = kind
    self.bytes = bytes
  }

  /// A text message holding the UTF-8 of `text`. Copies the text once.
  public static func text(_ text: String) -> WebSocketMessage {
    WebSocketMessage(kind: .text, bytes: Array(text.utf8))
  }

  /// A binary message of `bytes`, which are not copied.
  public static func binary(_ bytes: [UInt8]) -> WebSocketMessage {
    WebSocketMessage(kind: .binary, bytes: bytes)
  }

  /// The message as a string, or nil when it is binary. Decodes the bytes anew at each call.
  public var text: String? {
    kind == .text ? String(decoding: bytes, as: UTF8.self) : nil
  }
}
