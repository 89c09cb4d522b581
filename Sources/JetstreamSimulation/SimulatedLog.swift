import Foundation
import Jetstream

/// A real log on a simulated disk: what is written is safe after a while, the disk may fail in between, and a
/// crash takes what was not safe.
final class SimulatedLog {
  /// What is written to. After a crash it is another one.
  private(set) var records: RecordLog
  /// What the log should not have done, in words.
  private(set) var problems: [String] = []
  private let disk: SimulatedDisk
  private let configuration: LogConfiguration
  private let delay: ClosedRange<Int>
  private var random: SimulationRandom
  private var queue: SimulatedLogQueue
  private var snapshots: SimulatedLogQueue
  private var now: Duration = .zero
  /// The last record that the end of the process does not take away.
  private var written = 0
  /// True from when the disk was made to fail until it has done everything that was asked for.
  private var isFailing = false

  /// - Parameter delay: how long the disk takes for whatever it is asked, in milliseconds.
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

  /// Appends a record.
  ///
  /// - Parameter outlivesProcess: whether it is promised to be there when the process is killed right after.
  func append(
    outlivesProcess: Bool, _ append: (RecordLog) throws(LogError) -> LogReceipt
  ) -> LogReceipt {
    do {
      let receipt = try append(records)
      if outlivesProcess, !isFailing { written = receipt.sequence }
      return receipt
    } catch {
      preconditionFailure("A log that waits for its disk takes no record: \(error)")
    }
  }

  /// Begins something, such as a snapshot, that goes on when the disk gets to it.
  func begin(now: Duration, _ body: (RecordLog) -> Void) {
    setTime(now)
    body(records)
  }

  /// The number of the last record that is safe.
  func durable(now: Duration) -> Int {
    setTime(now)
    while queue.step(until: now) || snapshots.step(until: now) {}
    if isFailing, records.failure == nil, records.durableSequence == records.lastSequence {
      isFailing = disk.hasFaults
    }
    return records.durableSequence
  }

  /// Has the disk do all that it was asked for.
  func settle() {
    while queue.step() || snapshots.step() {}
  }

  /// When the disk has done something.
  var deadline: Duration? {
    [queue.deadline, snapshots.deadline].lazy.compactMap { $0 }.min()
  }

  /// The next thing of a kind that the disk is asked for fails.
  func fail(_ pick: Int) {
    let faults: [[SimulatedDisk.Fault]] = [
      [.write(EIO)], [.sync(EIO)], [.shortWrite(pick), .write(ENOSPC)], [.shortWrite(pick)],
      [.sync(EINTR)], [.rename(EIO)], [.syncDirectory(EIO)],
    ]
    isFailing = true
    disk.inject(faults[pick % faults.count])
  }

  /// The process is killed, or the whole machine stops, in the midst of what it does. Then the log is opened
  /// again.
  ///
  /// - Returns: whether everything has to be there that was promised to outlive the process.
  func crash(now: Duration) -> Bool {
    setTime(now)
    let (safe, written, wasFailing) = (records.durableSequence, written, isFailing)
    disk.clearFaults()
    if random.chance(0.5) {
      // What was being written is on the disk, or some of it is.
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

  /// What is on the disk, for as long as somebody keeps a copy of it.
  var files: [String: [UInt8]] { disk.files }

  /// A copy of what was on the disk is put in the place of what is. Then the log is opened again.
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

  /// What is asked for from now on is asked for at this time.
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
