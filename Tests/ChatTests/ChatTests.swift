import Foundation
import Jetstream
import Pacing
import Testing

@testable import chat

@Suite("The chat", .live, .timeLimit(.minutes(3)))
@MainActor
struct ChatTests: ChatStage {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("A message, its likes and its votes appear at the other client with the author")
  func delivers() async throws {
    let (server, port) = try await serve()
    let (ada, ben) = try (join("ada", port: port), join("ben", port: port))
    try await ada.expect("ada in #hall | online")
    try ada.type("Hello, Ben.")
    try await ben.expect("ada: Hello, Ben.", without: "…")
    try ben.type("/like 1")
    try ben.type("/react 1 +1")
    try await ada.expect("ada: Hello, Ben. +1 [liked by ben]")
    try ada.type("/like 1")
    try await ben.expect("[liked by ada, ben]")
    await server.crash()
  }

  @Test("A message of another user gives no commands to the terminal, and is one line")
  func controlCharacters() async throws {
    let (server, port) = try await serve()
    let ada = try join("ada", port: port)
    try await ada.expect("ada in #hall | online")
    let room = Room()
    let (client, scope) = try await open(room, as: "ben", port: port)
    let message = Message()
    message.author = "ben"
    message.text = MessageText("\u{1B}[2J\u{9B}31m\n7   12:00 ada: Forged")
    room.messages.append(message)
    scope.flush()
    try await ada.expect("ben: \u{FFFD}[2J\u{FFFD}31m\u{FFFD}7   12:00 ada: Forged")
    client.close()
    await server.crash()
  }

  @Test("A client that starts without a server sends its messages as soon as there is one")
  func startsOffline() async throws {
    let port = "\(keptPort())"
    let ada = try join("ada", port: port)
    try ada.type("Written offline")
    try await ada.expect("… --:-- ada: Written offline")
    try await ada.expect("ada in #hall | offline | 1 pending")
    let (server, _) = try await serve(port: port)
    try await ada.expect("ada: Written offline", without: "…")
    let ben = try join("ben", port: port)
    try await ben.expect("ada: Written offline")
    await server.crash()
  }

  @Test("A user called server and the server keep their logs apart in one folder")
  func separatesFolders() async throws {
    let port = "\(keptPort())"
    let client = try join("server", port: port)
    try client.type("Written offline")
    try await client.expect("… --:-- server: Written offline")
    let (server, _) = try await serve(port: port)
    try await client.expect("server: Written offline", without: "…")
    await server.crash()
    try await client.expect("| offline")
    await client.crash()
  }

  @Test("A client that is killed has its pending message again, and sends it once")
  func survivesKill() async throws {
    let (server, port) = try await serve()
    let first = try join("ada", port: port)
    try first.type("Delivered")
    try await first.expect("ada: Delivered", without: "…")
    await server.crash()
    try await first.expect("| offline")
    try first.type("Pending")
    try await first.expect("… --:-- ada: Pending")
    // The log is written beside the main actor; the screen does not tell when that is done.
    try await wait { try log(of: "ada", contains: "Pending") }
    await first.crash()

    let second = try join("ada", port: port)
    try await second.expect("| 1 pending")
    try await second.expect("1   ", "ada: Delivered")
    try await second.expect("2 … --:-- ada: Pending")
    let (again, _) = try await serve(port: port)
    try await second.expect("2   ", "ada: Pending")
    let room = Room()
    let (client, _) = try await open(room, as: "cleo", port: port)
    #expect(room.messages.map(\.text.text) == ["Delivered", "Pending"])
    #expect(room.messages.allSatisfy { $0.author == "ada" && $0.date != nil })
    client.close()
    await again.crash()
  }

  @Test("A server whose output is closed prints nothing into its logs")
  func closedOutput() async throws {
    let (first, port) = try await serve()
    let ada = try join("ada", port: port)
    try ada.type("First")
    try await ada.expect("ada: First", without: "…")
    await first.crash()
    // It knows Ada, and writes nothing to its first log that would cover what is printed there.
    let server = try ChatProcess(["serve", "--port", port, "--data", folder], redirection: ">&-")
    try ada.type("Second")
    try await ada.expect("ada: Second", without: "…")
    await server.crash()
    let files = try #require(FileManager.default.subpaths(atPath: "\(folder)/server"))
    #expect(files.contains("accounts/lock") && files.contains("room/hall/lock"))
    for file in files {
      let bytes = FileManager.default.contents(atPath: "\(folder)/server/\(file)") ?? Data()
      #expect(!String(decoding: bytes, as: UTF8.self).contains("Serving on"), "\(file)")
    }
  }

  @Test("A message directly before the end is pending at the next start", arguments: [false, true])
  func keepsLastMessage(quits: Bool) async throws {
    let port = "\(keptPort())"
    let first = try join("ada", port: port)
    try first.type("The last one")
    if quits { try first.type("/quit") } else { try first.endInput() }
    #expect(await first.exitCode() == 0)
    let second = try join("ada", port: port)
    try await second.expect("ada in #hall | offline | 1 pending")
    try await second.expect("… --:-- ada: The last one")
    await second.crash()
  }

  @Test("An address that cannot work, and a taken port, are named, and help is no error")
  func explains() async throws {
    let client = try ChatProcess([
      "join", "ada", "--server", "http://127.0.0.1:1", "--data", folder,
    ])
    let complaint = await client.complaints()
    #expect(complaint.contains("'http://127.0.0.1:1' is no address"), "\(complaint)")
    #expect(await client.exitCode() == 2)
    #expect(!FileManager.default.fileExists(atPath: "\(folder)/clients"))
    let (server, port) = try await serve()
    let other = try TemporaryDirectory()
    let second = try ChatProcess(["serve", "--port", port, "--data", other.path])
    let reason = await second.complaints()
    #expect(reason == "chat: port \(port) is taken; choose another one with --port")
    await server.crash()
    let help = try ChatProcess(["--help"])
    #expect(await help.rest().contains { $0.hasPrefix("USAGE: chat serve") })
    #expect(await help.exitCode() == 0)
  }

  @Test(
    "A refused message is shown with the server's reason until it is discarded",
    arguments: [
      ("Cheap spam for you", "The word \"spam\" is not welcome here."),
      (String(repeating: "long ", count: 120), "A message has at most 500 characters"),
    ])
  func refuses(text: String, reason: String) async throws {
    let (server, port) = try await serve()
    let first = try join("ada", port: port)
    try await first.expect("| online")
    try first.type(text)
    try await first.expect("!1 REFUSED", reason)
    try first.type("/retry 1")
    try await first.expect("… --:--", String(text.prefix(10)))
    try await first.expect("!1 REFUSED", reason)
    await first.crash()
    let second = try join("ada", port: port)
    try await second.expect("!1 REFUSED", reason)
    try second.type("/discard 1")
    try second.type("/discard 1")
    try await second.expect("There is no number 1.")
    await server.crash()
  }

  @Test("A name belongs to the first user who came with it, and a profile to its user")
  func keepsNames() async throws {
    let (server, port) = try await serve()
    let ada = try join("ada", port: port)
    try await ada.expect("| online")
    await #expect(throws: SyncError.self) { _ = try await open(Room(), as: "ada", port: port) }
    let (client, _) = try await open(Room(), as: "ben", port: port)
    await #expect(throws: SyncError.self) {
      try await client.fetch(Scope(name: "user/ada", root: Profile()))
    }
    client.close()
    await server.crash()
  }

  @Test("Unread messages of another room are counted until the room is looked at")
  func countsUnread() async throws {
    let (server, port) = try await serve()
    let ada = try join("ada tea", port: port)
    try await ada.expect("ada in #tea | online")
    try ada.type("/join hall")
    try await ada.expect("ada in #hall | online")
    let ben = try join("ben tea", port: port)
    try ben.type("First")
    try ben.type("Second")
    try await ada.expect("unread: #tea 2")
    await ada.crash()
    let again = try join("ada", port: port)
    try await again.expect("ada in #hall", "unread: #tea 2")
    try again.type("/join tea")
    try await again.expect("ben: Second")
    try again.type("/join hall")
    try await again.expect("ada in #hall", without: "unread")
    await server.crash()
  }

  @Test("An undone message is gone at the other client")
  func undoes() async throws {
    let (server, port) = try await serve()
    let room = Room()
    let (client, _) = try await open(room, as: "ben", port: port)
    let ada = try join("ada", port: port)
    try ada.type("Oops")
    try await ada.expect("ada: Oops", without: "…")
    try await wait { room.messages.count == 1 }
    try ada.type("/undo")
    try await wait { room.messages.isEmpty }
    try ada.type("/undo")
    try await ada.expect("There is nothing that can be undone.")
    try ada.type("Oops again")
    try await wait { room.messages.count == 1 }
    await ada.crash()
    let again = try join("ada", port: port)
    try await again.expect("ada: Oops again", without: "…")
    try again.type("/undo")
    try await wait { room.messages.isEmpty }
    client.close()
    await server.crash()
  }
}
