import Foundation

/// The addresses of clients.
enum ClientAddress {
  /// Returns the name under which an address counts: an IPv4 address by itself, one of IPv6 by its first 64 bits,
  /// which a single customer of a provider mostly has; anything else, such as a name that another HTTP server has put
  /// there, as it is.
  static func group(of address: String?) -> String? {
    guard let address else { return nil }
    guard let bytes = bytes(of: address) else { return address }
    if bytes.count == 4 { return bytes.map { String($0) }.joined(separator: ".") }
    return bytes[..<8].map { String($0, radix: 16) }.joined(separator: ".") + "/64"
  }

  /// Returns the bytes of a numeric address: 4 of IPv4, also where it is written as one of IPv6, or 16; nil if it is
  /// none.
  static func bytes(of address: String) -> [UInt8]? {
    // The zone of a link-local address is not part of it.
    let text = String(address.prefix { $0 != "%" })
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
    guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
    let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
    return isMapped ? Array(bytes[12...]) : bytes
  }
}
