import Foundation

/// How a change set came about, as far as those are told who receive it.
package struct ChangeOrigin: Sendable, Hashable {
  /// How many bytes of UTF-8 an author may have, to be told to others.
  package static let longestAuthor = 1 << 10
  /// How many bytes of UTF-8 a message may have, to be told to others.
  package static let longestMessage = 4 << 10

  /// Who has made it: the user of the session, as the server's app says, or for the changes of that app itself
  /// ``ChangeSet/author``. Only servers say it. One of more than 1 KiB is not told to others.
  package var author: String?

  /// What it was made for: ``ChangeSet/message``. One of more than 4 KiB is not told to others.
  package var message: String?

  /// When it was made, as its maker says; otherwise when the server took it.
  package var date: Date?

  /// Tells the client that has made it from others; see ``RemoteChanges/client``. Only servers say it.
  package var client: UUID?

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
  /// What a set says of itself, as far as that can be told.
  package init(of set: ChangeSet) {
    if let name = set.author, name.utf8.count <= Self.longestAuthor { author = name }
    if let text = set.message, text.utf8.count <= Self.longestMessage { message = text }
    date = set.date
  }

  /// Reads what ``write(to:)`` writes, of which all may be missing.
  ///
  /// - Throws: ``FragmentError`` naming the one that is something else.
  package init(in object: JSONObject) throws(FragmentError) {
    author = try object.optionalString("author")
    message = try object.optionalString("message")
    date = try object.optionalDate("date")
    if let text = try object.optionalString("madeBy") {
      guard let uuid = UUID(wireText: text) else {
        throw .invalid(field: "madeBy", problem: "should be a UUID")
      }
      client = uuid
    }
    guard let number = object["seen"], number != .null else { return }
    guard let place = number.wholeNumber else {
      throw .invalid(field: "seen", problem: "should be a whole number from 0 up")
    }
    seen = place
  }

  /// Writes what is known of it.
  package func write(to object: inout JSONObject) {
    if let author { object["author"] = .string(author) }
    if let message { object["message"] = .string(message) }
    if let date { object["date"] = .double(date.milliseconds / 1000) }
    if let client { object["madeBy"] = .string(client.wireText) }
    if let seen { object["seen"] = .integer(Int64(seen)) }
  }

  /// About how many bytes it takes on the wire.
  var roughSize: Int {
    (author?.utf8.count ?? 0) + (message?.utf8.count ?? 0) + (date == nil ? 0 : 24)
      + (client == nil ? 0 : 48)
  }
}
