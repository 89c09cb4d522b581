import Foundation
import Pacing
import Testing

@Suite(
  "A server that has the catalogue's schema, and none of its classes", .live, .serialized,
  .timeLimit(.minutes(5)))
struct SchemaServerTests {
  @Test(
    "It serves clients that have the classes, over a restart and with the log of a server that had them"
  )
  func restart() async throws {
    let (folder, sample) = try Place.folder(performances: 24)
    defer { try? FileManager.default.removeItem(at: folder) }
    // The real data takes half a minute beside other suites.
    let isWhole = ProcessInfo.processInfo.environment["JETSTREAM_DATA"] != nil
    let data = isWhole ? Place.realData ?? sample : sample
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
    let written = try await runCatalogue(["schema"])
    try #require(written.status == 0, "\(written.errors)")
    try written.lines.joined().write(toFile: path("schema.json"), atomically: true, encoding: .utf8)

    // A server with classes begins the log.
    let first = try CatalogueProcess(["serve", "--file", data, "--log", path("server")])
    _ = try await first.expect("listening on")
    _ = try await first.expect("ready")
    let imported = try await first.ask("print", for: "canonical")
    // The next one cannot have the log before this one is gone.
    await first.kill()

    let serving = [path("schema.json"), "Catalogue", path("server"), "\(keptPort())"]
    var server = try CatalogueProcess(serving, of: "SchemaServer")
    defer { server.terminate() }
    let url = try await server.expect("listening on")
    var clients: [CatalogueProcess] = []
    defer { for client in clients { client.terminate() } }
    for seed in 1...2 {
      clients.append(
        try CatalogueProcess(
          ["join", "--url", url, "--edits", "60", "--seed", "\(seed)", "--wait"]))
      _ = try await clients[seed - 1].expect("ready")
      #expect(try await clients[seed - 1].ask("print", for: "canonical") == imported)
    }
    for client in clients { try client.say("go") }
    _ = try await clients[0].expect("edited")
    await server.kill()
    server = try CatalogueProcess(serving, of: "SchemaServer")
    _ = try await server.expect("listening on")
    _ = try await clients[1].expect("edited")

    for client in clients { #expect(try await client.ask("quiet?", for: "quiet") == "0") }
    var names: [String] = []
    for client in clients { names.append(try await client.ask("mark", for: "marked")) }
    var states: [String] = []
    for client in clients {
      for name in names { _ = try await client.ask("await \(name)", for: "seen") }
      states.append(try await client.ask("print", for: "canonical"))
    }
    // One that comes later gets everything from the server.
    let late = try CatalogueProcess(["join", "--url", url, "--wait"])
    defer { late.terminate() }
    _ = try await late.expect("ready")
    for name in names { _ = try await late.ask("await \(name)", for: "seen") }
    states.append(try await late.ask("print", for: "canonical"))
    #expect(states[0] == states[1] && states[0] == states[2])
    #expect(states[0] != imported)
    server.terminate()
  }

  @Test("It says what is wrong with a schema, and where")
  func wrongSchema() async throws {
    let (folder, _) = try Place.folder(performances: 1)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("schema.json")
    try Data(
      #"{"version":1,"root":"A","classes":[{"name":"A","properties":[{"name":"x","type":"Itn"}]}]}"#
        .utf8
    ).write(to: file)
    let result = try await run("SchemaServer", [file.path, "A", folder.path + "/log", "0"])
    #expect(result.status == 1)
    #expect(
      result.errors == "SchemaServer: classes[0].properties[0].type is \"Itn\", which is no type.\n"
    )
  }
}
