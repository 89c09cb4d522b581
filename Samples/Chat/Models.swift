import Foundation
import Jetstream
import Synchronization

/// A room: the scope `room/NAME`, which all users share.
final class Room: ModelObject {
  @Property var messages: ModelArray<Message> = []
}

final class Message: ModelObject {
  @Property var text = MessageText("")
  /// The name of the user who has written the message. The server refuses any other: it knows whose session it is.
  @Property var author = ""
  /// The time of arrival by the server's clock; nil until the server has the message.
  @Property var date: Date?
  /// Votes by any number of users, which add up.
  @Property(.counter) var score = 0
  /// The names of the users who like the message; those who like it at the same time are all in it.
  @Property(.merge(.union)) var likes: Set<String> = []
}

/// The scope `lobby`: the rooms that there are, and the users that are online. Written by the server.
final class Lobby: ModelObject {
  @Property var rooms: Set<String> = []
  @Property var people: Set<String> = []
}

/// The scope `user/NAME`, which the server gives to this user only: what has been read is synced, because it has to be
/// the same on all devices of one user, and concerns no other user.
final class Profile: ModelObject {
  /// The time of the newest message that was read, for each room that the user has joined.
  @Property(.merge(.union)) var lastRead: [String: Date] = [:]
}

/// The text of a message, on the wire a string. The server refuses it if the house rules do, and the client is told
/// the reason.
struct MessageText: CodableValue {
  let text: String

  init(_ text: String) { self.text = text }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    text = try container.decode(String.self)
    if let problem = HouseRules.problem(with: text) {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: problem)
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// The rules for texts. Only a server enforces them: a client has to be able to read the refused messages in its log.
///
/// A server reads its logs under the same rules, and does not open a room with a text that they refuse. So rules may
/// become stricter only before there are such texts.
enum HouseRules {
  static let longest = 500
  static let unwelcome = ["spam", "casino"]
  private static let areEnforced = Atomic(false)

  /// Makes this process refuse texts from now on.
  static func enforce() { areEnforced.store(true, ordering: .relaxed) }

  /// Returns the reason to refuse the text; nil if there is none.
  static func problem(with text: String) -> String? {
    guard areEnforced.load(ordering: .relaxed) else { return nil }
    if text.count > longest {
      return "A message has at most \(longest) characters, and this one has \(text.count)."
    }
    let word = unwelcome.first { text.localizedCaseInsensitiveContains($0) }
    return word.map { "The word \"\($0)\" is not welcome here." }
  }
}

/// Names of users and rooms are names of scopes and of folders, too.
func isName(_ text: some StringProtocol) -> Bool {
  (1...20).contains(text.count)
    && text.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "-") }
}
