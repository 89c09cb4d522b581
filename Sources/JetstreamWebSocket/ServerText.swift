/// A text that a server sends to several clients. The frames of a server are not masked, so that they are the same on all
/// connections: this one is made once.
package struct ServerText: Sendable {
  /// A text of more bytes than this is not copied into the frame.
  private static let copiedBytes = 4 << 10

  /// The UTF-8 of the text.
  package let bytes: [UInt8]
  let frame: EncodedFrame

  /// Makes the frame of a text, which must be well-formed UTF-8.
  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var encoder = FrameEncoder(role: .server)
    var frame = encoder.message(WebSocketMessage(kind: .text, bytes: bytes))
    // The kernel takes less time for one pointer than for two.
    if bytes.count <= Self.copiedBytes { frame = EncodedFrame(head: frame.bytes, payload: []) }
    self.frame = frame
  }
}
