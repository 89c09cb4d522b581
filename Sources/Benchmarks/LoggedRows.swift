import Foundation
import Jetstream
import JetstreamServer

/// The rows of a server that keeps a log.
var loggedRows: [Row] {
  [
    Row(
      name: "edits of 1 writer, 64 in flight, with a log", unit: "/s",
      peerName: "write + fdatasync, groups of that size", bar: .leastRatio(0.8), rounds: 5
    ) {
      let groups = Groups()
      return Probes(
        ours: {
          groups.folder = TemporaryFolder()
          return ServerStage(scopes: 1, models: 256, folder: groups.folder.path).measure(
            .eagerWriter)
        }, peer: { groups.writePlainly() })
    },
    Row(
      name: "edits lost or doubled, of 16 writers, the server killed 50 times", unit: "",
      bar: .most(0), rounds: 1
    ) {
      Probes(ours: {
        let folder = TemporaryFolder()
        do {
          let killer = try RoleProcess(["--killer", "50", "16", folder.path])
          defer { killer.end() }
          let line = try killer.line()
          return Double(line) ?? Row.failed(line)
        } catch {
          return Row.failed("\(error)")
        }
      })
    },
  ]
}

/// The groups in which a server has made its records durable.
private final class Groups {
  /// The folder of the server that ran last.
  var folder = TemporaryFolder()

  /// Writes lines as long as those of the log, syncs after as many of them as the log did on average, and returns the
  /// number of lines a second. Call it while the folder has a log.
  func writePlainly() -> Double {
    do {
      let (lines, bytes, syncs) = try read()
      guard lines > 0, syncs > 0 else { return Row.failed("the log is empty") }
      let size = max(1, lines / syncs)
      let group = [UInt8](repeating: 0x20, count: size * bytes / lines)
      let file = open(folder.path + "/plain", O_CREAT | O_TRUNC | O_WRONLY, 0o600)
      guard file >= 0 else { return Row.failed("no file in \(folder.path)") }
      defer { close(file) }
      let clock = ContinuousClock()
      let start = clock.now
      var count = 0
      while clock.now < start + .seconds(1) {
        guard write(file, group, group.count) == group.count, DiskSync.data(of: file) else {
          return Row.failed("cannot write in \(folder.path)")
        }
        count += size
      }
      return Double(count) / (start.duration(to: clock.now) / .seconds(1))
    } catch {
      return Row.failed("\(error)")
    }
  }

  /// Returns the number of lines in the log and their bytes, and how often it was synced: each line says up to which
  /// record that was done.
  private func read() throws -> (lines: Int, bytes: Int, syncs: Int) {
    var (lines, bytes) = (0, 0)
    var synced: Set<Substring> = []
    let log = folder.path + "/0"
    for name in try FileManager.default.contentsOfDirectory(atPath: log)
    where name.hasPrefix("log-") {
      let text = try String(contentsOfFile: log + "/" + name, encoding: .utf8)
      for line in text.split(separator: "\n") {
        (lines, bytes) = (lines + 1, bytes + line.utf8.count + 1)
        if let place = line.range(of: #""synced":"#) {
          synced.insert(line[place.upperBound...].prefix { $0.isNumber })
        }
      }
    }
    return (lines, bytes, synced.count)
  }
}

/// A role: starts a server with a log, kills it under the load of many writers, again and again, and looks into the log.
struct Killer {
  let folder: String

  /// A writer over all lives of the server.
  private struct Writer: Sendable {
    let client = UUID()
    /// The number of its edits that were acknowledged.
    var acknowledged = 0
  }

  /// Returns the number of edits that were acknowledged and are not in the log, or that are in it more than once.
  func run(_ kills: Int, _ count: Int) async throws -> Int {
    var writers = (0..<count).map { _ in Writer() }
    var lost = 0
    for kill in 0...kills {
      let server = try RoleProcess(["--host", "1", "256", folder])
      defer { server.kill() }
      guard let port = UInt16(try server.line()) else { throw RoleProblem(text: "no server") }
      // The last server is only asked what it knows.
      let goal = kill == kills ? 0 : 1_000 + 97 * kill
      let meter = Meter(goal: goal * count / 16)
      try await withThrowingTaskGroup(of: (Int, Writer, Int)?.self) { group in
        for (number, writer) in writers.enumerated() {
          group.addTask {
            let peer = try await LoadPeer(port, as: writer.client)
            try await peer.join(0)
            var next = writer
            let lost = max(0, writer.acknowledged - peer.answered)
            next.acknowledged = max(next.acknowledged, peer.answered)
            // The connection ends with the server.
            while goal > 0, (try? await Self.write(peer, number, meter)) != nil {
              next.acknowledged = max(next.acknowledged, peer.answered)
            }
            next.acknowledged = max(next.acknowledged, peer.answered)
            return (number, next, lost)
          }
        }
        if goal > 0 {
          // Without a kill, the writers end only if the server does.
          group.addTask {
            await meter.reached()
            return nil
          }
        }
        for try await result in group {
          guard let (number, writer, missing) = result else {
            server.kill()
            continue
          }
          await meter.end()
          writers[number] = writer
          lost += missing
        }
        guard await meter.isReached || goal == 0 else {
          throw RoleProblem(text: "a server has ended by itself")
        }
      }
    }
    return lost + (try countFaults(writers))
  }

  private static func write(_ peer: LoadPeer, _ number: Int, _ meter: Meter) async throws {
    while peer.inFlight < 64 { try peer.edit(number) }
    let before = peer.answered
    try await peer.take()
    await meter.add(peer.answered - before)
  }

  private func countFaults(_ writers: [Writer]) throws -> Int {
    var faults = 0
    var numbers: [String: Set<Int64>] = [:]
    var cursor = try LogReader(folder + "/0").read(from: 1)
    while let record = try cursor.next() {
      guard case .object(let object) = try JSONValue(parsing: record.payload),
        case .object(let decision)? = object["decision"],
        case .string(let client)? = decision["client"],
        case .integer(let number)? = decision["number"]
      else { continue }
      // Each edit is accepted, and is one change with its number as the value.
      guard object["sequence"] != nil, case .array(let fragments)? = object["fragments"],
        fragments.count == 1, case .object(let fragment)? = fragments.first,
        case .object(let properties)? = fragment["properties"],
        properties["level"] == .integer(number)
      else {
        faults += 1
        continue
      }
      if !numbers[client, default: []].insert(number).inserted { faults += 1 }
    }
    for writer in writers {
      let known = numbers[writer.client.uuidString.lowercased()] ?? []
      guard writer.acknowledged > 0 else { throw RoleProblem(text: "a writer was never answered") }
      faults += (1...Int64(writer.acknowledged)).count { !known.contains($0) }
    }
    return faults
  }

  /// Counts acknowledgements until there are enough.
  private actor Meter {
    private var left: Int
    private var hasEnded = false
    private var waiting: CheckedContinuation<Void, Never>?

    init(goal: Int) { left = goal }

    /// True if there were enough.
    var isReached: Bool { left <= 0 }

    func add(_ count: Int) {
      left -= count
      if isReached { end() }
    }

    /// Ends the wait, since a writer has ended.
    func end() {
      hasEnded = true
      waiting?.resume()
      waiting = nil
    }

    func reached() async {
      if !hasEnded { await withCheckedContinuation { waiting = $0 } }
    }
  }
}
