import Foundation
import Jetstream
import Pacing
import Testing

/// Real processes, real sockets, real files, and no mercy. `JETSTREAM_STORM_SECONDS` says how long, a few
/// rounds with a small catalogue unless given; `JETSTREAM_STORM_SEED` repeats what was done to whom.
@Suite(
  "Eight clients and a server that are killed again and again", .live, .serialized,
  .timeLimit(.minutes(10)))
struct StormTests {
  private static let environment = ProcessInfo.processInfo.environment
  private let seed =
    environment["JETSTREAM_STORM_SEED"].flatMap(UInt64.init) ?? .random(in: 1...1_000_000)
  private let seconds = environment["JETSTREAM_STORM_SECONDS"].flatMap(Double.init)

  @Test("They end byte-equal, nothing is lost that was kept, nothing counts twice")
  func storm() async throws {
    let (folder, data) = try Place.folder(performances: seconds == nil ? 24 : 240)
    defer { try? FileManager.default.removeItem(at: folder) }
    let storm = try await Storm(
      folder: folder, data: data, seed: seed, pause: seconds == nil ? 250 : 80)
    defer { storm.end() }
    let clock = ContinuousClock()
    let end = clock.now + .seconds(seconds ?? 0)
    var rounds = 0
    while seconds == nil ? rounds < 6 : clock.now < end || rounds < Storm.Strike.turns.count {
      try await storm.strike()
      rounds += 1
    }
    #expect(storm.strikes.count == Storm.Strike.allCases.count, "seed \(seed)")
    let states = try await storm.settle()
    for (name, state) in states.dropFirst() {
      #expect(state == states[0].state, "\(name) differs from the server, seed \(seed)")
    }
    let tally = try Tally(canonicalJSON: states[0].state)
    #expect(tally.edits == tally.lastEdits.values.reduce(0, +), "seed \(seed)")
    for (name, count) in storm.kept where count > 0 {
      #expect(tally.lastEdits[name] ?? 0 >= count, "edits of \(name), seed \(seed)")
    }
    print(
      "storm, seed \(seed): \(rounds) strikes (\(storm.strikes)), \(tally.edits) edits of "
        + "\(tally.lastEdits.count) processes, \(states[0].state.count) bytes")
  }
}

/// The processes, and what is done to them.
private final class Storm {
  /// What happens to them.
  enum Strike: String, CaseIterable {
    case killsClient = "clients killed"
    case cutsConnections = "connections cut"
    case killsServer = "servers killed"

    /// Each kind comes among the first few of these, and as often as it is here.
    static let turns: [Strike] = [
      .killsClient, .cutsConnections, .killsServer, .killsClient, .cutsConnections, .killsClient,
      .killsServer, .killsClient, .cutsConnections, .killsClient,
    ]
  }

  private(set) var strikes: [String: Int] = [:]
  private var turn: Int
  /// How many edits each process has said to have kept.
  private(set) var kept: [String: Int] = [:]
  private var server: CatalogueProcess
  private var clients: [(name: String, process: CatalogueProcess)] = []
  private let folder: URL
  private let url: String
  private let port = "\(keptPort())"
  private var incarnations = 0
  private var random: SeededChoices
  /// How many milliseconds a client waits between edits.
  private let pause: Int

  init(folder: URL, data: String, seed: UInt64, pause: Int) async throws {
    self.folder = folder
    self.pause = pause
    random = SeededChoices(state: seed)
    turn = random.next(below: Strike.turns.count)
    server = try CatalogueProcess(
      [
        "serve", "--file", data, "--log", folder.appendingPathComponent("server").path,
        "--port", port, "--wait",
      ])
    url = try await server.expect("listening on")
    _ = try await server.expect("ready")
    for at in 0..<8 { clients.append(try await start(at)) }
  }

  /// A process that goes on from what the one before it has left in its folder.
  private func start(_ at: Int) async throws -> (name: String, process: CatalogueProcess) {
    incarnations += 1
    let name = "client\(at)-\(incarnations)"
    let process = try CatalogueProcess([
      "join", "--url", url, "--log", folder.appendingPathComponent("client\(at)").path,
      "--name", name, "--seed", "\(random.next(below: 1 << 30))", "--edits", "1000000",
      "--pause", "\(pause)", "--wait",
    ])
    _ = try await process.expect("ready")
    try process.say("go")
    return (name, process)
  }

  func strike() async throws {
    let at = random.next(below: clients.count)
    let strike = Strike.turns[turn % Strike.turns.count]
    turn += 1
    strikes[strike.rawValue, default: 0] += 1
    switch strike {
    case .killsClient:
      try await noteKept(at)
      await clients[at].process.kill()
      clients[at] = try await start(at)
    case .cutsConnections:
      for client in clients where random.next(below: 2) == 0 { try client.process.say("cut") }
      try await noteKept(at)
    case .killsServer:
      await server.kill()
      try await noteKept(at)
      // Some go on without a server, and one is killed meanwhile.
      await clients[at].process.kill()
      clients[at] = try await start(at)
      server = try CatalogueProcess([
        "serve", "--log", folder.appendingPathComponent("server").path, "--port", port,
        "--wait",
      ])
      _ = try await server.expect("listening on")
      _ = try await server.expect("ready")
    }
  }

  private func noteKept(_ at: Int) async throws {
    kept[clients[at].name] = Int(try await clients[at].process.ask("kept?", for: "kept"))
  }

  /// Lets everybody finish. Gives what everybody has in the end, the server first.
  func settle() async throws -> [(name: String, state: Data)] {
    for at in clients.indices {
      try await noteKept(at)
      try clients[at].process.say("stop")
      _ = try await clients[at].process.expect("edited")
    }
    for (name, process) in clients {
      #expect(try await process.ask("quiet?", for: "quiet") == "0", "\(name)")
    }
    for (_, process) in clients { _ = try await process.ask("mark", for: "marked") }
    var states: [(String, Data)] = []
    for (name, process) in [("server", server)] + clients {
      for (other, _) in clients { _ = try await process.ask("await \(other)", for: "seen") }
      let file = folder.appendingPathComponent("\(name).json")
      _ = try await process.ask("print \(file.path)", for: "canonical")
      states.append((name, try Data(contentsOf: file)))
    }
    return states
  }

  func end() {
    for (_, process) in clients { process.abandon() }
    server.abandon()
  }
}

/// What the final state says was done.
struct Tally {
  /// What everybody has counted together.
  var edits = 0
  /// What each process has noted of itself.
  var lastEdits: [String: Int] = [:]

  init(canonicalJSON: Data) throws {
    let state = try JSONSerialization.jsonObject(with: canonicalJSON) as? [String: Any]
    let models = try #require(state?["models"] as? [String: [String: Any]])
    let root = try #require(
      models[state?["root"] as? String ?? ""]?["properties"] as? [String: Any])
    edits = try #require(root["edits"] as? Int)
    for uuid in root["journals"] as? [String] ?? [] {
      let journal = try #require(models[uuid]?["properties"] as? [String: Any])
      let author = try #require(journal["author"] as? String)
      #expect(lastEdits[author] == nil, "\(author) has two journals")
      lastEdits[author] = journal["lastEdit"] as? Int
    }
  }
}

/// The same choices for the same seed.
struct SeededChoices {
  var state: UInt64

  mutating func next(below count: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) % UInt64(count))
  }
}
