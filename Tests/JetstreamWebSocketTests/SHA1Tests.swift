import Testing

@testable import JetstreamWebSocket

@Suite struct SHA1Tests {
  /// The vectors of RFC 3174, section 7.3, and the empty message.
  @Test(arguments: [
    ("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
    ),
    ("a", 1_000_000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    (
      "0123456701234567012345670123456701234567012345670123456701234567", 10,
      "dea356a2cddd90c7a7ecedc5ebb563934f460452"
    ),
  ])
  func vectors(text: String, times: Int, expected: String) {
    let message = Array(String(repeating: text, count: times).utf8)
    let hex = SHA1.digest(message).map { byte in
      String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    #expect(hex.joined() == expected)
  }

  @Test func acceptKeyOfTheStandard() {
    #expect(
      HandshakeKey.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  }

  @Test func keysAreSixteenBytes() {
    #expect(HandshakeKey.isValid(HandshakeKey.make()))
    #expect(!HandshakeKey.isValid(""))
    #expect(!HandshakeKey.isValid("dGhlIHNhbXBsZSBub25jZQ="))
    #expect(!HandshakeKey.isValid("dGhlIHNhbXBsZSBub25jZQ"))
    #expect(!HandshakeKey.isValid("dGhlIHNhbXBsZSBub25jZSEh"))
    #expect(!HandshakeKey.isValid("????????????????????????"))
  }
}
