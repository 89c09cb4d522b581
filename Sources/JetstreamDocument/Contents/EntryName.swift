import Foundation

/// The names under which the entries of dictionaries are in fragments, as references: `members/Ada` is the entry of
/// `members` with the key `Ada`.
///
/// So two replicas that write different entries do not meet, and for one entry the same holds as for any reference.
package enum EntryName {
  static let separator = "/"

  /// Returns the name of an entry.
  package static func text(of key: String, in dictionary: String) -> String {
    dictionary + separator + key
  }

  /// Returns true if a name may be that of an entry, for those who know no schema.
  package static func mayBeEntry(_ name: String) -> Bool {
    name.utf8.contains(Character(separator).asciiValue!)
  }

  /// Returns the name of the dictionary that a name may be an entry of, for those who know no schema.
  package static func dictionary(ofWhatMayBe name: String) -> String? {
    // A key may begin with a mark that is one character with the separator.
    name.utf8.firstIndex(of: Character(separator).asciiValue!).map { String(name[..<$0]) }
  }

  /// Returns true if a name is that of an entry of a dictionary.
  package static func isEntry(_ name: String, of dictionary: String) -> Bool {
    name.utf8.count > dictionary.utf8.count && name.utf8.starts(with: dictionary.utf8)
      && name.utf8.dropFirst(dictionary.utf8.count).starts(with: separator.utf8)
  }

  /// Returns the form of a key that every replica uses: canonically equivalent keys, which Swift takes for the same, have
  /// the same bytes then.
  package static func normal(_ key: String) -> String {
    key.utf8.allSatisfy { $0 < 0x80 } ? key : key.precomposedStringWithCanonicalMapping
  }
}
