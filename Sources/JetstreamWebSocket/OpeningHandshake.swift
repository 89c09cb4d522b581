import Foundation

/// The server's half of the opening handshake, without I/O.
enum ServerHandshake {
  /// The result of checking a request.
  enum Verdict: Sendable {
    /// A plain request, not a handshake.
    case plain
    /// A valid handshake; `accept` is the value that answers its key.
    case upgrade(accept: String)
    /// A handshake that must be refused.
    case refuse(HTTPResponse)
  }

  /// Checks a request. Offers of extensions are ignored; none are ever negotiated.
  static func judge(_ request: HTTPRequest) -> Verdict {
    let headers = request.headers
    guard headers.contains(token: "websocket", in: "Upgrade") else { return .plain }
    guard request.method == "GET" else { return .refuse(.methodNotAllowed) }
    guard request.minorVersion >= 1, headers.contains(token: "upgrade", in: "Connection") else {
      return .refuse(.plain(400))
    }
    guard headers.values(for: "Sec-WebSocket-Version") == ["13"] else {
      return .refuse(.plain(426, headers: ["Sec-WebSocket-Version": "13", "Upgrade": "websocket"]))
    }
    let keys = headers.values(for: "Sec-WebSocket-Key")
    guard keys.count == 1, HandshakeKey.isValid(keys[0]), !request.hasBody else {
      return .refuse(.plain(400))
    }
    return .upgrade(accept: HandshakeKey.accept(for: keys[0]))
  }

  /// Returns the first subprotocol of the client's list that is also in `supported`.
  static func subprotocol(for request: HTTPRequest, supported: [String]) -> String? {
    request.headers.tokens(in: "Sec-WebSocket-Protocol").first { supported.contains($0) }
  }

  /// Returns the bytes of the 101 response.
  static func response(accept: String, subprotocol: String?) -> [UInt8] {
    var headers: HTTPHeaders = [
      "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept,
    ]
    if let subprotocol { headers.append(name: "Sec-WebSocket-Protocol", value: subprotocol) }
    return HTTPResponse.head(status: 101, headers: headers)
  }
}

extension HTTPResponse {
  /// The response to all methods but GET and HEAD.
  static var methodNotAllowed: HTTPResponse { .plain(405, headers: ["Allow": "GET, HEAD"]) }
}

/// The client's half of the opening handshake, without I/O.
struct ClientHandshake: Sendable {
  /// The names of the header fields that the handshake sets itself.
  private static let reserved = [
    "Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
    "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
    "Content-Length", "Transfer-Encoding",
  ]

  private let key: String
  private let subprotocols: [String]

  /// The bytes of the request.
  let request: [UInt8]

  /// Makes the request. Throws `.invalidHeader` for a header that HTTP does not allow or that the handshake sets
  /// itself.
  init(
    url: WebSocketURL, headers: [(String, String)], subprotocols: [String], key: String
  ) throws(WebSocketError) {
    let custom = HTTPHeaders(headers)
    if let name = custom.firstInvalidName { throw .invalidHeader(name: name) }
    for field in custom.fields
    where Self.reserved.contains(where: { HTTPHeaders.equal($0, field.name) }) {
      throw .invalidHeader(name: field.name)
    }
    guard subprotocols.allSatisfy({ HTTPHeaders.isToken($0) }) else {
      throw .invalidHeader(name: "Sec-WebSocket-Protocol")
    }
    var fields = [
      ("Host", url.hostHeader), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
      ("Sec-WebSocket-Key", key), ("Sec-WebSocket-Version", "13"),
    ]
    if !subprotocols.isEmpty {
      fields.append(("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", ")))
    }
    var text = "GET \(url.target) HTTP/1.1\r\n"
    for (name, value) in fields + headers { text += "\(name): \(value)\r\n" }
    request = Array((text + "\r\n").utf8)
    self.key = key
    self.subprotocols = subprotocols
  }

  /// Checks the server's answer. Returns the subprotocol it chose, if any.
  ///
  /// Throws `.handshakeRefused` when the status is not 101, and `.handshakeInvalid` when the
  /// answer breaks RFC 6455.
  func validate(
    startLine: String, headers: HTTPHeaders, now: Date = Date()
  ) throws(WebSocketError) -> String? {
    let status: Int
    do {
      status = try parseStatusLine(startLine)
    } catch {
      throw .handshakeInvalid(.malformedResponse)
    }
    guard status == 101 else {
      let pause = RetryAfter.duration(in: headers, now: now)
      throw .handshakeRefused(status: status, retryAfter: pause)
    }
    guard startLine.hasPrefix("HTTP/1.1") else { throw .handshakeInvalid(.malformedResponse) }
    guard headers.contains(token: "websocket", in: "Upgrade") else {
      throw .handshakeInvalid(.missingUpgrade)
    }
    guard headers.contains(token: "upgrade", in: "Connection") else {
      throw .handshakeInvalid(.missingConnection)
    }
    guard headers.values(for: "Sec-WebSocket-Accept") == [HandshakeKey.accept(for: key)] else {
      throw .handshakeInvalid(.wrongAccept)
    }
    guard headers.tokens(in: "Sec-WebSocket-Extensions").isEmpty else {
      throw .handshakeInvalid(.unexpectedExtension)
    }
    let chosen = headers.values(for: "Sec-WebSocket-Protocol")
    guard chosen.count <= 1, chosen.allSatisfy(subprotocols.contains) else {
      throw .handshakeInvalid(.unexpectedSubprotocol)
    }
    return chosen.first
  }
}
