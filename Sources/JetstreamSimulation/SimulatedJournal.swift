import Foundation
import Jetstream
import JetstreamServer

/// What a server that promises to be durable has on its disk: a real log, and what is known to be in it.
final class SimulatedJournal {
  /// What a record is about.
  struct Content {
    /// The server's own set, if it is one.
    let own: SubmittedSet?
    let decision: ScopeRecord.Decision?
    let fragments: [SyncFragment]
  }

  /// One record of the log.
  private enum Entry {
    case record(ScopeRecord, own: SubmittedSet?)
    case epoch

    var record: ScopeRecord? { if case .record(let record, _) = self { record } else { nil } }

    var content: Content {
      guard case .record(let record, let own) = self else {
        return Content(own: nil, decision: nil, fragments: [])
      }
      return Content(
        own: record.decision == nil ? own : nil, decision: record.decision,
        fragments: record.fragments)
    }
  }

  private let log: SimulatedLog
  private var random: SimulationRandom
  private let forgets: Bool
  /// What was written, each at the place of its number less one.
  private var entries: [Entry] = []
  /// The last record that the server has begun with, and the last one that it was told to be safe.
  private var old = 0
  private var reported = 0
  /// How many records there were when the last snapshot was asked for.
  private var snapshotAt = 0
  /// Copies of the disk, from times when all that it held was told; the first is of the server's start.
  private var copies: [(count: Int, files: [String: [UInt8]])] = []
  /// Which history it is; nil as long as there is none.
  private(set) var epoch: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>, forgets: Bool) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    self.random = random
    self.forgets = forgets
  }

  /// A server starts: what it begins with, if there was one before.
  func history() -> ScopeHistory? {
    do throws(LogError) {
      let history = try ScopeLog(log.records).history()
      if let history { try check(history) }
      return history
    } catch {
      log.note("The server's log cannot be read after a crash: \(error)")
      return nil
    }
  }

  private func check(_ history: ScopeHistory) throws(LogError) {
    let snapshot = try LogReader(log.records.directory).snapshot()
    let written = entries.dropFirst(snapshot?.sequence ?? 0).compactMap(\.record)
    if history.records.map(\.json.text) != written.map(\.json.text) {
      log.note("The server's log does not hold what was written to it")
    }
  }

  /// The server has begun with `history`: now and then, everything until then becomes one state.
  func begin(_ history: ScopeHistory, now: Duration) {
    if epoch == nil {
      epoch = history.epoch
      snapshot(history, now: now)
      log.settle()
    } else if random.chance(0.3) {
      snapshot(history, now: now)
    }
    (old, reported) = (entries.count, entries.count)
    copies.append((entries.count, log.files))
  }

  /// After some records, and when nothing is being written, their state takes their place.
  func snapshotIfDue(_ history: @autoclosure () -> ScopeHistory?, now: Duration) {
    guard entries.count - snapshotAt > 25, reported == entries.count, let history = history() else {
      return
    }
    snapshot(history, now: now)
  }

  private func snapshot(_ history: ScopeHistory, now: Duration) {
    snapshotAt = entries.count
    log.begin(now: now) { ScopeLog($0).snapshot(history, at: $0.lastSequence) { _ in } }
  }

  func write(_ record: ScopeRecord, own: SubmittedSet?, now: Duration) {
    append(.record(record, own: own), now: now) { records throws(LogError) in
      try ScopeLog(records).append(record)
    }
  }

  private func append(
    _ entry: Entry, now: Duration, _ append: (RecordLog) throws(LogError) -> LogReceipt
  ) {
    entries.append(entry)
    let number = log.append(now: now, append)
    if number != entries.count {
      log.note("The server's record \(entries.count) has got the number \(number)")
    }
  }

  /// What is written of the maker of the set at each place of the order.
  var origins: [Int: ChangeOrigin] {
    var origins: [Int: ChangeOrigin] = [:]
    for record in entries.lazy.compactMap(\.record) {
      if let sequence = record.sequence { origins[sequence] = record.origin }
    }
    return origins
  }

  /// The next record that is safe by now, and how many there are with it that this server has written;
  /// nil if there is none.
  func nextSafe(now: Duration) -> (count: Int, Content)? {
    guard reported < min(log.durable(now: now), entries.count) else { return nil }
    reported += 1
    if reported == entries.count, random.chance(0.2) { copies.append((reported, log.files)) }
    return (reported - old, entries[reported - 1].content)
  }

  /// When the disk has done something.
  var deadline: Duration? { log.deadline }

  func fail(_ pick: Int) { log.fail(pick) }

  func takeProblems() -> [String] { log.takeProblems() }

  /// An old copy is put in its place, which begins another history. Gives the decisions that are gone with
  /// what was written since.
  func lose(_ pick: Int, epoch: String, now: Duration) -> [ScopeRecord.Decision] {
    let copy = copies[pick % copies.count]
    log.restore(copy.files)
    let lost = entries[copy.count..<reported].compactMap(\.content.decision)
    truncate(to: copy.count)
    append(.epoch, now: now) { records throws(LogError) in
      try ScopeLog(records).appendEpoch(epoch)
    }
    log.settle()
    self.epoch = epoch
    return lost
  }

  /// The server's memory is gone, and with it what was not safe: all of that, or the end of it. Gives what
  /// is there although nobody was told.
  func crash(now: Duration) -> [Content] {
    if forgets {
      let start = copies.last { $0.count == old }!
      log.restore(start.files)
      truncate(to: old)
      return []
    }
    log.crash(now: now)
    let untold = entries[reported..<max(reported, log.records.lastSequence)].map(\.content)
    truncate(to: log.records.lastSequence)
    return untold
  }

  private func truncate(to count: Int) {
    entries.removeLast(entries.count - count)
    copies.removeAll { $0.count > count }
    snapshotAt = min(snapshotAt, count)
  }
}
