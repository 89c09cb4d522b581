import Foundation
import Testing

/// A server that opens its room on demand, and three clients with logs, of which one begins without a server: killed
/// at random moments, `JETSTREAM_KILLS` times, a few and with a small catalogue unless given. `JETSTREAM_KILL_SEED`
/// repeats the choices.
@Suite(
  "Processes with logs that are killed while they edit", .live, .serialized,
  .timeLimit(.minutes(15)))
struct KillTests {
  private static let environment = ProcessInfo.processInfo.environment
  private let kills = environment["JETSTREAM_KILLS"].flatMap(Int.init)
  private let seed =
    environment["JETSTREAM_KILL_SEED"].flatMap(UInt64.init) ?? .random(in: 1...1_000_000)

  @Test(
    "Nothing accepted is lost, nothing counts twice, and what was in a change set is there after the restart"
  )
  func kill() async throws {
    let (folder, data) = try Place.folder(performances: kills == nil ? 24 : 240)
    defer { try? FileManager.default.removeItem(at: folder) }
    let group = try await Group(folder: folder, data: data, seed: seed)
    defer { group.end() }
    for _ in 0..<(kills ?? 6) { try await group.killOne() }
    let states = try await group.settle()
    for (name, state) in states.dropFirst() {
      #expect(state == states[0].state, "\(name) differs from the server, seed \(seed)")
    }
    let tally = try Tally(canonicalJSON: states[0].state)
    // What was there after a restart is what its process had made, no more and no less.
    for (name, count) in group.counts where count > 0 {
      #expect(tally.lastEdits[name] == count, "edits of \(name), seed \(seed)")
    }
    #expect(tally.edits == group.counts.values.reduce(0, +), "seed \(seed)")
    for loss in group.losses {
      #expect(loss.missingSealed <= 0, "edits of \(loss.name) in change sets, seed \(seed)")
    }
    let missing = group.losses.map(\.missing)
    let ages = group.losses.compactMap(\.oldest).map { $0 * 1000 }.sorted()
    print(
      "kills, seed \(seed): \(group.losses.count) of clients, \(group.serverKills) of the server, "
        + "\(tally.edits) edits; shown and missing: \(missing.reduce(0, +)) edits after "
        + "\(ages.count) of the kills, at most \(missing.max() ?? 0); the oldest of each were shown "
        + "\(ages.map { String(format: "%.1f", $0) }) ms before")
  }
}

/// The processes, and what is done to them.
private final class Group {
  /// What a client had shown when it was killed, and did not show after its restart.
  struct Loss {
    let name: String
    let missing: Int
    /// How many of them were in a change set that was pending. Negative if there was more.
    let missingSealed: Int
    /// How long before the kill the oldest of them was shown, in seconds.
    let oldest: TimeInterval?
  }

  private(set) var losses: [Loss] = []
  private(set) var serverKills = 0
  /// How many edits each process has made that counts.
  private(set) var counts: [String: Int] = [:]
  private var server: CatalogueProcess
  private var clients: [(name: String, process: CatalogueProcess)] = []
  private let folder: URL
  private let url: String
  private let snapshotEvery = 100
  private let serving: [String]
  private var incarnations = 0
  private var random: SeededChoices

  init(folder: URL, data: String, seed: UInt64) async throws {
    self.folder = folder
    random = SeededChoices(state: seed)
    serving = [
      "serve", "--file", data, "--log", folder.appendingPathComponent("server").path,
      "--snapshot-every", "\(snapshotEvery)", "--on-demand", "--wait",
    ]
    server = try CatalogueProcess(serving)
    url = try await server.expect("listening on")
    _ = try await server.expect("ready")
    // The first client edits a room that nobody has ever fetched, without a server.
    server.murder()
    clients.append(try await start(0))
    try clients[0].process.say("go")
    try await clients[0].process.awaitAsides(20)
    try await startServer()
    for at in 1..<3 {
      clients.append(try await start(at))
      try clients[at].process.say("go")
    }
  }

  /// A process that goes on from what the one before it has left in its folder.
  private func start(_ at: Int) async throws -> (name: String, process: CatalogueProcess) {
    incarnations += 1
    let name = "client\(at)-\(incarnations)"
    let process = try CatalogueProcess([
      "join", "--url", url, "--log", folder.appendingPathComponent("client\(at)").path,
      "--name", name, "--seed", "\(random.next(below: 1 << 30))", "--edits", "1000000",
      "--snapshot-every", "\(snapshotEvery)", "--pause", "\(10 + random.next(below: 40))", "--wait",
      "--tell",
    ])
    process.asideWords = ["shown", "sealed"]
    _ = try await process.expect("ready")
    return (name, process)
  }

  func killOne() async throws {
    if random.next(below: 4) == 0 { return try await killServer() }
    let at = random.next(below: clients.count)
    let (name, process) = clients[at]
    try await process.awaitAsides(random.next(below: 60))
    // Not right behind a line.
    let moment = ContinuousClock.now + .microseconds(random.next(below: 12_000))
    while ContinuousClock.now < moment {}
    let time = Date().timeIntervalSince1970
    process.murder()
    let told = await process.takeAsides().map { $0.split(separator: " ") }
    clients[at] = try await start(at)
    let found = Int(try await clients[at].process.ask("last \(name)", for: "last")) ?? 0
    counts[name] = found
    let shown = told.compactMap { $0.count == 3 ? (Int($0[1]) ?? 0, Double($0[2]) ?? 0) : nil }
    let sealed = told.compactMap { $0.count == 2 ? Int($0[1]) : nil }.max() ?? 0
    let oldest = shown.first { $0.0 > found }.map { max(0, time - $0.1) }
    losses.append(
      Loss(
        name: name, missing: max(0, (shown.last?.0 ?? 0) - found), missingSealed: sealed - found,
        oldest: oldest))
    try clients[at].process.say("go")
  }

  private func killServer() async throws {
    serverKills += 1
    server.murder()
    // The clients go on without it for a while.
    try await clients[random.next(below: clients.count)].process.awaitAsides(
      random.next(below: 40))
    try await startServer()
  }

  /// A server that refuses the room for now, until it has opened it.
  private func startServer() async throws {
    let port = url.split(separator: ":").last.map(String.init) ?? ""
    server = try CatalogueProcess(serving + ["--port", port])
    _ = try await server.expect("listening on")
    _ = try await server.expect("ready")
  }

  /// Lets all processes finish. Gives what each has in the end, the server first.
  func settle() async throws -> [(name: String, state: Data)] {
    for (name, process) in clients {
      try process.say("stop")
      counts[name] = Int(try await process.expect("edited"))
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
    for (_, process) in clients { process.murder() }
    server.murder()
  }
}
