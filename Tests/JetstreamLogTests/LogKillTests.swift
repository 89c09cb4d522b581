import Foundation
import Testing

@testable import Jetstream

/// What the process writes.
private final class Journal: ModelObject {
  @Property var count = 0
  @Property var text = ""
  @Property var entries: ModelArray<Entry> = []
}

private final class Entry: ModelObject {
  @Property var number = 0
}

/// A process that edits, logs and acknowledges is killed: `JETSTREAM_LOG_KILLS` times.
@Suite("A killed process", .serialized, .timeLimit(.minutes(30)))
struct LogKillTests {
  @Test("The log holds what was acknowledged, perhaps one append more, never half of one (M1)")
  func kills() async throws {
    let kills = count("JETSTREAM_LOG_KILLS", default: 20)
    var random = SeededGenerator(seed: 1)
    let modes = ["every", "interval", "none"]
    var total = Totals()
    for (number, mode) in modes.enumerated() {
      let directory = try TemporaryDirectory()
      var last = 0
      for round in 0..<max(kills * (number == 0 ? 8 : 1) / 10, 1) {
        let child = try LogProcess(
          "LogWriter", [directory.path, mode, "\(number * 100_000 + round)"])
        defer { child.kill() }
        #expect(try await child.line() == "open \(last)", "round \(round)")
        var acknowledged = last
        for _ in 0..<Int.random(in: 0...60, using: &random) {
          acknowledged = try #require(await child.line().flatMap { Int($0) })
        }
        // A moment more, that no line marks.
        var spin = Int.random(in: 0...200_000, using: &random)
        while spin > 0 { spin -= 1 }
        child.kill()
        acknowledged = try await child.finish().lines.last.flatMap { Int($0) } ?? acknowledged

        let found = try await restored(directory.path, &total)
        #expect(
          (acknowledged...(acknowledged + 3)).contains(found),
          "\(mode), round \(round): \(acknowledged) were acknowledged, \(found) are there")
        total.more += found - acknowledged
        total.kills += 1
        last = found
      }
      total.edits += last
    }
    print("\(total)")
    #expect(total.kills >= 3)
  }

  private struct Totals {
    var kills = 0
    var edits = 0
    var torn = 0
    var snapshots = 0
    /// Edits that were there but not acknowledged.
    var more = 0
  }

  /// How many edits the log holds, all of them whole.
  private func restored(_ path: String, _ total: inout Totals) async throws -> Int {
    let verification = try LogReader(path).verify()
    #expect(verification.isWhole)
    if verification.tornBytes > 0 { total.torn += 1 }
    total.snapshots = max(total.snapshots, verification.snapshots.last ?? 0)
    let journal = Journal()
    let scope = Scope(name: "Journal", root: journal, ticker: .manual())
    let log = try FragmentLog(path)
    #expect(log.records.opening.tornBytes == verification.tornBytes)
    let restored = try await log.restore(into: scope)
    #expect(restored.misfits.isEmpty)
    // Each edit is one set with two parts.
    #expect(restored.sequence == journal.count)
    #expect(journal.entries.last?.number ?? 0 == journal.count)
    #expect(
      journal.entries.map(\.number).suffix(2)
        == [journal.count - 1, journal.count].suffix(journal.entries.count)[...])
    try await log.close()
    return journal.count
  }

  @Test("Another process cannot open a log that is open, and can once its writer is gone")
  func lock() async throws {
    let directory = try TemporaryDirectory()
    let child = try LogProcess("LogWriter", [directory.path, "lock", "1"])
    defer { child.kill() }
    #expect(try await child.line() == "open 0")
    #expect(throws: LogError.inUse(path: directory.path)) { try FragmentLog(directory.path) }
    // Reading is free.
    #expect(try LogReader(directory.path).verify().isWhole)
    child.kill()
    _ = try await child.finish()
    let log = try FragmentLog(directory.path)
    let other = try LogProcess("LogWriter", [directory.path, "lock", "1"])
    defer { other.kill() }
    let end = try await other.finish()
    #expect(end.status == 1 && end.lines.isEmpty)
    #expect(end.errors.contains("is open for writing already"), "\(end.errors)")
    try await log.close()
  }
}
