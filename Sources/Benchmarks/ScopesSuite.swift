import Foundation

let scopesSuite = Suite(
  name: "scopes", summary: "a server of 100,000 scopes on disk, which are opened on demand"
) {
  let counts = (few: 100, many: 1_000, most: 10_000)
  return [
    Row(
      name: "start of a server, beside 100,000 scopes", unit: "ms", peerName: "beside none",
      rounds: 5
    ) {
      Probes(
        ours: { ScopesStage(ScopesFolder.full).measureStart() },
        peer: { ScopesStage(ScopesFolder.empty).measureStart() })
    },
    Row(
      name: "memory of a server, beside 100,000 scopes", unit: "MiB", peerName: "beside none",
      rounds: 3
    ) {
      Probes(
        ours: { ScopesStage(ScopesFolder.full).memory(open: 0) },
        peer: { ScopesStage(ScopesFolder.empty).memory(open: 0) })
    },
  ]
    + [counts.few, counts.many, counts.most].map { count in
      Row(name: "memory of a server with \(count) open scopes", unit: "MiB", rounds: 1) {
        Probes(ours: { ScopesStage(ScopesFolder.full).memory(open: count) })
      }
    } + [
      Row(
        name: "the state of a scope that is closed, p50 of 1,000 fetches", unit: "ms", rounds: 3
      ) { Probes(ours: { ScopesStage(ScopesFolder.full).fetch(1_000, quantile: 0.5) }) },
      Row(
        name: "the state of a scope that is closed, p99 of 1,000 fetches", unit: "ms", rounds: 3
      ) { Probes(ours: { ScopesStage(ScopesFolder.full).fetch(1_000, quantile: 0.99) }) },
      Row(
        name: "scopes that 32 clients fetch and leave, of 1,000, of which 100 may be open",
        unit: "/s", rounds: 3
      ) { Probes(ours: { ScopesStage(ScopesFolder.full, open: 100).churn(1_000) }) },
    ]
}

/// The directories of scopes, which are made once.
enum ScopesFolder {
  static let count = 100_000
  static let empty: Result<TemporaryFolder, any Error> = .success(TemporaryFolder())
  /// Copies of a scope that a server has made, under other names.
  static let full: Result<TemporaryFolder, any Error> = Result { try make() }

  private static func make() throws -> TemporaryFolder {
    let folder = TemporaryFolder()
    // Static values are not released when the process ends.
    atexit { try? ScopesFolder.full.get().remove() }
    let server = try RoleProcess(["--scopes", folder.path, "1"])
    let visit = try RoleProcess(["--visit", try server.line(), "1", "make"])
    _ = try visit.line()
    visit.end()
    server.finish()
    let scopes = folder.path + "/scopes/"
    for number in 2...count {
      try FileManager.default.copyItem(atPath: scopes + "s1", toPath: scopes + "s\(number)")
    }
    return folder
  }
}

/// A server of scopes on disk and its clients, each in a process of its own.
struct ScopesStage {
  private let folder: Result<TemporaryFolder, any Error>
  /// The number of scopes that may be open.
  private let open: Int

  init(_ folder: Result<TemporaryFolder, any Error>, open: Int = 10_000) {
    (self.folder, self.open) = (folder, open)
  }

  /// Returns the milliseconds until a server listens.
  func measureStart() -> Double {
    attempt {
      let clock = ContinuousClock()
      _ = try folder.get()
      let start = clock.now
      let server = try startServer()
      defer { server.end() }
      _ = try server.line()
      return (clock.now - start) / .milliseconds(1)
    }
  }

  /// Returns the mebibytes of a server whose clients have opened scopes and left them.
  func memory(open count: Int) -> Double {
    attempt {
      let server = try startServer()
      defer { server.end() }
      let port = try server.line()
      if count > 0 { _ = try visit(port, count, "open") }
      try server.say("memory")
      let (bytes, open) = try figures(server.line())
      guard open == count else { throw RoleProblem(text: "\(open) scopes are open, not \(count)") }
      return Double(bytes) / Double(1 << 20)
    }
  }

  /// Returns a quantile of the milliseconds that a client waits for the state of a scope that is closed.
  func fetch(_ count: Int, quantile: Double) -> Double {
    attempt {
      let server = try startServer()
      defer { server.end() }
      let line = try visit(server.line(), count, "time")
      let times = line.split(separator: " ").compactMap { Double($0) }.sorted()
      guard times.count == count else { throw RoleProblem(text: line) }
      return times[Int(quantile * Double(count - 1))]
    }
  }

  /// Returns the scopes a second that clients fetch and leave, of more than may be open.
  func churn(_ count: Int) -> Double {
    attempt {
      let server = try startServer()
      defer { server.end() }
      let line = try visit(server.line(), count, "churn")
      guard let rate = Double(line) else { throw RoleProblem(text: line) }
      try server.say("most")
      let most = try server.line()
      guard let number = Int(most), number <= open else {
        throw RoleProblem(text: "\(most) scopes were open of \(open)")
      }
      return rate
    }
  }

  private func startServer() throws -> RoleProcess {
    try RoleProcess(["--scopes", folder.get().path, "\(open)"])
  }

  private func visit(_ port: String, _ count: Int, _ task: String) throws -> String {
    let process = try RoleProcess(["--visit", port, "\(count)", task])
    defer { process.end() }
    return try process.line()
  }

  private func figures(_ line: String) throws -> (Int, Int) {
    let numbers = line.split(separator: " ").compactMap { Int($0) }
    guard numbers.count == 2 else { throw RoleProblem(text: line) }
    return (numbers[0], numbers[1])
  }

  private func attempt(_ body: () throws -> Double) -> Double {
    do {
      return try body()
    } catch {
      return Row.failed("\(error)")
    }
  }
}
