import Foundation

/// The two base64 values that tie a handshake's answer to its question.
enum HandshakeKey {
  /// The fixed text that RFC 6455 appends to a key before hashing it.
  private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  /// Makes a new `Sec-WebSocket-Key`: 16 random bytes in base64.
  static func make() -> String {
    let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    return Data(bytes).base64EncodedString()
  }

  /// Returns whether `key` is the base64 form of exactly 16 bytes, as a server must demand.
  static func isValid(_ key: String) -> Bool {
    key.utf8.count == 24 && Data(base64Encoded: key)?.count == 16
  }

  /// Returns the `Sec-WebSocket-Accept` that answers `key`.
  static func accept(for key: String) -> String {
    Data(SHA1.digest(Array((key + suffix).utf8))).base64EncodedString()
  }
}
