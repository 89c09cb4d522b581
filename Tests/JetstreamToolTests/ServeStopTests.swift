import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

/// The command as a process whose scopes cannot be closed, or whose output is closed.
@Suite("What jetstream serve leaves in its directory", .live, .timeLimit(.minutes(5)))
@MainActor
struct ServeStopTests {
  private let files = try! TemporaryDirectory()
  private var data: String { files.path + "/data" }

  /// Changes a scope, once the server can be reached.
  private func change(_ name: String, _ url: String) async throws {
    let client = Client(url: url)
    let canvas = Canvas()
    let scope = Scope(name: name, root: canvas)
    try await client.connect()
    try await client.fetch(scope)
    canvas.name = "changed"
    try await client.sync(scope)
    client.close()
  }

  @Test("It prints nothing into its files if its streams are closed")
  func closedStreams() async throws {
    let port = keptPort()
    let process = try LogProcess(
      "jetstream", ["serve", "--data", data, "--port", "\(port)", "--log-level", "debug"],
      redirection: "<&- >&- 2>&-")
    try await change("notes", "ws://127.0.0.1:\(port)")
    process.stop()
    #expect(try await process.finish().status == 0)
    #expect(try Data(contentsOf: URL(fileURLWithPath: data + "/lock")).isEmpty)
    let verification = try LogReader(data + "/scopes/notes").verify()
    #expect(verification.isWhole && verification.records == 1...1)
  }

  @Test("Scopes that cannot be closed when it stops are named, and its status says so")
  func unclosed() async throws {
    let process = try LogProcess("jetstream", ["serve", "--data", data, "--port", "0"])
    let line = try #require(await process.line())
    let url = try #require(line.firstMatch(of: /ws:\/\/[0-9.]+:[0-9]+/)).output
    for name in ["notes", "tally", "board"] { try await change(name, String(url)) }
    for name in ["notes", "tally"] {
      try FileManager.default.moveItem(
        atPath: data + "/scopes/" + name, toPath: files.path + "/" + name)
    }
    process.stop()
    let (lines, errors, status) = try await process.finish()
    #expect(status == 3 && lines.last != "Stopped.")
    #expect(
      errors.hasSuffix("jetstream serve: the histories of notes and tally could not be closed.\n"),
      "\(errors)")
  }
}
