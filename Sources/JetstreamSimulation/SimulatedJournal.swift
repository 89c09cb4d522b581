import Foundation
import Jetstream
import JetstreamServer

/// The disk of a server that promises to be durable: a real log, and a reference for what it has to contain.
///
/// A record is appended to the log, becomes durable after a while, and is reported to the server then, which
/// may not tell clients of it before. A crash takes records that were not durable. Those that were, but were
/// not reported, count after the crash as well, because the next process reads them.
final class SimulatedJournal {
  /// The content of a record, as far as the references need it.
  struct Content {
    /// The server's own change set, if the record is about one.
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
  /// The number of records after which the keeper takes a snapshot.
  private let snapshotEvery: Int
  private var keeper: RecordKeeper<ScopeRecord>?
  private var completions = SimulatedCompletions()
  /// For each record to be written, the server's own change set that it is about; nil for those of clients.
  private var owns: [SubmittedSet?] = []
  private var isSafe: (Content) -> Void = { _ in }
  private var random: SimulationRandom
  private let forgets: Bool
  /// The records that were written, each at the index of its number less one.
  private var entries: [Entry] = []
  /// The number of the last record at the server's start, and of the last one that was reported as durable.
  private var old = 0
  private var reported = 0
  /// Copies of the disk, from times when all its records were reported; the first is from the server's start.
  private var copies: [(count: Int, files: [String: [UInt8]])] = []
  /// The epoch of the journal; nil before a server has begun with it.
  private(set) var epoch: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>, forgets: Bool) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    snapshotEvery = random.chance(0.05) ? 1 : random.number(in: 4...60)
    self.random = random
    self.forgets = forgets
  }

  /// Returns the history that a starting server begins with; nil if there is none.
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

  /// Makes the keeper of a server process that begins with ``history()``.
  func begin(
    ticker: Ticker, isSafe: @escaping (Content) -> Void, stored: @escaping (Int) -> Void,
    prepare: @escaping (@escaping () -> Void) -> Void, history: @escaping () -> ScopeHistory?
  ) -> RecordKeeper<ScopeRecord> {
    completions = SimulatedCompletions()
    owns = []
    self.isSafe = isSafe
    let keeper = RecordKeeper<ScopeRecord>(
      ticker: ticker, completions: completions, tail: log.records.opening.tailCount,
      snapshotEvery: snapshotEvery,
      owner: .init(
        append: { [unowned self] record throws(LogError) in write(record) },
        stored: { [unowned self] count in
          tell(upTo: old + count)
          stored(count)
        },
        prepareSnapshot: prepare,
        snapshot: { [log] in
          guard let history = history() else { return nil }
          let last = log.records.lastSequence
          return RecordSnapshot { [log] in
            ScopeLog(log.records).snapshot(history, at: last, then: $0)
          }
        }, note: { _ in }))
    self.keeper = keeper
    return keeper
  }

  /// Takes the history with which the server has begun, if it is new, and writes it as the first snapshot.
  func begin(with history: ScopeHistory?, now: Duration) {
    log.setTime(now)
    if let history {
      epoch = history.epoch
      log.begin(now: now) { ScopeLog($0).snapshot(history, at: $0.lastSequence) { _ in } }
      log.settle()
    }
    (old, reported) = (entries.count, entries.count)
    copies.append((entries.count, log.files))
  }

  /// Notes the server's own change set that the next record is about; nil if it is about none.
  func note(own: SubmittedSet?) { owns.append(own) }

  /// Lets the disk work until `now`, and delivers the outcomes to the server.
  func settle(now: Duration) {
    _ = log.durable(now: now)
    completions.deliver()
  }

  /// Reports records as durable: each counts before the server may tell clients of it.
  private func tell(upTo count: Int) {
    while reported < count {
      reported += 1
      isSafe(entries[reported - 1].content)
    }
    if reported == entries.count, random.chance(0.2) { copies.append((reported, log.files)) }
  }

  private func write(_ record: ScopeRecord) -> LogReceipt {
    append(
      .record(record, own: owns.removeFirst()), outlivesProcess: record.decision == nil
    ) { records throws(LogError) in try ScopeLog(records).append(record) }
  }

  @discardableResult
  private func append(
    _ entry: Entry, outlivesProcess: Bool,
    _ append: (RecordLog) throws(LogError) -> LogReceipt
  ) -> LogReceipt {
    entries.append(entry)
    let receipt = log.append(outlivesProcess: outlivesProcess, append)
    if receipt.sequence != entries.count {
      log.note("The server's record \(entries.count) has got the number \(receipt.sequence)")
    }
    return receipt
  }

  /// The maker of each change set, as recorded, by the set's sequence.
  var origins: [Int: ChangeOrigin] {
    var origins: [Int: ChangeOrigin] = [:]
    for record in entries.lazy.compactMap(\.record) {
      if let sequence = record.sequence { origins[sequence] = record.origin }
    }
    return origins
  }

  /// The time at which the disk does its next piece of work; nil if it is idle.
  var deadline: Duration? { log.deadline }

  /// True while the disk has work, or a record has not been reported as durable. After a failure the
  /// disk is idle for a second, and then the keeper tries again.
  var isBusy: Bool { log.deadline != nil || reported < entries.count }

  func fail(_ pick: Int) { log.fail(pick) }

  func takeProblems() -> [String] { log.takeProblems() }

  /// Puts an old copy in the place of the log, and begins a new epoch. Returns the decisions that are lost.
  func lose(_ pick: Int, epoch: String, now: Duration) -> [ScopeRecord.Decision] {
    let copy = copies[pick % copies.count]
    log.restore(copy.files)
    let lost = entries[copy.count..<reported].compactMap(\.content.decision)
    truncate(to: copy.count)
    append(.epoch, outlivesProcess: false) { records throws(LogError) in
      try ScopeLog(records).appendEpoch(epoch)
    }
    log.settle()
    self.epoch = epoch
    return lost
  }

  /// Ends the server's process. Records that were not durable are lost: all of them, or the last ones. Returns
  /// the content of the records that are there but were not reported.
  func crash(now: Duration) -> [Content] {
    keeper = nil
    if forgets {
      let start = copies.last { $0.count == old }!
      log.restore(start.files)
      truncate(to: old)
      return []
    }
    _ = log.crash(now: now)
    let untold = entries[reported..<max(reported, log.records.lastSequence)].map(\.content)
    truncate(to: log.records.lastSequence)
    return untold
  }

  private func truncate(to count: Int) {
    entries.removeLast(entries.count - count)
    copies.removeAll { $0.count > count }
  }
}
