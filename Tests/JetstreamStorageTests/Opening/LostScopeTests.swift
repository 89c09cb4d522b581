import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Scopes in a directory whose logs have lost records that were durable.
@Suite("Scopes in a directory that have lost records", .live, .timeLimit(.minutes(5)))
@MainActor
struct LostScopeTests {
  private let files = try! TemporaryDirectory()
  private var path: String { files.path + "/server" }

  private final class Notes {
    var texts: [String] = []
    var new: [Bool] = []
  }

  private func makeServer(acceptsLoss: Bool, _ notes: Notes) throws -> Server {
    let server = Server()
    let configuration = LogConfiguration(acceptsLoss: acceptsLoss)
    let directory = try ScopeDirectory(path, configuration: configuration)
    server.openScopes(in: directory) { request in
      notes.new.append(request.isNew)
      return .schema(ScopeSchema(of: Canvas.self))
    }
    server.onDiagnostic.listen { notes.texts.append($0.text()) }
    return server
  }

  private func fetch(from server: Server) async throws -> (client: Client, canvas: Canvas) {
    let client = Client(transport: server.makeTransport())
    let canvas = Canvas()
    try await client.connect()
    try await client.fetch(Scope(name: "A", root: canvas))
    return (client, canvas)
  }

  /// The folder of the scope's log.
  private func folder() throws -> URL {
    let scopes = URL(fileURLWithPath: path + "/scopes")
    let all = try #require(
      FileManager.default.enumerator(at: scopes, includingPropertiesForKeys: nil))
    for case let file as URL in all where file.lastPathComponent == "log-000000000001.jsonl" {
      return file.deletingLastPathComponent()
    }
    throw CocoaError(.fileNoSuchFile)
  }

  @Test(
    "Clients that saw more of a scope than its log has left notice that it goes on in a new epoch")
  func lostEnd() async throws {
    let notes = Notes()
    var server = try makeServer(acceptsLoss: false, notes)
    let path = files.path + "/client"
    var log = try FragmentLog(path)
    var client = Client(transport: server.makeTransport())
    var canvas = Canvas()
    var scope = Scope(name: "A", root: canvas)
    try client.fetch(scope, log: log)
    try await client.connect()
    for number in 1...3 {
      canvas.name = "\(number)"
      try await client.sync(scope)
    }
    client.close()
    try await log.close()
    await server.stop()

    let segment = try folder().appendingPathComponent("log-000000000001.jsonl")
    let bytes = try Data(contentsOf: segment)
    let end = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n"))) + 1
    try bytes.prefix(end).write(to: segment)

    server = try makeServer(acceptsLoss: true, notes)
    // Another client's change gets the sequence of the lost one.
    let (other, copy) = try await fetch(from: server)
    #expect(copy.name == "2")
    copy.likes = 7
    try await other.sync(copy.scope)
    #expect(notes.texts.contains { $0.contains("a part of its history is lost") })

    client = Client(transport: server.makeTransport())
    canvas = Canvas()
    scope = Scope(name: "A", root: canvas)
    var losses = 0
    client.onHistoryLoss.listen { _ in losses += 1 }
    log = try FragmentLog(path)
    try client.fetch(scope, log: log)
    #expect(canvas.name == "3")
    try await client.connect()
    try await client.waitForDownload(of: scope)
    #expect(losses == 1 && canvas.name == "2" && canvas.likes == 7)
    client.close()
    other.close()
    await server.stop()
    #expect(notes.new == [true, false])
    // The loss was reported once.
    notes.texts = []
    server = try makeServer(acceptsLoss: true, notes)
    #expect(try await fetch(from: server).canvas.likes == 7)
    #expect(!notes.texts.contains { $0.contains("is lost") })
    await server.stop()
  }

  @Test("A scope whose log has lost everything is new for an app that accepts the loss")
  func lostAll() async throws {
    let notes = Notes()
    var server = try makeServer(acceptsLoss: false, notes)
    let (client, canvas) = try await fetch(from: server)
    canvas.name = "lost"
    try await client.sync(canvas.scope)
    client.close()
    await server.stop()
    let folder = try folder()
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path)
    where file != "lock" {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(file))
    }
    for round in 0..<2 {
      server = try makeServer(acceptsLoss: true, notes)
      let (client, canvas) = try await fetch(from: server)
      #expect(canvas.name == (round == 0 ? nil : "kept"))
      canvas.name = "kept"
      try await client.sync(canvas.scope)
      client.close()
      await server.stop()
    }
    #expect(notes.new == [true, true, false])
    #expect(notes.texts.count { $0.contains("is lost") } == 1)
    #expect(try LogReader(folder.path).verify().isWhole)
  }
}
