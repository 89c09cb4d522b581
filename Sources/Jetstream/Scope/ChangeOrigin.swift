import Foundation

/// The origin of a change set, as the server passes it on to the clients that receive the change set: its author,
/// message, date and client.
package struct ChangeOrigin: Sendable, Hashable {
  /// The most bytes of UTF-8 that an author may have to be passed on.
  package static let longestAuthor = 1 << 10
  /// The most bytes of UTF-8 that a message may have to be passed on.
  package static let longestMessage = 4 << 10

  /// The author of the change set: the user of the session as the server's app names it, or ``ChangeSet/author`` for
  /// changes made by that app itself. Set by servers only. An author of more than 1 KiB is not passed on.
  package var author: String?

  /// The purpose of the change set: ``ChangeSet/message``. A message of more than 4 KiB is not passed on.
  package var message: String?

  /// The time at which the change set was made, by the clock of its maker; if the maker gave none, the time at which
  /// the server accepted it.
  package var date: Date?

  /// The identity of the client that made the change set; see ``RemoteChanges/client``. Set by servers only.
  package var client: UUID?

  /// The sequence up to which the maker had applied the server's order. The maker had not seen the change sets
  /// between this sequence and the change set's own. If nil, the maker is assumed to have seen everything.
  package var seen: Int?

  /// Creates an origin.
  package init(author: String? = nil, seen: Int? = nil) {
    self.author = author
    self.seen = seen
  }
}

extension ChangeOrigin {
  /// Creates the origin that a change set declares. Leaves out an author or a message that is too long to be passed
  /// on.
  package init(of set: ChangeSet) {
    if let name = set.author, name.utf8.count <= Self.longestAuthor { author = name }
    if let text = set.message, text.utf8.count <= Self.longestMessage { message = text }
    date = set.date
  }

  /// Reads an origin as ``write(to:)`` writes it. Every field may be missing.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is not valid.
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

  /// The approximate number of bytes that the origin takes on the wire.
  var roughSize: Int {
    (author?.utf8.count ?? 0) + (message?.utf8.count ?? 0) + (date == nil ? 0 : 24)
      + (client == nil ? 0 : 48)
  }
}
