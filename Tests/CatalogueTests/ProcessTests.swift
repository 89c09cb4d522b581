import Foundation
import Jetstream
import Testing

@Suite(
  "A catalogue in three processes", .live, .serialized, .timeLimit(.minutes(5)))
struct ProcessTests {
  @Test("The server and two clients end equal after 1,000 edits each")
  func edits() async throws {
    try await run(edits: 1000, cuts: 0, seed: 11)
  }

  @Test("They end equal, with nothing lost, although each client's socket is cut 20 times")
  func editsThroughCuts() async throws {
    try await run(edits: 1000, cuts: 20, seed: 21)
  }

  @Test("A server goes on serving when nobody reads what it prints any more")
  func readerIsGone() async throws {
    let (folder, data) = try Place.folder(performances: 24)
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try CatalogueProcess(["serve", "--file", data], through: "head -n 1")
    let url = try await server.expect("listening on")
    let client = try CatalogueProcess(["join", "--url", url])
    defer { client.terminate() }
    _ = try await client.expect("ready")
    _ = try await client.expect("edited")
    #expect(try await client.ask("quiet?", for: "quiet") == "0")
    try server.say("exit")
  }

  private func run(edits: Int, cuts: Int, seed: Int) async throws {
    let clock = ContinuousClock()
    let begin = clock.now
    let options = ["--edits", "\(edits)", "--wait"]
    let (folder, data) = try Place.folder(performances: 60)
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try CatalogueProcess(
      ["serve", "--file", data, "--seed", "\(seed)"] + options)
    defer { server.terminate() }
    let url = try await server.expect("listening on")
    _ = try await server.expect("ready")
    var everybody = [server]
    defer { for process in everybody { process.terminate() } }
    for at in 1...2 {
      let client = try CatalogueProcess(
        ["join", "--url", url, "--seed", "\(seed + at)", "--cut", "\(cuts)"] + options)
      everybody.append(client)
      _ = try await client.expect("ready")
    }

    for process in everybody { try process.say("go") }
    for process in everybody { #expect(try await process.expect("edited") == "\(edits)") }
    for process in everybody { #expect(try await process.ask("quiet?", for: "quiet") == "0") }

    // Once everybody has seen everybody's mark, nothing is on its way to anybody.
    var names: [String] = []
    for process in everybody { names.append(try await process.ask("mark", for: "marked")) }
    for process in everybody {
      for name in names { _ = try await process.ask("await \(name)", for: "seen") }
    }

    var states: [Data] = []
    for (process, name) in zip(everybody, names) {
      let file = folder.appendingPathComponent(name)
      let printed = try await process.ask("print \(file.path)", for: "canonical")
      let state = try Data(contentsOf: file)
      #expect(printed.hasPrefix("\(state.count) "))
      let report = try await process.ask("report", for: "report")
      if process !== server { #expect(report.hasPrefix("cuts=\(cuts) ")) }
      print("\(name): seed \(seed), \(printed), \(report)")
      states.append(state)
    }
    // Edits remove performances as well.
    #expect(states[0].count > 200_000)
    #expect(states[1] == states[0])
    #expect(states[2] == states[0])

    let journals = try Journals(canonicalJSON: states[0])
    #expect(journals.lastEdits == Dictionary(uniqueKeysWithValues: names.map { ($0, edits) }))
    for (process, name) in zip(everybody, names) {
      let noted = try await process.ask("notes", for: "notes").split(separator: " ")
      #expect(!noted.isEmpty)
      #expect(journals.notes[name] == noted.compactMap { Int64($0) }, "the notes of \(name)")
    }
    for process in everybody.reversed() { try process.say("exit") }
    print("\(names.count) x \(edits) edits, \(cuts) cuts: \(clock.now - begin)")
  }
}

/// What the processes say they have done, as the final state has it.
private struct Journals {
  var lastEdits: [String: Int] = [:]
  var notes: [String: [Int64]] = [:]

  init(canonicalJSON: Data) throws {
    let state = try JSONValue(parsing: canonicalJSON)
    let models = try #require(state["models"])
    let root = try #require(models[state["root"]?.content ?? ""]?["properties"])
    for uuid in root["journals"]?.elements ?? [] {
      let journal = try #require(models[uuid.content]?["properties"])
      let author = try #require(journal["author"]?.content)
      lastEdits[author] = journal["lastEdit"]?.number.map(Int.init)
      notes[author] = journal["notes"]?.elements.map {
        models[$0.content]?["properties"]?["edit"]?.number ?? -1
      }
    }
  }
}

extension JSONValue {
  fileprivate subscript(key: String) -> JSONValue? {
    if case .object(let object) = self { object[key] } else { nil }
  }
  fileprivate var elements: [JSONValue] { if case .array(let all) = self { all } else { [] } }
  fileprivate var content: String { if case .string(let text) = self { text } else { "" } }
  fileprivate var number: Int64? { if case .integer(let number) = self { number } else { nil } }
}
