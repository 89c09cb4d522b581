import Foundation
import Testing

@testable import JetstreamWebSocket

@Suite struct HandshakeTests {
  private static let sample = """
    GET /chat?room=1 HTTP/1.1\r
    Host: server.example.com\r
    Upgrade: websocket\r
    Connection: keep-alive, Upgrade\r
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
    Origin: http://example.com\r
    Sec-WebSocket-Protocol: chat, superchat\r
    Sec-WebSocket-Extensions: permessage-deflate\r
    Sec-WebSocket-Version: 13\r
    \r

    """

  private func parse(_ text: String, by size: Int = .max) throws -> (HTTPRequest?, [UInt8]) {
    var parser = HTTPHeadParser()
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      var piece = rest.prefix(size)
      rest = rest.dropFirst(piece.count)
      if let head = try parser.parse(&piece) {
        let request = try HTTPRequest.parse(startLine: head.startLine, headers: head.headers)
        return (request, Array(piece + rest))
      }
    }
    return (nil, [])
  }

  private func judge(_ text: String) throws -> ServerHandshake.Verdict {
    ServerHandshake.judge(try #require(try parse(text).0))
  }

  private func refusal(of text: String) throws -> HTTPResponse? {
    if case .refuse(let response) = try judge(text) { response } else { nil }
  }

  @Test(arguments: [1, 2, 7, .max])
  func theStandardsRequestIsAccepted(size: Int) throws {
    let (parsed, rest) = try parse(Self.sample + "\u{1}xyz", by: size)
    let request = try #require(parsed)
    #expect(rest == [1] + Array("xyz".utf8))
    #expect(request.path == "/chat" && request.query == "room=1")
    #expect(request.headers["origin"] == "http://example.com")
    guard case .upgrade(let accept) = ServerHandshake.judge(request) else {
      Issue.record("The request was not taken for a handshake.")
      return
    }
    #expect(accept == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    #expect(ServerHandshake.subprotocol(for: request, supported: []) == nil)
    #expect(ServerHandshake.subprotocol(for: request, supported: ["superchat"]) == "superchat")
    let response = String(
      decoding: ServerHandshake.response(accept: accept, subprotocol: nil), as: UTF8.self)
    #expect(
      response == """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
        \r

        """)
  }

  @Test func wrongHandshakesAreRefused() throws {
    func replaced(_ old: String, _ new: String) -> String {
      Self.sample.replacing(old, with: new)
    }
    let version = try #require(try refusal(of: replaced("Version: 13", "Version: 8")))
    #expect(version.status == 426 && version.headers["Sec-WebSocket-Version"] == "13")
    #expect(try refusal(of: replaced("dGhlIHNhbXBsZSBub25jZQ==", "short"))?.status == 400)
    #expect(try refusal(of: replaced("keep-alive, Upgrade", "keep-alive"))?.status == 400)
    #expect(try refusal(of: replaced("HTTP/1.1", "HTTP/1.0"))?.status == 400)
    #expect(try refusal(of: replaced("GET", "POST"))?.status == 405)
    let twice = replaced("Origin: ", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: ")
    #expect(try refusal(of: twice)?.status == 400)
    guard case .plain = try judge(replaced("Upgrade: websocket", "Upgrade: h2c")) else {
      Issue.record("A request for something else was taken for a WebSocket handshake.")
      return
    }
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", HTTPHeadFault.malformed),
    ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\nHost\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\n\r\n", .malformed),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", .malformed),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET /\r\nHost: a\r\n\r\n", .malformed),
    ("GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET http:/x HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET http://:80/x HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET / HTTQ/1.1\r\nHost: a\r\n\r\n", .malformed),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", .unsupportedVersion),
  ])
  func badHeadsAreRefused(text: String, fault: HTTPHeadFault) {
    #expect(throws: fault) { _ = try parse(text) }
    #expect(throws: fault) { _ = try parse(text, by: 1) }
  }

  @Test(
    "A whole address is accepted as the target, and its host counts",
    arguments: [
      ("http://b:81/x/y?z=%20", "b:81", "/x/y?z=%20"), ("HTTP://b", "b", "/"),
      ("https://[::1]:81?z", "[::1]:81", "/?z"), ("http://b//c", "b", "//c"),
    ])
  func absoluteTargets(text: String, host: String, target: String) throws {
    let request = try #require(
      try parse("GET \(text) HTTP/1.1\r\nHOST: a\r\nX: y\r\n\r\n").0)
    #expect(request.target == target && request.headers.values(for: "Host") == [host])
    #expect(request.headers["X"] == "y")
    let old = try #require(try parse("GET \(text) HTTP/1.0\r\n\r\n").0)
    #expect(old.target == target && old.headers.values(for: "Host") == [host])
    #expect(throws: HTTPHeadFault.malformed) { _ = try parse("GET \(text) HTTP/1.1\r\n\r\n") }
  }

  @Test func headsAreBounded() throws {
    #expect(throws: HTTPHeadFault.tooLarge) {
      _ = try parse("GET /" + String(repeating: "a", count: 16 << 10))
    }
    let fields = String(repeating: "A: b\r\n", count: 99)
    #expect(throws: HTTPHeadFault.tooManyFields) {
      _ = try parse("GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n" + fields + "\r\n")
    }
    #expect(try parse("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n").0 != nil)
  }

  private func validate(
    _ lines: [String], subprotocols: [String] = []
  ) throws(WebSocketError) -> String? {
    let handshake = try ClientHandshake(
      url: try WebSocketURL("ws://a"), headers: [], subprotocols: subprotocols,
      key: "dGhlIHNhbXBsZSBub25jZQ==")
    var parser = HTTPHeadParser()
    var bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)[...]
    let head = try! parser.parse(&bytes)!
    return try handshake.validate(startLine: head.startLine, headers: head.headers)
  }

  @Test func theClientChecksTheAnswer() throws {
    let good = [
      "HTTP/1.1 101 Switching Protocols", "upgrade: WebSocket", "connection: upgrade",
      "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    ]
    #expect(try validate(good) == nil)
    #expect(try validate(good + ["Sec-WebSocket-Protocol: b"], subprotocols: ["a", "b"]) == "b")
    func expect(_ fault: WebSocketHandshakeFault, _ lines: [String]) {
      #expect(throws: WebSocketError.handshakeInvalid(fault)) { _ = try validate(lines) }
    }
    expect(.missingUpgrade, [good[0], good[2], good[3]])
    expect(.missingConnection, [good[0], good[1], good[3]])
    expect(.wrongAccept, Array(good[..<3]))
    expect(.wrongAccept, good[..<3] + ["Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo"])
    expect(.unexpectedExtension, good + ["Sec-WebSocket-Extensions: permessage-deflate"])
    expect(.unexpectedSubprotocol, good + ["Sec-WebSocket-Protocol: c"])
    expect(.malformedResponse, ["HTTP/1.0 101 Yes"] + good[1...])
    expect(.malformedResponse, ["SSH-2.0"] + good[1...])
    #expect(throws: WebSocketError.handshakeRefused(status: 403)) {
      _ = try validate(["HTTP/1.1 403 No"])
    }
  }

  @Test(
    "A refusal says how long to wait, in seconds or until a date",
    arguments: [
      ("0", Duration.seconds(0)), ("120", .seconds(120)),
      ("Fri, 13 Feb 2009 23:31:40 GMT", .seconds(10)),
      // That is over.
      ("Fri, 13 Feb 2009 23:00:00 GMT", .seconds(0)), ("-5", .seconds(0)),
      ("soon", nil), ("", nil), ("1e3", nil), ("9999999999", nil),
    ] as [(String, Duration?)])
  func retryAfter(text: String, pause: Duration?) {
    let now = Date(timeIntervalSince1970: 1_234_567_890)
    let headers = HTTPHeaders([("Retry-After", text)])
    #expect(RetryAfter.duration(in: headers, now: now) == pause)
    #expect(RetryAfter.duration(in: HTTPHeaders([]), now: now) == nil)
  }

  @Test func theRequestIsWhatAServerAccepts() throws {
    let url = try WebSocketURL("ws://[::1]:8080/a/b?c=d")
    let handshake = try ClientHandshake(
      url: url, headers: [("Cookie", "x=y")], subprotocols: ["p"],
      key: "dGhlIHNhbXBsZSBub25jZQ==")
    let request = try #require(try parse(String(decoding: handshake.request, as: UTF8.self)).0)
    #expect(request.target == "/a/b?c=d" && request.headers["Host"] == "[::1]:8080")
    #expect(request.headers["Cookie"] == "x=y")
    guard case .upgrade = ServerHandshake.judge(request) else {
      Issue.record("The client's own request was not accepted.")
      return
    }
  }

  @Test(arguments: [
    ("X", "a\r\nEvil: 1"), ("X", "a\nb"), ("X", "\u{0}"), ("X\r\nEvil", "1"), ("", "1"),
    ("X Y", "1"), ("host", "other"), ("Sec-WebSocket-Key", "1"), ("Upgrade", "h2c"),
  ])
  func headersCannotBreakTheRequest(name: String, value: String) throws {
    let url = try WebSocketURL("ws://a")
    #expect(throws: WebSocketError.invalidHeader(name: name)) {
      _ = try ClientHandshake(
        url: url, headers: [(name, value)], subprotocols: [], key: "")
    }
  }

  @Test func responsesAreEncodedWithTheirLength() {
    func text(_ response: HTTPResponse, keepAlive: Bool, body: Bool) -> String {
      let (head, bytes) = response.encoded(keepAlive: keepAlive, includesBody: body)
      return String(decoding: head + bytes, as: UTF8.self)
    }
    let hello = HTTPResponse(status: 200, headers: ["content-length": "99"], body: [0x68, 0x69])
    #expect(
      text(hello, keepAlive: true, body: true)
        == "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi")
    #expect(
      text(hello, keepAlive: false, body: false)
        == "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
    #expect(
      text(HTTPResponse(status: 204, body: [1]), keepAlive: false, body: true)
        == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    let split = HTTPResponse(status: 200, headers: ["X": "a\r\nY: b"])
    #expect(text(split, keepAlive: false, body: true).hasPrefix("HTTP/1.1 500 "))
  }
}
