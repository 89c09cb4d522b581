import Foundation

/// Returns the suite that lets clients use a server for minutes.
///
/// The server has two arenas of Glibc's allocator, as `jetstream serve` has. By default Glibc makes one for each thread that
/// allocates, up to eight for each processor, and the gaps in all of them take more than ten minutes to reach their size: the
/// resident memory creeps while the heap in use stays as it is.
///
/// - Parameters:
///   - minutes: the length of the time for which they use it.
///   - seed: the seed of all that is left to chance; nil for any.
func soakSuite(minutes: Double, seed: UInt64?) -> Suite {
  Suite(
    name: "soak",
    summary: "500 clients that join, edit, stall and vanish for ten minutes; only when it is named",
    isOnDemand: true
  ) {
    let stage = SoakStage(minutes: minutes, seed: seed ?? .random(in: 0..<1_000_000))
    return [
      stage.row("the server's memory in minute 3, median", "MiB") { $0.earlyMemory },
      stage.row("  in the last minute, median", "MiB") { $0.lateMemory },
      stage.row("  its growth", "%", bar: .figure(2)) { $0.growth },
      stage.row("the server's heap in use in minute 3, median", "MiB") { $0.earlyHeap },
      stage.row("  in the last minute, median", "MiB") { $0.lateHeap },
      stage.row("sessions after all clients have gone", "", bar: .figure(0)) { $0.sessionsLeft },
      stage.row("replicas that differ from the server's scope", "", bar: .figure(0)) {
        $0.differing
      },
      stage.row("  replicas that were compared", "") { $0.replicas },
      stage.row("clients and their scopes that are not released", "", bar: .figure(0)) {
        $0.unreleased
      },
      stage.row("change sets that were accepted", "/s") { $0.rate },
      stage.row("sessions that have begun", "") { $0.begun },
      stage.row("sessions whose credentials have expired", "") { $0.expired },
      stage.row("sessions, scopes and changes that were denied", "") { $0.denied },
    ]
  }
}

/// The result of a soak.
struct SoakOutcome {
  /// The medians of the server's memory, in mebibytes.
  var earlyMemory = 0.0
  var lateMemory = 0.0
  /// The medians of the part of its heap that is in use, in mebibytes.
  var earlyHeap = 0.0
  var lateHeap = 0.0
  var sessionsLeft = 0.0
  var differing = 0.0
  var replicas = 0.0
  /// The clients, and scopes of clients, that are not used any more and are still there.
  var unreleased = 0.0
  /// The change sets that were accepted in a second.
  var rate = 0.0
  var begun = 0.0
  var expired = 0.0
  var denied = 0.0

  /// The growth of the memory, in percent.
  var growth: Double { (lateMemory / earlyMemory - 1) * 100 }
}

/// A server and 500 clients, in a process each.
final class SoakStage {
  private static let clients = 500
  /// The number of seconds for which replicas may take to become equal, and sessions to end.
  private static let patience = 120

  private let minutes: Double
  private let seed: UInt64
  private let folder = TemporaryFolder()
  private var outcome: SoakOutcome??

  init(minutes: Double, seed: UInt64) { (self.minutes, self.seed) = (minutes, seed) }

  /// Makes a row with a figure of the result.
  func row(
    _ name: String, _ unit: String, bar: Bar? = nil,
    _ figure: @escaping (SoakOutcome) -> Double
  ) -> Row {
    Row(name: name, unit: unit, bar: bar, rounds: 1) {
      Probes(ours: { self.measure().map(figure) ?? .nan })
    }
  }

  /// Measures once, however often it is called. Returns nil if that has failed.
  private func measure() -> SoakOutcome? {
    if let outcome { return outcome }
    var made: SoakOutcome?
    do { made = try run() } catch { _ = Row.failed("\(error)") }
    outcome = .some(made)
    return made
  }

  private func run() throws -> SoakOutcome {
    Console.error("soak: \(minutes) minutes, seed \(seed)")
    let server = try RoleProcess(["--soak-serve", folder.path, "\(seed)"])
    defer { server.end() }
    let port = try server.line()
    let crowd = try RoleProcess(
      ["--soak-visit", port, "\(Self.clients)", "\(minutes * 60)", "\(seed &+ 1)"])
    defer { crowd.kill() }
    var outcome = SoakOutcome()
    let samples = try watch(server)
    let (early, late) = (samples[early(of: samples.count)], samples[late(of: samples.count)])
    (outcome.earlyMemory, outcome.lateMemory) = (early.median(\.memory), late.median(\.memory))
    (outcome.earlyHeap, outcome.lateHeap) = (early.median(\.heap), late.median(\.heap))
    outcome.rate = Double(samples.last?.accepted ?? 0) / (minutes * 60)
    let line = try crowd.line()
    guard line == "done" else { throw RoleProblem(text: line) }
    try compare(crowd, with: server, &outcome)
    try crowd.say("leave")
    _ = try crowd.line()
    crowd.kill()
    let end = try waitForEnd(of: server)
    outcome.sessionsLeft = Double(end.sessions)
    (outcome.begun, outcome.expired) = (Double(end.begun), Double(end.expired))
    outcome.denied = Double(end.denied)
    return outcome
  }

  private func figures(of server: RoleProcess) throws -> SoakFigures {
    try server.say("figures")
    return try SoakFigures(line: server.line())
  }

  /// Returns the figures of the server at each second.
  private func watch(_ server: RoleProcess) throws -> [SoakFigures] {
    let start = ContinuousClock.now
    var samples: [SoakFigures] = []
    for second in 1...Int(minutes * 60) {
      while ContinuousClock.now < start + .seconds(second) { Thread.sleep(forTimeInterval: 0.01) }
      let last = try figures(of: server)
      samples.append(last)
      guard second % 60 == 0 else { continue }
      let minute = samples.suffix(60)
      let memory = String(format: "%.1f", minute.median(\.memory))
      let heap = String(format: "%.1f", minute.median(\.heap))
      Console.error(
        "soak: minute \(second / 60): \(memory) MiB, of which \(heap) MiB of heap in use, "
          + "\(last.sessions) sessions, \(last.accepted) change sets")
    }
    return samples
  }

  /// The seconds of minute 3; of a soak of less than four minutes, the same part as that is of ten minutes.
  private func early(of count: Int) -> Range<Int> {
    minutes >= 4 ? 120..<180 : count * 2 / 10..<count * 3 / 10
  }

  /// The seconds of the last minute, or the same part.
  private func late(of count: Int) -> Range<Int> {
    (minutes >= 4 ? count - 60 : count * 9 / 10)..<count
  }

  /// Waits until the replicas are equal to the server's scopes and have nothing pending, and the clients that are not
  /// used any more are released.
  private func compare(
    _ crowd: RoleProcess, with server: RoleProcess, _ outcome: inout SoakOutcome
  ) throws {
    for _ in 0..<Self.patience {
      try server.say("digests")
      try crowd.say(server.line())
      let line = try crowd.line()
      let numbers = line.split(separator: " ").compactMap { Double($0) }
      guard numbers.count == 3 else { throw RoleProblem(text: line) }
      (outcome.replicas, outcome.differing) = (numbers[0], numbers[1])
      outcome.unreleased = numbers[2]
      if outcome.differing == 0, outcome.unreleased == 0 { return }
      Thread.sleep(forTimeInterval: 1)
    }
  }

  /// Waits until the server has no sessions.
  private func waitForEnd(of server: RoleProcess) throws -> SoakFigures {
    var last = try figures(of: server)
    for _ in 0..<Self.patience where last.sessions > 0 {
      Thread.sleep(forTimeInterval: 1)
      last = try figures(of: server)
    }
    return last
  }
}

extension ArraySlice<SoakFigures> {
  /// The median of a number of bytes, in mebibytes.
  fileprivate func median(_ bytes: (SoakFigures) -> Int) -> Double {
    Figures(map { Double(bytes($0)) / Double(1 << 20) }).median
  }
}
