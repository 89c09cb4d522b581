import Foundation

let attackSuite = Suite(
  name: "attacks", summary: "an edit beside peers that mean harm, and the server's memory"
) {
  var rows: [Row] = [
    Row(name: "an edit of 20,000 models until it is accepted, p99", unit: "ms", rounds: 1) {
      Probes(ours: { AttackStage(nil).measure().slowest })
    }
  ]
  for attack in Attack.allCases {
    let stage = AttackStage(attack)
    rows += [
      Row(name: "beside \(attack.summary)", unit: "ms", bar: .most(20), rounds: 1) {
        Probes(ours: { stage.measure().slowest })
      },
      Row(name: "  the server's peak memory", unit: "MiB", rounds: 1) {
        Probes(ours: { stage.measure().memory })
      },
    ]
  }
  let count = Attack.halfOpenCount
  rows.append(
    Row(
      name: "memory of a half-open connection, of 15,000", unit: "bytes", bar: .most(2048),
      rounds: 1
    ) {
      Probes(ours: {
        ServerStage(scopes: 1, models: 10).memory(.halfOpen(count)) / Double(count)
      })
    })
  return rows
}

/// An attack that a peer makes on a server, over and over.
enum Attack: String, CaseIterable {
  case fetches, fetchFrames, largeFrames, resends, differences, absent, sessions, halfOpen
  case denied, deniedDeletions, deniedAdditions, additions

  /// The number of connections of ``halfOpen``.
  static let halfOpenCount = 15_000
  /// The memory that the server of ``additions`` may have beyond what it begins with, in bytes.
  static let spareMemory = 64 << 20

  var summary: String {
    switch self {
    case .fetches: "frames of 1,000 fetches of the scope"
    case .fetchFrames: "1,000 frames with a fetch of the scope each"
    case .largeFrames: "frames of 14 MiB without a session"
    case .resends: "frames of 20,000 requests to resend"
    case .differences: "frames of 4 MiB of differences"
    case .absent: "5,000 sessions that have gone away"
    case .sessions: "sessions that are made and left"
    case .halfOpen: "15,000 half-open connections"
    case .denied: "frames of 1,000 change sets that a rule denies"
    case .deniedDeletions: "deletions of 20,000 models that a rule denies"
    case .deniedAdditions: "change sets of 20,000 additions that a rule denies"
    case .additions: "additions beyond the server's memory"
    }
  }
}

/// A server, a client that edits every 20 milliseconds, and an attacker with the lowest priority, each in a process
/// of its own but for the client.
final class AttackStage {
  /// The result of a measurement.
  struct Outcome {
    /// The 99th percentile of the time that an edit takes until the server has accepted it, in milliseconds.
    let slowest: Double
    /// The most memory that the server's process has had, in mebibytes.
    let memory: Double
  }

  private let attack: Attack?
  private var outcome: Outcome?

  init(_ attack: Attack?) { self.attack = attack }

  /// Measures once, however often it is called.
  func measure() -> Outcome {
    if let outcome { return outcome }
    let made = run()
    outcome = made
    return made
  }

  private func run() -> Outcome {
    do {
      // Each of the sessions that go away has fetched the scope.
      let server = try RoleProcess([
        "--serve", attack == .absent ? "500" : "20000", attack == .additions ? "little" : "enough",
      ])
      defer { server.end() }
      guard let port = UInt16(try server.line()) else {
        throw RoleProblem(text: "the server has no port")
      }
      let editor = AttackedEditor()
      try wait { try await editor.join(port) }
      var attacker: RoleProcess?
      if let attack {
        attacker = try RoleProcess(["--attack", attack.rawValue, "\(port)"])
        _ = try attacker?.line()
      }
      defer { attacker?.end() }
      let times = try wait { try await editor.edit(400) }.sorted()
      try server.say("peak")
      let memory = Double(try server.line()) ?? .nan
      if attack == .additions {
        try server.say("bounded")
        guard try server.line() == "yes" else {
          throw RoleProblem(text: "the server's memory was not bounded")
        }
      }
      return Outcome(slowest: times[times.count * 99 / 100], memory: memory)
    } catch {
      let figure = Row.failed("\(error)")
      return Outcome(slowest: figure, memory: figure)
    }
  }

  private func wait<Value: Sendable>(
    for body: @escaping @Sendable () async throws -> Value
  ) throws -> Value {
    let done = DispatchSemaphore(value: 0)
    let box = Box<Value>()
    Task {
      do { box.result = .success(try await body()) } catch { box.result = .failure(error) }
      done.signal()
    }
    done.wait()
    return try box.result!.get()
  }

  /// Sound as unchecked: it is written before the semaphore is signalled, and read after that.
  private final class Box<Value>: @unchecked Sendable {
    var result: Result<Value, any Error>?
  }
}
