import Foundation
import Jetstream
import Pacing
import Testing

@testable import chat

/// A test that runs servers and clients with one data folder.
@MainActor
protocol ChatStage {
  var directory: TemporaryDirectory { get }
}

extension ChatStage {
  var folder: String { directory.path }

  /// Starts a server and returns it once it listens, with its port.
  func serve(
    port: String = "\(keptPort())", moderator: String? = nil
  ) async throws -> (process: ChatProcess, port: String) {
    let options = moderator.map { ["--moderator", $0] } ?? []
    let server = try ChatProcess(["serve", "--port", port, "--data", folder] + options)
    let line = try await server.expect("Serving on ws://")
    return (server, try #require(line.split(separator: ":").last.map(String.init)))
  }

  func join(_ arguments: String, port: String) throws -> ChatProcess {
    let words = arguments.split(separator: " ").map(String.init)
    return try ChatProcess([
      "join", words[0], words.count > 1 ? words[1] : "hall", "--server",
      "ws://127.0.0.1:\(port)", "--data", folder,
    ])
  }

  /// Opens a room with a client of the library, for what the program does not let its user do.
  func open(
    _ room: Room, as user: String, key: String = "secret", port: String
  ) async throws -> (Client, Scope) {
    let (client, scope) = (
      Client(url: "ws://127.0.0.1:\(port)"), Scope(name: "room/hall", root: room)
    )
    try await client.connect(params: ["name": .string(user), "key": .string(key)])
    try await client.fetch(scope)
    return (client, scope)
  }

  /// Returns true if a user's log of the hall contains a text.
  func log(of user: String, contains text: String) throws -> Bool {
    let log = URL(filePath: "\(folder)/clients/\(user)/room/hall")
    return try FileManager.default.contentsOfDirectory(at: log, includingPropertiesForKeys: nil)
      .contains { String(decoding: try Data(contentsOf: $0), as: UTF8.self).contains(text) }
  }
}
