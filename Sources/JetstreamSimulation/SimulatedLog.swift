import Foundation
import Jetstream

/// A real log on a simulated disk: records become durable after a while, the disk may fail in between, and a
/// crash may take records that are not durable.
final class SimulatedLog {
  /// The log that is written to. A crash replaces it.
  private(set) var records: RecordLog
  /// Descriptions of what the log has done wrong.
  private(set) var problems: [String] = []
  private let disk: SimulatedDisk
  private let configuration: LogConfiguration
  private let delay: ClosedRange<Int>
  private var random: SimulationRandom
  private var queue: SimulatedLogQueue
  private var snapshots: SimulatedLogQueue
  private var now: Duration = .zero
  /// The number of the last record that must outlive the process.
  private var written = 0
  /// True from the injection of a fault until the disk has done everything that it was asked for.
  private var isFailing = false

  /// Opens a log on an empty disk.
  ///
  /// - Parameter delay: the time that the disk takes for each piece of work, in milliseconds.
  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    var random = random
    disk = SimulatedDisk(seed: random.next())
    self.delay = delay
    // Segments of a few records, of which some are kept.
    configuration = LogConfiguration(
      history: [.all, .nothing, .last(20)][random.number(in: 0...2)],
      segmentBytes: random.number(in: 400...6_000))
    queue = SimulatedLogQueue(random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    snapshots = SimulatedLogQueue(
      random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    self.random = random
    do {
      records = try RecordLog(
        disk, configuration: configuration, queue: queue, snapshotQueue: snapshots)
    } catch {
      preconditionFailure("A log on an empty disk cannot be opened: \(error)")
    }
  }

  /// Has records appended, up to one with a sequence number.
  ///
  /// - Parameter outlivesProcess: whether they must be there if the process is killed right after.
  func append(_ last: Int, outlivesProcess: Bool, _ append: (RecordLog) -> Void) {
    append(records)
    if records.lastSequence < last {
      note("A log has \(records.lastSequence) records, not \(last)")
    }
    if outlivesProcess, !isFailing { written = max(written, last) }
  }

  /// Starts work, such as a snapshot, that goes on when the disk gets to it.
  func begin(now: Duration, _ body: (RecordLog) -> Void) {
    setTime(now)
    body(records)
  }

  /// Lets the disk work until `now`, and returns the number of the last durable record.
  func durable(now: Duration) -> Int {
    setTime(now)
    while queue.step(until: now) || snapshots.step(until: now) {}
    if isFailing, records.failure == nil, records.durableSequence == records.lastSequence {
      isFailing = disk.hasFaults
    }
    return records.durableSequence
  }

  /// Lets the disk do everything that it was asked for, at once.
  func settle() {
    while queue.step() || snapshots.step() {}
  }

  /// The time at which the disk does its next piece of work; nil if it is idle.
  var deadline: Duration? {
    [queue.deadline, snapshots.deadline].lazy.compactMap { $0 }.min()
  }

  /// True while the disk has work other than to put the log to rest.
  var isBusy: Bool { queue.isBusy || snapshots.isBusy }

  /// Makes the next operation of some kind fail.
  func fail(_ pick: Int) {
    let faults: [[SimulatedDisk.Fault]] = [
      [.write(EIO)], [.sync(EIO)], [.shortWrite(pick), .write(ENOSPC)], [.shortWrite(pick)],
      [.sync(EINTR)], [.rename(EIO)], [.syncDirectory(EIO)], [.open(EMFILE)],
    ]
    isFailing = true
    disk.inject(faults[pick % faults.count])
  }

  /// Kills the process, or stops the whole machine, while the log may be at work. Then opens the log again.
  ///
  /// - Returns: true if everything must be there that was promised to outlive the process.
  func crash(now: Duration) -> Bool {
    setTime(now)
    let (safe, written, wasFailing) = (records.durableSequence, written, isFailing)
    disk.clearFaults()
    if random.chance(0.5) {
      // The write under way is done, or some of it.
      if random.chance(0.7) { fail(random.number(in: 0...2)) }
      _ = queue.step()
      if random.chance(0.5) { _ = snapshots.step() }
    }
    let isKilled = random.chance(0.5)
    if isKilled { disk.kill() } else { disk.crash() }
    open()
    if records.lastSequence < safe {
      problems.append(
        "\(safe) records were safe, but \(records.lastSequence) are there after a crash")
    }
    if isKilled, records.lastSequence < written {
      problems.append(
        "\(written) records were written, but \(records.lastSequence) are there after a process was killed"
      )
    }
    return isKilled && !wasFailing
  }

  /// The contents of the files on the disk, from which ``restore(_:)`` takes the log back.
  var files: [String: [UInt8]] { disk.files }

  /// Replaces what is on the disk by a copy, and opens the log again.
  func restore(_ files: [String: [UInt8]]) {
    disk.kill()
    disk.files = files
    open()
  }

  func note(_ problem: String) { problems.append(problem) }

  func takeProblems() -> [String] {
    defer { problems = [] }
    return problems
  }

  /// Sets the time at which work is asked for from now on.
  func setTime(_ now: Duration) {
    self.now = now
    queue.setTime(now)
    snapshots.setTime(now)
  }

  private func open() {
    (written, isFailing) = (0, false)
    queue = SimulatedLogQueue(random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    snapshots = SimulatedLogQueue(
      random: SimulationRandom(seed: random.next()), delay: delay, now: now)
    let log = Result { () throws(LogError) in
      try RecordLog(disk, configuration: configuration, queue: queue, snapshotQueue: snapshots)
    }
    switch log {
    case .success(let log): records = log
    case .failure(let error):
      problems.append("A log cannot be opened after a crash: \(error)")
      // So that the run can go on to where this is reported.
      disk.kill()
      disk.files = [:]
      open()
    }
  }
}
