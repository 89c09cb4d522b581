/// How a change set came about, as far as those are told who receive it.
package struct ChangeOrigin: Sendable, Hashable {
  /// How many bytes of UTF-8 an author may have, to be told to others.
  package static let longestAuthor = 1 << 10

  /// Who has made it, as its maker says: ``ChangeSet/author``. A server passes on what it is told. One of more
  /// than 1 KiB is not told to others.
  package var author: String?

  /// Which place of the server's order its maker had taken in. What came between that and the set's own place,
  /// its maker did not know. Nil if nobody has said so: then it is taken to have known everything.
  package var seen: Int?

  /// Makes an origin.
  package init(author: String? = nil, seen: Int? = nil) {
    self.author = author
    self.seen = seen
  }
}

extension ChangeOrigin {
  /// Who has made a set, if that can be told.
  package init(authorOf set: ChangeSet) {
    if let name = set.author, name.utf8.count <= Self.longestAuthor { author = name }
  }

  /// Reads `author` and `seen`, which may be missing.
  ///
  /// - Throws: ``FragmentError`` naming the one that is something else.
  package init(in object: JSONObject) throws(FragmentError) {
    author = try object.optionalString("author")
    guard let number = object["seen"], number != .null else { return }
    guard let place = number.wholeNumber else {
      throw .invalid(field: "seen", problem: "should be a whole number from 0 up")
    }
    seen = place
  }

  /// Writes what is known of it.
  package func write(to object: inout JSONObject) {
    if let author { object["author"] = .string(author) }
    if let seen { object["seen"] = .integer(Int64(seen)) }
  }
}
