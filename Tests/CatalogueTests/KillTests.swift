import Foundation
import Pacing
import Testing

/// A server that opens its rooms on demand, each with a log, and three clients that edit all of them with logs, of which
/// one begins without a server: killed at random moments, `JETSTREAM_KILLS` times, a few and with a small catalogue unless given. `JETSTREAM_KILL_SEED`
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
    var edits = 0
    try await group.stop()
    for room in Group.rooms {
      let states = try await group.settle(room)
      for (name, state) in states.dropFirst() {
        #expect(
          state == states[0].state, "\(name) differs from the server in \(room), seed \(seed)")
      }
      let tally = try Tally(canonicalJSON: states[0].state)
      // What was there after a restart is what its process had made, no more and no less.
      let counts = group.counts[room] ?? [:]
      for (name, count) in counts where count > 0 {
        #expect(tally.lastEdits[name] == count, "edits of \(name) in \(room), seed \(seed)")
      }
      #expect(tally.edits == counts.values.reduce(0, +), "\(room), seed \(seed)")
      edits += tally.edits
    }
    for loss in group.losses {
      #expect(
        loss.missingSealed <= 0,
        "edits of \(loss.name) in change sets of \(loss.room), seed \(seed)")
    }
    let missing = group.losses.map(\.missing)
    let ages = group.losses.compactMap(\.oldest).map { String(format: "%.1f", $0 * 1000) }
    print(
      "kills, seed \(seed): \(group.clientKills) of clients with \(Group.rooms.count) rooms each, "
        + "\(group.serverKills) of the server, \(edits) edits; shown and missing: \(missing.reduce(0, +)) edits "
        + "\(ages.count) times, at most \(missing.max() ?? 0); the oldest of each were shown \(ages) ms before"
    )
  }
}

/// The processes, and what is done to them.
private final class Group {
  /// What a client had shown of a room when it was killed, and did not show after its restart.
  struct Loss {
    let room: String
    let name: String
    let missing: Int
    /// How many of them were in a change set that was pending. Negative if there was more.
    let missingSealed: Int
    /// How long before the kill the oldest of them was shown, in seconds.
    let oldest: TimeInterval?
  }

  static let rooms = ["Opera", "Jazz", "Folk"]

  private(set) var losses: [Loss] = []
  private(set) var clientKills = 0
  private(set) var serverKills = 0
  /// How many edits each process has made in each room that count, by room and process.
  private(set) var counts: [String: [String: Int]] = [:]
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
    serving =
      [
        "serve", "--file", data, "--log", folder.appendingPathComponent("server").path,
        "--snapshot-every", "\(snapshotEvery)", "--on-demand", "--wait", "--port",
        "\(keptPort())",
      ] + Self.naming
    server = try CatalogueProcess(serving)
    url = try await server.expect("listening on")
    _ = try await server.expect("ready")
    // The first client edits rooms that nobody has ever fetched, without a server.
    await server.kill()
    clients.append(try await start(0))
    try go(0)
    try await clients[0].process.awaitAsides(60)
    try await startServer()
    for at in 1..<3 {
      clients.append(try await start(at))
      try go(at)
    }
  }

  private static let naming = rooms.flatMap { ["--room", $0] }

  private func go(_ at: Int) throws {
    for room in Self.rooms { try clients[at].process.say("\(room) go") }
  }

  /// A process that goes on from what the one before it has left in its folder.
  private func start(_ at: Int) async throws -> (name: String, process: CatalogueProcess) {
    incarnations += 1
    let name = "client\(at)-\(incarnations)"
    let process = try CatalogueProcess(
      [
        "join", "--url", url, "--log", folder.appendingPathComponent("client\(at)").path,
        "--name", name, "--seed", "\(random.next(below: 1 << 30))", "--edits", "1000000",
        "--snapshot-every", "\(snapshotEvery)", "--pause", "\(30 + random.next(below: 120))",
        "--wait",
        "--tell",
      ] + Self.naming)
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
    await process.kill()
    clientKills += 1
    let told = await process.takeAsides().map { $0.split(separator: " ") }
    clients[at] = try await start(at)
    for room in Self.rooms {
      let found =
        Int(
          try await clients[at].process.ask("\(room) last \(name)", for: "\(room) last")) ?? 0
      counts[room, default: [:]][name] = found
      let own = told.filter { $0[0] == room }
      let shown = own.compactMap { $0.count == 4 ? (Int($0[2]) ?? 0, Double($0[3]) ?? 0) : nil }
      let sealed = own.compactMap { $0.count == 3 ? Int($0[2]) : nil }.max() ?? 0
      let oldest = shown.first { $0.0 > found }.map { max(0, time - $0.1) }
      losses.append(
        Loss(
          room: room, name: name, missing: max(0, (shown.last?.0 ?? 0) - found),
          missingSealed: sealed - found, oldest: oldest))
    }
    try go(at)
  }

  private func killServer() async throws {
    serverKills += 1
    await server.kill()
    // The clients go on without it for a while.
    try await clients[random.next(below: clients.count)].process.awaitAsides(
      random.next(below: 40))
    try await startServer()
  }

  /// A server that refuses each room for now, until it has opened it.
  private func startServer() async throws {
    server = try CatalogueProcess(serving)
    _ = try await server.expect("listening on")
    _ = try await server.expect("ready")
  }

  /// Lets all clients finish.
  func stop() async throws {
    for (name, process) in clients {
      for room in Self.rooms {
        let edited = try await process.ask("\(room) stop", for: "\(room) edited")
        counts[room, default: [:]][name] = Int(edited)
        #expect(try await process.ask("\(room) quiet?", for: "\(room) quiet") == "0", "\(name)")
      }
    }
  }

  /// Gives what each process has of a room in the end, the server first.
  func settle(_ room: String) async throws -> [(name: String, state: Data)] {
    for (_, process) in clients {
      _ = try await process.ask("\(room) mark", for: "\(room) marked")
    }
    var states: [(String, Data)] = []
    for (name, process) in [("server", server)] + clients {
      for (other, _) in clients {
        _ = try await process.ask("\(room) await \(other)", for: "\(room) seen")
      }
      let file = folder.appendingPathComponent("\(name)-\(room).json")
      _ = try await process.ask("\(room) print \(file.path)", for: "\(room) canonical")
      states.append((name, try Data(contentsOf: file)))
    }
    return states
  }

  func end() {
    for (_, process) in clients { process.abandon() }
    server.abandon()
  }
}
