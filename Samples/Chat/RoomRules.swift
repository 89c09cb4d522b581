import Jetstream
import JetstreamServer

/// The rules for changes in a room.
///
/// The server judges each change set by them before it applies anything: other users never see what is denied, and its
/// writer reads the reason.
enum RoomRules {
  static let all: ScopeRules = {
    var rules = ScopeRules(otherwise: .deny)
    rules.insert(into: \Room.messages, "Always permitted") { _, _, _ in true }
    rules.create(Message.self, "You can only write in your own name") { session, message in
      message.author == session.principal?.id
    }
    rules.create(Message.self, "Only the server writes the date") { _, message in
      message.date == nil
    }
    rules.create(Message.self, "You can only like in your own name") { session, message in
      session.isAlone(in: message.likes)
    }
    rules.update(\Message.text, "Only its author edits a message") { session, old, _ in
      session.ownsOrModerates(old)
    }
    rules.remove(from: \Room.messages, "Only its author deletes a message") { session, _, message in
      session.ownsOrModerates(message)
    }
    rules.delete(Message.self, "Only its author deletes a message") { session, message in
      session.ownsOrModerates(message)
    }
    rules.update(\Message.author, "A message keeps its author") { _, _, _ in false }
    rules.update(\Message.score, "Always permitted") { _, _, _ in true }

    // A message that its author has deleted is in no room. When /undo brings it back, it loses its date and likes.
    rules.update(\Message.date, "Only the server writes the date") { _, old, new in
      new.date == nil && old.isInNoRoom
    }
    rules.update(\Message.likes, "You can only like in your own name") { session, old, new in
      session.isAlone(in: new.likes.subtracting(old.likes))
        && (session.isAlone(in: old.likes.subtracting(new.likes)) || old.isInNoRoom)
    }
    rules.review { changes in beginAnew(&changes) }
    return rules
  }()

  /// Takes the date, and the likes of other users, from the messages that a client adds, so that /undo need not know
  /// that it may not bring them back.
  private static func beginAnew(_ changes: inout ProposedChangeSet) {
    let user = changes.session.principal.map { JSONValue.string($0.id) }
    for (index, fragment) in changes.fragments.enumerated()
    where fragment.kind == .add && fragment.className == "Message" {
      if fragment.properties["date"] != nil { changes.set("date", to: .null, at: index) }
      if case .array(let likes)? = fragment.properties["likes"] {
        changes.set("likes", to: .array(likes.filter { $0 == user }), at: index)
      }
    }
  }
}

extension SessionInfo {
  /// Returns true if the user has written a message, or is a moderator.
  fileprivate func ownsOrModerates(_ message: ModelView<Message>) -> Bool {
    message.author == principal?.id || principal?.claims["role"] == "moderator"
  }

  /// Returns true if no name but that of the user is in a set.
  fileprivate func isAlone(in names: Set<String>) -> Bool {
    names.allSatisfy { $0 == principal?.id }
  }
}

extension ModelView<Message> {
  /// True for a message that was deleted and may come back.
  fileprivate var isInNoRoom: Bool { holders(as: Room.self).isEmpty }
}
