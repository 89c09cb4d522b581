/// The target of a request in the form that clients send to servers: a path, with its query.
///
/// A request through a proxy has the whole address instead, as in `GET http://example.org/page HTTP/1.1`. Servers have
/// to accept that from all clients, and its host counts then instead of the field Host (RFC 9112, 3.2.2).
struct RequestTarget: Equatable {
  /// The path and query, unchanged; never empty.
  var path: String
  /// The host and port of a whole address; nil for a path alone.
  var authority: String?

  init(_ text: some StringProtocol) throws(HTTPHeadFault) {
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .malformed }
    if text.hasPrefix("/") {
      path = String(text)
      return
    }
    guard let mark = text.firstRange(of: "://"),
      ["http", "https"].contains(text[..<mark.lowerBound].lowercased())
    else { throw .malformed }
    let rest = text[mark.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let host = rest[..<end]
    // A user name in front of the host would be a disguise for it (RFC 9110, 4.2.4), and no host is no address.
    guard !host.isEmpty, !host.hasPrefix(":"), !host.contains("@"), !host.contains("#") else {
      throw .malformed
    }
    authority = String(host)
    path = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
  }
}
