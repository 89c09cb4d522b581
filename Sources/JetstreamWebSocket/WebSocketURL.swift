import Foundation

/// The parts of a `ws://` or `wss://` address that a connection needs.
struct WebSocketURL: Sendable, Equatable {
  var isSecure: Bool
  /// The host for the resolver: without brackets, an IPv6 address with its zone as in `fe80::1%eth0`.
  var host: String
  var port: UInt16
  /// The path and query, unchanged; never empty.
  var target: String
  /// The host as others see it. A zone concerns this machine only, and is not sent (RFC 6874, 4).
  private var publicHost: String
  private var hasDefaultPort: Bool

  /// The value of the Host field; the port is left out when it is the scheme's own.
  var hostHeader: String { hasDefaultPort ? publicHost : "\(publicHost):\(port)" }

  /// Reads an address. Throws `.invalidURL`, with the reason, when it cannot be used.
  init(_ text: String) throws(WebSocketError) {
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .invalidURL(problem: "The address holds a blank or a character that is not ASCII.")
    }
    guard let mark = text.firstRange(of: "://") else {
      throw .invalidURL(problem: "The address has no scheme.")
    }
    switch text[..<mark.lowerBound].lowercased() {
    case "ws": isSecure = false
    case "wss": isSecure = true
    default: throw .invalidURL(problem: "The scheme is neither ws nor wss.")
    }
    let rest = text[mark.upperBound...]
    guard !rest.contains("#") else {
      throw .invalidURL(problem: "A WebSocket address has no fragment.")
    }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let path = rest[end...]
    target = path.hasPrefix("/") ? String(path) : "/" + path

    let authority = rest[..<end]
    guard !authority.contains("@") else {
      throw .invalidURL(problem: "The address holds a user name; send credentials in a header.")
    }
    let portText: Substring
    if authority.hasPrefix("[") {
      guard let bracket = authority.firstIndex(of: "]") else {
        throw .invalidURL(problem: "The host's bracket is not closed.")
      }
      let inside = authority[authority.index(after: authority.startIndex)..<bracket]
      let address = inside.prefix { $0 != "%" }
      publicHost = "[\(address)]"
      portText = authority[authority.index(after: bracket)...]
      guard portText.isEmpty || portText.hasPrefix(":") else {
        throw .invalidURL(problem: "Something other than a port follows the host's bracket.")
      }
      guard address.contains(":"),
        address.utf8.allSatisfy({ Self.isHostByte($0) || $0 == 0x3A })
      else { throw .invalidURL(problem: "The brackets hold no IPv6 address.") }
      host = String(address) + (try Self.zone(inside[address.endIndex...]))
    } else {
      let colon = authority.firstIndex(of: ":") ?? authority.endIndex
      host = String(authority[..<colon])
      publicHost = host
      portText = authority[colon...]
      guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else {
        throw .invalidURL(
          problem: "The host is missing or holds a character that hosts cannot have.")
      }
    }
    let standard: UInt16 = isSecure ? 443 : 80
    let digits = portText.dropFirst()
    if digits.isEmpty {
      port = standard
    } else {
      guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(digits),
        number > 0
      else { throw .invalidURL(problem: "The port is not a number from 1 to 65535.") }
      port = number
    }
    hasDefaultPort = port == standard
  }

  /// Returns the zone behind an IPv6 address, with its percent sign; empty without one.
  ///
  /// In an address it is written `%25eth0`, and other characters than those of names are percent-encoded, too (RFC
  /// 6874). The form of the command line, `%eth0`, is understood as well.
  private static func zone(_ text: Substring) throws(WebSocketError) -> String {
    if text.isEmpty { return "" }
    let isEncoded = text.hasPrefix("%25") && text != "%25"
    let written = String(text.dropFirst(isEncoded ? 3 : 1))
    guard let name = isEncoded ? written.removingPercentEncoding : written, !name.isEmpty,
      name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      !name.contains("%")
    else { throw .invalidURL(problem: "The IPv6 zone behind the percent sign cannot be read.") }
    return "%" + name
  }

  /// Returns whether a byte may be part of a host: letters, digits, hyphen, dot and underscore.
  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
    default: false
    }
  }
}
