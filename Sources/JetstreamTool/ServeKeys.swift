import Foundation
import Jetstream
import JetstreamServer

/// The keys by which `jetstream serve` knows its users, from a file with a line for each: the key, the user's name, and
/// `read-only` for one who may not change anything. Empty lines and those that begin with `#` do not count.
struct ServeKeys {
  /// The description of an error in the file.
  struct Problem: Error, Equatable {
    let text: String
  }

  private struct User {
    let name: String
    let access: ScopeAccess
  }

  /// The smallest number of characters of a key: shorter ones are guessed too easily.
  private static let shortest = 16

  private var users: [String: User] = [:]

  /// Reads the bytes of a file.
  init(_ bytes: Data) throws(Problem) {
    // A mark in front of the text, as some editors write it, is no part of the first key.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if let index = lines.firstIndex(where: { String(validating: $0, as: UTF8.self) == nil }) {
      throw Problem(text: "line \(index + 1) is not UTF-8.")
    }
    try self.init(String(decoding: bytes, as: UTF8.self))
  }

  /// Reads the text of a file.
  init(_ text: String) throws(Problem) {
    // An end of line of two characters, as some editors write it, is a newline as well.
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
      guard let key = words.first, !key.hasPrefix("#") else { continue }
      func problem(_ text: String) -> Problem { Problem(text: "line \(index + 1): \(text)") }
      guard (2...3).contains(words.count), words.count == 2 || words[2] == "read-only" else {
        throw problem("it should be a key, a name, and read-only or nothing.")
      }
      guard key.count >= Self.shortest else {
        throw problem("the key should have at least \(Self.shortest) characters.")
      }
      guard users[key] == nil else { throw problem("another line has the same key.") }
      users[key] = User(name: words[1], access: words.count == 3 ? .readOnly : .readWrite)
    }
    if users.isEmpty { throw Problem(text: "it has no key.") }
  }

  /// Returns the user whose key a client has sent: with its connection, as `x-jetstream-key`, or as the parameter `key` of
  /// its session.
  func principal(of session: SessionInfo) throws(WireError) -> Principal {
    guard let key = Self.key(of: session) else { throw .notYou("A key is needed") }
    guard let user = users[key] else { throw .notYou("The key is not known") }
    return Principal(user.name, claims: ["readOnly": .bool(user.access == .readOnly)])
  }

  /// Returns the rights that a user has in all scopes.
  func access(of session: SessionInfo) -> ScopeAccess {
    session.principal?.claims["readOnly"] == .bool(false) ? .readWrite : .readOnly
  }

  private static func key(of session: SessionInfo) -> String? {
    if let key = session.connectionParams["key"] { return key }
    guard case .object(let params) = session.params, case .string(let key)? = params["key"] else {
      return nil
    }
    return key
  }
}
