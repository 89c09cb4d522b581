import Foundation
import Jetstream

/// The place of a scope's files in a ``ScopeDirectory``: a path made of the scope's name.
///
/// Lowercase letters, digits, `-` and `_` stand for themselves, and every other byte of the name in UTF-8 for `=` and two
/// hexadecimal digits. So file systems that ignore case, or that compose accents, tell all names apart, and no name leads
/// out of the directory. What does not fit a file name goes on in a folder below, behind a name that ends with `=+`.
struct ScopePlace: Hashable, Sendable {
  /// The largest number of bytes of a scope's name.
  static let longestName = 512
  /// The largest number of characters of a file name, without the ending.
  private static let longestFileName = 240

  /// The path, relative to the folder of all scopes.
  let path: String

  /// - Throws: an error for the client that has named the scope, if the name is empty or too long.
  init(_ name: String) throws(WireError) {
    let bytes = Array(name.precomposedStringWithCanonicalMapping.utf8)
    guard !bytes.isEmpty, bytes.count <= Self.longestName else {
      throw .notThere(
        "The name of a scope has from 1 to \(Self.longestName) bytes, not \(bytes.count)")
    }
    var names: [String] = [""]
    for byte in bytes {
      let text = Self.text(of: byte)
      if names[names.count - 1].utf8.count + text.utf8.count > Self.longestFileName {
        names[names.count - 1] += "=+"
        names.append("")
      }
      names[names.count - 1] += text
    }
    path = names.joined(separator: "/")
  }

  private static func text(of byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      return String(UnicodeScalar(byte))
    default:
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "=0" + digits : "=" + digits
    }
  }
}
