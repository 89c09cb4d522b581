/// The fields of an HTTP header block, in their order. Names are compared without regard to case.
public struct HTTPHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  /// All fields in their order, unchanged.
  public private(set) var fields: [(name: String, value: String)] = []

  /// Makes an empty block.
  public init() {}

  /// Makes a block of the given pairs, in their order.
  public init(_ fields: [(String, String)]) {
    self.fields = fields.map { (name: $0.0, value: $0.1) }
  }

  /// Makes a block of a literal such as `["Content-Type": "text/html"]`.
  public init(dictionaryLiteral elements: (String, String)...) {
    self.init(elements)
  }

  /// Returns whether two blocks have the same fields in the same order, with identical names and values.
  public static func == (one: HTTPHeaders, other: HTTPHeaders) -> Bool {
    one.fields.elementsEqual(other.fields, by: ==)
  }

  /// Hashes all fields, in their order.
  public func hash(into hasher: inout Hasher) {
    for field in fields {
      hasher.combine(field.name)
      hasher.combine(field.value)
    }
  }

  /// Adds a field after the others. Fields with the same name are kept.
  public mutating func append(name: String, value: String) {
    fields.append((name: name, value: value))
  }

  /// The value of the first field called `name`. Linear in the number of fields.
  public subscript(name: String) -> String? {
    fields.first { Self.equal($0.name, name) }?.value
  }

  /// Returns the values of every field called `name`, in order.
  public func values(for name: String) -> [String] {
    fields.filter { Self.equal($0.name, name) }.map(\.value)
  }

  /// Returns whether any field called `name` contains `token` in its comma-separated list. Case is ignored.
  public func contains(token: String, in name: String) -> Bool {
    tokens(in: name).contains { Self.equal($0, token) }
  }

  /// Returns the comma-separated parts of every field called `name`.
  func tokens(in name: String) -> [String] {
    values(for: name).flatMap { $0.split(separator: ",") }.map { Self.trimmed($0) }
  }

  /// Removes every field called `name`.
  mutating func remove(_ name: String) {
    fields.removeAll { Self.equal($0.name, name) }
  }

  /// The name of the first field whose name or value HTTP does not allow; nil when all may be written.
  var firstInvalidName: String? {
    fields.first { !Self.isToken($0.name) || !Self.isFieldValue($0.value) }?.name
  }

  /// Returns whether two ASCII words are equal apart from case.
  static func equal(_ one: some StringProtocol, _ other: some StringProtocol) -> Bool {
    one.utf8.elementsEqual(other.utf8) { lowered($0) == lowered($1) }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
  }

  /// Returns `text` without the blanks and tabs around it.
  static func trimmed(_ text: some StringProtocol) -> String {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    let bytes = text.utf8.drop(while: isBlank)
    var kept = Array(bytes)
    while let last = kept.last, isBlank(last) { kept.removeLast() }
    return String(decoding: kept, as: UTF8.self)
  }

  /// Returns whether `text` is an RFC 9110 token: the form of methods and field names.
  static func isToken(_ text: some StringProtocol) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: false
        }
      }
  }

  /// Returns whether `text` may be a field's value: it has no control characters but the tab, so that no value can end
  /// its line and begin another.
  static func isFieldValue(_ text: some StringProtocol) -> Bool {
    text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
  }
}

/// The head of an HTTP request. Requests with a body are refused before they reach a handler.
public struct HTTPRequest: Sendable, Hashable {
  /// The method, such as `GET`. HTTP methods are case-sensitive.
  public var method: String
  /// The path and query that the request is for, unchanged and still percent-encoded. Of a request for a whole address,
  /// they are those of the address, whose host is in the field Host.
  public var target: String
  /// The minor version of HTTP/1: 0 or 1.
  public var minorVersion: Int
  /// The header fields.
  public var headers: HTTPHeaders
  /// The numeric address of the other end of the socket, such as `203.0.113.5` or `::1`: that of the peer, or of a
  /// proxy in front of it, unless the server trusts the proxy to name the peer. Nil for a request that did not come
  /// over a socket.
  public var remoteAddress: String?
  /// True if both ends of the socket have the same address, which is only possible for a peer on the same machine.
  package var isFromSameMachine = false

  /// Makes a request that did not come over a socket; of HTTP/1.1 by default.
  public init(method: String, target: String, minorVersion: Int = 1, headers: HTTPHeaders = [:]) {
    self.method = method
    self.target = target
    self.minorVersion = minorVersion
    self.headers = headers
  }

  /// The target up to its question mark, still percent-encoded.
  public var path: String { String(target.prefix { $0 != "?" }) }

  /// The target after its first question mark, or nil when there is none.
  public var query: String? {
    target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
  }

  /// True if the sender allows another request on the same connection.
  var wantsKeepAlive: Bool {
    if headers.contains(token: "close", in: "Connection") { return false }
    return minorVersion >= 1 || headers.contains(token: "keep-alive", in: "Connection")
  }

  /// True if a body follows the head.
  var hasBody: Bool {
    !headers.values(for: "Transfer-Encoding").isEmpty
      || headers.values(for: "Content-Length").contains { $0 != "0" }
  }
}

/// An answer to a plain HTTP request.
public struct HTTPResponse: Sendable {
  /// The status code, from 200 to 599.
  public var status: Int
  /// The header fields. The listener overrides `Content-Length`, `Connection` and `Transfer-Encoding`, whatever is
  /// given here.
  public var headers: HTTPHeaders
  /// The body. It is not sent in answer to HEAD, but its length is.
  public var body: [UInt8]

  /// Makes a response. The body is not copied.
  public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Makes a `text/plain` response with the UTF-8 of `text` as its body.
  public static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["Content-Type": "text/plain; charset=utf-8"],
      body: Array(text.utf8))
  }

  /// Returns a response that contains no more than its status.
  static func plain(_ status: Int, headers: HTTPHeaders = [:]) -> HTTPResponse {
    var response = text("\(status) \(reason(for: status))\n", status: status)
    for field in headers.fields { response.headers.append(name: field.name, value: field.value) }
    return response
  }

  /// Returns the bytes of the head, and those of the body unless `includesBody` is false. A response that HTTP does not
  /// allow becomes a plain 500.
  func encoded(keepAlive: Bool, includesBody: Bool) -> (head: [UInt8], body: [UInt8]) {
    guard (200...599).contains(status), headers.firstInvalidName == nil else {
      return HTTPResponse.plain(500).encoded(keepAlive: keepAlive, includesBody: includesBody)
    }
    var headers = headers
    for name in ["Content-Length", "Connection", "Transfer-Encoding"] { headers.remove(name) }
    let mayHaveBody = status != 204 && status != 304
    if mayHaveBody { headers.append(name: "Content-Length", value: String(body.count)) }
    headers.append(name: "Connection", value: keepAlive ? "keep-alive" : "close")
    let head = Self.head(status: status, headers: headers)
    return (head, mayHaveBody && includesBody ? body : [])
  }

  /// Returns a status line and header block, with the empty line that ends it.
  static func head(status: Int, headers: HTTPHeaders) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(reason(for: status))\r\n"
    for field in headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  private static func reason(for status: Int) -> String {
    switch status {
    case 101: "Switching Protocols"
    case 200: "OK"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 413: "Content Too Large"
    case 426: "Upgrade Required"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 503: "Service Unavailable"
    case 505: "HTTP Version Not Supported"
    default: "Status"
    }
  }
}
