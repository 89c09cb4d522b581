/// The rules for version strings in the handshake.
package enum SemanticVersion {
  /// Returns true if the text is a version as semver.org defines it: three whole numbers with dots, then optionally
  /// a pre-release after `-` and a build after `+`. Like old servers, allows a `v` in front. `v1.2.3` and
  /// `1.0.0-beta.2` are valid, `1.0` and `01.0.0` are not.
  package static func isValid(_ text: String) -> Bool {
    guard text.utf8.count <= 256 else { return false }
    var rest = text.utf8[...]
    if rest.first == UInt8(ascii: "v") { rest.removeFirst() }
    if let plus = rest.firstIndex(of: UInt8(ascii: "+")) {
      guard areIdentifiers(rest[rest.index(after: plus)...], isNumberStrict: false) else {
        return false
      }
      rest = rest[..<plus]
    }
    if let dash = rest.firstIndex(of: UInt8(ascii: "-")) {
      guard areIdentifiers(rest[rest.index(after: dash)...], isNumberStrict: true) else {
        return false
      }
      rest = rest[..<dash]
    }
    let numbers = rest.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return numbers.count == 3 && numbers.allSatisfy { isDigits($0) && isNumber($0) }
  }

  /// The build identifier of a client that rebases: it keeps its pending changes in front of what the server sends,
  /// and acknowledges what it has seen before it submits. Such a client's version is `0.2.0+rebase`.
  package static let rebase = "rebase"

  /// Returns true if the identifiers after the version's `+` include the given one.
  package static func names(_ identifier: String, in version: String) -> Bool {
    guard let plus = version.firstIndex(of: "+") else { return false }
    return version[plus...].dropFirst().split(separator: ".").contains { $0 == identifier }
  }

  private static func areIdentifiers(_ text: Substring.UTF8View, isNumberStrict: Bool) -> Bool {
    text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
      guard !part.isEmpty, part.allSatisfy(isIdentifierByte) else { return false }
      return !isNumberStrict || !isDigits(part) || isNumber(part)
    }
  }

  private static func isDigits(_ text: Substring.UTF8View) -> Bool {
    !text.isEmpty && text.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// Returns true if the digits have no leading zero and stay below 2^53, JavaScript's limit.
  private static func isNumber(_ digits: Substring.UTF8View) -> Bool {
    guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { return false }
    return UInt64(Substring(digits)).map { $0 < 1 << 53 } ?? false
  }

  private static func isIdentifierByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
