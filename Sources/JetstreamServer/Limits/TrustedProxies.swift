import Jetstream
import JetstreamWebSocket

/// The proxies whose word about the addresses of clients is taken; see ``Server/Configuration/trustedProxies``.
package struct TrustedProxies: Sendable {
  private let addresses: Set<[UInt8]>

  /// - Precondition: Each of `addresses` is a numeric address.
  init(_ addresses: Set<String>) {
    self.addresses = Set(
      addresses.map {
        guard let bytes = ClientAddress.bytes(of: $0) else {
          preconditionFailure("The trusted proxy \($0) is not a numeric address.")
        }
        return bytes
      })
  }

  /// Returns true if a text is a numeric address, as that of a proxy has to be.
  package static func canTrust(_ address: String) -> Bool {
    ClientAddress.bytes(of: address) != nil
  }

  /// Returns true if an address is that of a proxy.
  func contains(_ address: String) -> Bool {
    !addresses.isEmpty && ClientAddress.bytes(of: address).map(addresses.contains) == true
  }

  /// Returns a request with the address of the client in place of that of a proxy.
  ///
  /// Each proxy adds the address from which it was reached to the end of `X-Forwarded-For`; what is in front of that,
  /// the client may have made up. So the list is read from its end: as long as the other end is a proxy that is
  /// trusted, the entry that it has added tells who that proxy has talked to. An entry that is no address ends the
  /// search, and the request keeps the address of the proxy that has added it.
  func resolve(_ request: HTTPRequest) -> HTTPRequest {
    guard var address = request.remoteAddress, contains(address) else { return request }
    let fields = request.headers.values(for: "X-Forwarded-For")
    let entries = fields.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
    for entry in entries.reversed() {
      guard contains(address), let before = ClientAddress.read(entry) else { break }
      address = before
    }
    var request = request
    request.remoteAddress = address
    return request
  }
}

extension ClientAddress {
  /// Returns the numeric address in an entry of `X-Forwarded-For`, which may have a port; nil if there is none.
  static func read(_ entry: Substring) -> String? {
    var text = entry.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    if text.first == "[", let end = text.firstIndex(of: "]") {
      text = text[text.index(after: text.startIndex)..<end]
    } else if text.count(where: { $0 == ":" }) == 1 {
      text = text.prefix { $0 != ":" }
    }
    return bytes(of: String(text)).map { _ in String(text) }
  }
}
