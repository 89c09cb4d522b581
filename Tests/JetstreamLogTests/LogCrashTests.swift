import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

/// Random work on a simulated disk that crashes: `JETSTREAM_LOG_SEEDS` runs.
@Suite("Crashes of a simulated machine", .paced)
struct LogCrashTests {
  @Test("After each crash the log holds what was durable, in order, whole batches, nothing else")
  func crashes() throws {
    var totals = Totals()
    for seed in 1...count("JETSTREAM_LOG_SEEDS", default: 60) {
      var run = try Run(seed: UInt64(seed))
      do {
        try run.go()
        totals.crashes += run.totals.crashes
        totals.torn += run.totals.torn
        totals.faults += run.totals.faults
        totals.snapshots += run.totals.snapshots
        totals.rests += run.totals.rests
      } catch {
        Issue.record("Seed \(seed): \(error)")
        if let path = ProcessInfo.processInfo.environment["JETSTREAM_LOG_DUMP"] {
          for (name, bytes) in run.disk.files {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(seed)-\(name)"))
          }
        }
      }
    }
    print("\(totals)")
    #expect(totals.crashes > 0 && totals.torn > 0 && totals.faults > 0 && totals.snapshots > 0)
    #expect(totals.rests > 0)
  }
}

private struct Totals {
  var crashes = 0
  var torn = 0
  var faults = 0
  var snapshots = 0
  /// Times at which a log that had been written was at rest.
  var rests = 0
}

/// One disk and the logs that live on it one after the other.
private struct Run {
  let seed: UInt64
  var random: SeededGenerator
  let disk: SimulatedDisk
  var log: SimulatedLog?
  var configuration: LogConfiguration
  /// What the log was given, in order; some of it may be lost at the next crash.
  var appended: [Int] = []
  /// Where batches end, among `appended`.
  var ends: Set<Int> = [0]
  var nextNumber = 1
  /// How many of them the system has, as long as the disk has not failed since the log was opened.
  var written = 0
  var hasFailed = false
  var totals = Totals()

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededGenerator(seed: seed)
    disk = SimulatedDisk(seed: seed &* 31)
    configuration = LogConfiguration(
      durability: [.everyChangeSet, .interval(.seconds(1)), .none][Int(seed % 3)],
      history: [.all, .nothing, .last(20)][Int(seed / 3 % 3)],
      segmentBytes: Int.random(in: 300...3000, using: &random))
    log = try SimulatedLog(disk, configuration)
  }

  mutating func go() throws {
    for _ in 0..<150 { try step() }
    try crash(machine: true)
  }

  private mutating func step() throws {
    guard let log else { return }
    switch Int.random(in: 0..<100, using: &random) {
    case ..<35: try append(1)
    case ..<45: try append(Int.random(in: 2...5, using: &random))
    case ..<65: log.queue.step()
    case ..<70: log.queue.drain()
    case ..<74: log.snapshots.step()
    case ..<78: log.log.whenSynced { _ in }
    case ..<81:
      let wasOpen = disk.openCount > 0
      log.queue.passTime()
      if wasOpen, disk.openCount == 0 { totals.rests += 1 }
    case ..<86: snapshot(log)
    case ..<88: log.log.compact(keeping: .last(10)) { _ in }
    case ..<93: injectFault()
    case ..<96 where disk.isAway: disk.isAway = false
    case ..<96: try check(LogReader(disk).all(), isWholeDisk: false)
    case ..<98: try crash(machine: true)
    case ..<99: try crash(machine: false)
    default:
      disk.clearFaults()
      disk.isFull = false
      disk.isAway = false
      try log.close()
      try reopen(atLeast: appended.count)
    }
  }

  private mutating func append(_ count: Int) throws {
    let numbers = Array(nextNumber..<(nextNumber + count))
    try log?.log.append(
      numbers.map { RecordContent(.note, payload($0, length: 20 + $0 * 37 % 400)) })
    nextNumber += count
    appended += numbers
    ends.insert(appended.count)
    guard Bool.random(using: &random) else { return }
    log?.log.writeNow()
    if !hasFailed { written = appended.count }
  }

  private mutating func snapshot(_ log: SimulatedLog) {
    let state = appended
    totals.snapshots += 1
    log.log.snapshot(
      at: log.log.lastSequence, standingFor: [.note],
      state: { state.map { RecordContent(.state, payload($0, length: 20 + $0 * 37 % 400)) } },
      then: { _ in })
  }

  private mutating func injectFault() {
    totals.faults += 1
    hasFailed = true
    let faults: [SimulatedDisk.Fault] = [
      .write(EIO), .write(EINTR), .shortWrite(30), .sync(EIO), .sync(EIO), .rename(EIO),
      .syncDirectory(EIO), .open(EMFILE), .truncate(EIO),
    ]
    let kind = Int.random(in: 0..<12, using: &random)
    if kind < 2 {
      disk.isFull.toggle()
    } else if kind == 2 {
      disk.isAway.toggle()
    } else {
      disk.inject([faults.randomElement(using: &random)!])
    }
  }

  private mutating func crash(machine: Bool) throws {
    guard let log else { return }
    totals.crashes += 1
    // What counts as durable without a sync does not survive a machine, but a process.
    let durable =
      machine && configuration.durability == .none
      ? log.log.state.withLock { $0.synced } : log.log.durableSequence
    self.log = nil
    if machine { disk.crash() } else { disk.kill() }
    try reopen(atLeast: machine ? durable : max(durable, written))
  }

  private mutating func reopen(atLeast durable: Int) throws {
    let again = try SimulatedLog(disk, configuration)
    log = again
    (written, hasFailed) = (0, false)
    if again.log.opening.tornBytes > 0 { totals.torn += 1 }
    #expect(again.log.opening.damagedSnapshots.isEmpty, "seed \(seed)")
    let last = again.log.lastSequence
    guard last >= durable, last <= appended.count else {
      throw Problem("\(last) records of \(appended.count), \(durable) durable")
    }
    guard ends.contains(last) else { throw Problem("record \(last) is no end of a batch") }
    appended.removeLast(appended.count - last)
    ends = ends.filter { $0 <= last }
    try check(LogReader(disk).all(), isWholeDisk: true)
    let verification = try LogReader(disk).verify()
    guard verification.isWhole, verification.tornBytes == 0 else {
      throw Problem("after opening: \(verification)")
    }
  }

  /// Looks at what is read: the state of the newest snapshot and all records are as they were given.
  private func check(_ records: [LogRecord], isWholeDisk: Bool) throws {
    for record in records {
      guard number(record) == appended[record.sequence - 1] else {
        throw Problem("record \(record.sequence) is another one")
      }
    }
    let snapshot = try LogReader(disk).snapshot()
    if let snapshot {
      guard snapshot.state.map(number) == Array(appended[..<snapshot.sequence]) else {
        throw Problem("the snapshot at \(snapshot.sequence) is another one")
      }
    }
    guard isWholeDisk else { return }
    guard records.last?.sequence ?? (snapshot?.sequence ?? 0) == appended.count else {
      throw Problem("the last record read is \(records.last?.sequence ?? 0)")
    }
    guard records.first?.sequence ?? 1 <= (snapshot?.sequence ?? 0) + 1 else {
      throw Problem("records before \(records.first?.sequence ?? 0) are missing")
    }
    if configuration.history == .last(20), let first = records.first?.sequence, first > 1 {
      // Compactions that asked for ten have been among them.
      guard first <= max(appended.count - 10 + 1, 1) || snapshot?.sequence ?? 0 >= first - 1 else {
        throw Problem("too little is kept, from \(first) to \(appended.count)")
      }
    }
  }

  private func number(_ record: LogRecord) -> Int {
    guard case .object(let object)? = try? JSONValue(parsing: record.payload),
      case .integer(let number)? = object["n"],
      payload(Int(number), length: 20 + Int(number) * 37 % 400) == record.payload
    else { return -1 }
    return Int(number)
  }
}

private struct Problem: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
