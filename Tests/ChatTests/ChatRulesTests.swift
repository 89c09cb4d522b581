import Foundation
import Jetstream
import Pacing
import Testing

@testable import chat

/// A client of the library in a room, with all that it was ever told of messages there.
@MainActor
private final class Witness {
  let room = Room()
  private(set) var client: Client!
  private(set) var scope: Scope!
  /// The texts in the order in which they came, and the word "removal" for each removal of a message.
  private(set) var history: [String] = []

  init(
    _ stage: some ChatStage, as user: String, key: String = "secret", port: String
  ) async throws {
    (client, scope) = try await stage.open(room, as: user, key: key, port: port)
    scope.onRemoteChanges.listen(self) { me, changes in
      for fragment in changes.fragments {
        if case .string(let text)? = fragment.properties["text"] { me.history.append(text) }
        for case .remove in fragment.operations["messages"] { me.history.append("removal") }
      }
    }
  }

  /// Makes a change and returns the reasons for which the server has refused parts of it.
  func reasons(for change: (Room) -> Void) async throws -> [String] {
    for conflict in scope.conflicts.items { scope.conflicts.discard(conflict.id) }
    change(room)
    try await client.waitForUpload(of: scope)
    return scope.conflicts.items.compactMap {
      if case .rejected(let error) = $0.reason { error.message } else { nil }
    }
  }

  /// Posts a message and returns it, with the reasons for which the server has refused it.
  func post(
    _ text: String, by author: String, change: (chat.Message) -> Void = { _ in }
  ) async throws -> (message: chat.Message, reasons: [String]) {
    let message = Message()
    (message.text, message.author) = (MessageText(text), author)
    change(message)
    return (message, try await reasons { $0.messages.append(message) })
  }
}

@Suite("Rules of the chat", .live, .timeLimit(.minutes(3)))
@MainActor
struct ChatRulesTests: ChatStage {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("A message is its author's, and what the server refuses to others reaches no third client")
  func guardsMessages() async throws {
    let (server, port) = try await serve()
    let witness = try await Witness(self, as: "witness", port: port)
    let (ada, ben) = try (join("ada", port: port), join("ben", port: port))
    try ada.type("Tea is ready")
    try await ben.expect("1   ", "ada: Tea is ready")
    try ben.type("/edit 1 Tea is cold")
    try await ben.expect("!1 REFUSED edit \"Tea is cold\": Only its author edits a message")
    try ben.type("/delete 1")
    try await ben.expect(
      "!2 REFUSED deletion of \"Tea is ready\": Only its author deletes a message")
    try await ben.expect("1   ", "ada: Tea is ready", without: "…")
    try ada.type("/edit 1 Tea is ready, Ben")
    try await ben.expect("1   ", "ada: Tea is ready, Ben")
    try await ada.expect("1   ", "ada: Tea is ready, Ben", without: "…")
    try ada.type("/delete 1")
    try await wait { witness.history.contains("removal") }
    #expect(witness.history == ["Tea is ready", "Tea is ready, Ben", "removal"])
    #expect(witness.room.messages.isEmpty)
    witness.client.close()
    await server.crash()
  }

  @Test("A moderator edits and deletes messages of others, but writes in no other name")
  func moderates() async throws {
    let (server, port) = try await serve(moderator: "mo")
    let witness = try await Witness(self, as: "witness", port: port)
    let (ada, mo) = try (join("ada", port: port), join("mo", port: port))
    try ada.type("Tea is free")
    try await mo.expect("1   ", "ada: Tea is free")
    try mo.type("/edit 1 Tea is one euro")
    try await ada.expect("1   ", "ada: Tea is one euro")
    await mo.crash()
    // The key of a user is in the user's own folder.
    let key = try String(contentsOfFile: "\(folder)/clients/mo/key", encoding: .utf8)
    let forger = try await Witness(self, as: "mo", key: key, port: port)
    #expect(
      try await forger.post("I, Ada", by: "ada").reasons == ["You can only write in your own name"])
    let again = try join("mo", port: port)
    try await again.expect("1   ", "ada: Tea is one euro")
    try again.type("/delete 1")
    try await wait { witness.room.messages.isEmpty }
    try again.type("/undo")
    try await again.expect("REFUSED \"Tea is one euro\": You can only write in your own name")
    #expect(witness.history == ["Tea is free", "Tea is one euro", "removal"])
    for client in [witness.client!, forger.client!] { client.close() }
    await server.crash()
  }

  @Test("Authors, dates and likes of other users cannot be made up")
  func refusesForgeries() async throws {
    let (server, port) = try await serve()
    let witness = try await Witness(self, as: "witness", port: port)
    let mallory = try await Witness(self, as: "mallory", port: port)
    let debt = try await mallory.post("I owe Mallory ten euros.", by: "ada")
    #expect(debt.reasons == ["You can only write in your own name"])
    let message = try await mallory.post("I am the first", by: "mallory") {
      ($0.date, $0.likes) = (.distantPast, ["ada", "mallory"])
    }.message
    try await wait { witness.room.messages.first?.date != nil }
    let copy = witness.room.messages[0]
    #expect(try #require(copy.date) > .distantPast && copy.likes == ["mallory"])

    #expect(
      try await witness.reasons { _ in copy.author = "witness" } == ["A message keeps its author"])
    #expect(
      try await mallory.reasons { _ in message.date = .distantPast }
        == ["Only the server writes the date"])
    #expect(
      try await mallory.reasons { _ in message.date = nil } == ["Only the server writes the date"])
    for likes: Set<String> in [["mallory", "ada"], []] {
      #expect(
        try await witness.reasons { _ in copy.likes = likes }
          == ["You can only like in your own name"])
    }
    #expect(try await witness.reasons { _ in copy.likes.insert("witness") } == [])
    #expect(try await witness.reasons { _ in copy.score += 1 } == [])
    try await wait { message.likes == ["mallory", "witness"] && message.score == 1 }
    #expect(message.date == copy.date && message.author == "mallory")
    #expect(witness.history == ["I am the first"])
    for client in [witness.client!, mallory.client!] { client.close() }
    await server.crash()
  }

  @Test("Users who like a message at the same time are all permitted to")
  func mergesLikes() async throws {
    let (server, port) = try await serve()
    let (ada, ben) = try (join("ada", port: port), join("ben", port: port))
    try ada.type("Tea?")
    try await ada.expect("1   ", "ada: Tea?", without: "…")
    try await ben.expect("1   ", "ada: Tea?")
    await server.crash()
    for client in [ada, ben] {
      try await client.expect("| offline")
      try client.type("/like 1")
      try await client.expect("[liked by ")
    }
    let (again, _) = try await serve(port: port)
    for client in [ada, ben] { try await client.expect("ada: Tea? [liked by ada, ben]") }
    await again.crash()
  }

  @Test("A deletion can be undone, and the message begins anew", arguments: [false, true])
  func undoesDeletion(isLater: Bool) async throws {
    let (first, port) = try await serve()
    var server = first
    let witness = try await Witness(self, as: "witness", port: port)
    let ada = try join("ada", port: port)
    try ada.type("Tea is ready")
    try await wait { witness.room.messages.first?.date != nil }
    let date = try #require(witness.room.messages[0].date)
    #expect(try await witness.reasons { $0.messages[0].likes = ["witness"] } == [])
    try await ada.expect("ada: Tea is ready [liked by witness]")
    try ada.type("/delete 1")
    try await wait { witness.room.messages.isEmpty }
    if isLater {
      // The server knows the message no longer.
      await server.crash()
      try await ada.expect("| offline")
      server = try await serve(port: port).process
      try await ada.expect("| online")
    }
    try ada.type("/undo")
    try await wait { witness.room.messages.first?.date != nil }
    let message = witness.room.messages[0]
    #expect(try #require(message.date) > date && message.author == "ada" && message.likes == [])
    try await ada.expect("1   ", "ada: Tea is ready", without: "liked by")
    witness.client.close()
    await server.crash()
  }

  @Test("The lobby is the server's")
  func guardsLobby() async throws {
    let (server, port) = try await serve()
    let witness = try await Witness(self, as: "witness", port: port)
    let lobby = Lobby()
    let scope = Scope(name: "lobby", root: lobby)
    try await witness.client.fetch(scope)
    #expect(lobby.rooms == ["hall"] && lobby.people == ["witness"])
    lobby.people = ["the queen"]
    try await witness.client.waitForUpload(of: scope)
    #expect(scope.conflicts.items.count == 1 && lobby.people == ["witness"])
    witness.client.close()
    await server.crash()
  }

  @Test("A blocked user is put out at once, and refused with the reason, also after a restart")
  func blocks() async throws {
    let (server, port) = try await serve()
    let (ada, ben) = try (join("ada", port: port), join("ben", port: port))
    try await ada.expect("| online")
    try ben.type("LOUD")
    try await ada.expect("ben: LOUD")
    try server.type("block ben too loud")
    try await server.expect("ben is blocked")
    try await ben.expect("ben in #hall | offline")
    try await ben.expect("REFUSED: You are blocked: too loud")
    try ben.type("LOUDER")
    try await ben.expect("… --:-- ben: LOUDER")
    try await ben.expect("REFUSED: You are blocked: too loud")
    try await wait { try log(of: "ben", contains: "LOUDER") }
    await ben.crash()
    try ada.type("/who")
    try await ada.expect("Online: ada", without: "ben")

    let second = try join("ben", port: port)
    try await second.expect("REFUSED: You are blocked: too loud")
    await second.crash()
    await server.crash()
    let (again, _) = try await serve(port: port)
    let third = try join("ben", port: port)
    try await third.expect("REFUSED: You are blocked: too loud")
    let witness = try await Witness(self, as: "witness", port: port)
    #expect(witness.room.messages.map(\.text.text) == ["LOUD"])

    try again.type("unblock ben")
    try await again.expect("ben is not blocked")
    try third.type("/connect")
    try await third.expect("ben: LOUDER", without: "…")
    try await wait { witness.history == ["LOUDER"] }
    witness.client.close()
    await again.crash()
  }
}
