import Testing

@testable import JetstreamWebSocket

@Suite struct URLTests {
  @Test(arguments: [
    ("ws://example.com", "example.com", 80, "/", "example.com", false),
    ("WS://example.com:80/x", "example.com", 80, "/x", "example.com", false),
    ("ws://example.com:8080?a=b", "example.com", 8080, "/?a=b", "example.com:8080", false),
    ("ws://127.0.0.1:1/a/b?c=/d", "127.0.0.1", 1, "/a/b?c=/d", "127.0.0.1:1", false),
    ("ws://[::1]/", "::1", 80, "/", "[::1]", false),
    ("ws://[::1]:9000/%20", "::1", 9000, "/%20", "[::1]:9000", false),
    ("ws://[fe80::1%25eth0]:8080/", "fe80::1%eth0", 8080, "/", "[fe80::1]:8080", false),
    ("ws://[fe80::1%25en%2E1]", "fe80::1%en.1", 80, "/", "[fe80::1]", false),
    ("ws://[fe80::1%eth0]", "fe80::1%eth0", 80, "/", "[fe80::1]", false),
    ("ws://[fe80::1%25]", "fe80::1%25", 80, "/", "[fe80::1]", false),
    ("ws://h:/", "h", 80, "/", "h", false),
    ("wss://h", "h", 443, "/", "h", true),
    ("wss://h:80", "h", 80, "/", "h:80", true),
  ])
  func parts(
    text: String, host: String, port: UInt16, target: String, header: String, secure: Bool
  ) throws {
    let url = try WebSocketURL(text)
    #expect(url.host == host && url.port == port && url.target == target)
    #expect(url.hostHeader == header && url.isSecure == secure)
  }

  @Test(arguments: [
    "", "example.com", "http://h", "ws://", "ws:///path", "ws://h:0", "ws://h:65536", "ws://h:8a",
    "ws://h:+1", "ws://u:p@h", "ws://h#f", "ws://h/ a", "ws://h/\r\nX: y", "ws://[::1", "ws://[]",
    "ws://[::1]x", "ws://[h]", "ws://[%25eth0]", "ws://[::1%]", "ws://[::1%25%]",
    "ws://[::1%25%0A]", "ws://[::1%25a%25]", "ws://häuser", "ws://a:b:c",
  ])
  func unusable(text: String) {
    #expect {
      _ = try WebSocketURL(text)
    } throws: { error in
      if case .invalidURL = error as? WebSocketError { true } else { false }
    }
  }
}
