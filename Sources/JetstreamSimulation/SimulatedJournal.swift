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
  /// After how many records the keeper takes a snapshot.
  private let snapshotEvery: Int
  private var keeper: RecordKeeper<ScopeRecord>?
  private var completions = SimulatedCompletions()
  /// The server's own sets that records on their way are of; nil for those of clients.
  private var owns: [SubmittedSet?] = []
  private var isSafe: (Content) -> Void = { _ in }
  private var random: SimulationRandom
  private let forgets: Bool
  /// What was written, each at the place of its number less one.
  private var entries: [Entry] = []
  /// The last record that the server has begun with, and the last one that it was told to be safe.
  private var old = 0
  private var reported = 0
  /// Copies of the disk, from times when all that it held was told; the first is of the server's start.
  private var copies: [(count: Int, files: [String: [UInt8]])] = []
  /// Which history it is; nil as long as there is none.
  private(set) var epoch: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>, forgets: Bool) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    snapshotEvery = random.chance(0.05) ? 1 : random.number(in: 4...60)
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

  /// The keeper of a process that begins with ``history()``, as a server makes it.
  func begin(
    ticker: Ticker, isSafe: @escaping (Content) -> Void, stored: @escaping (Int) -> Void,
    history: @escaping () -> ScopeHistory?
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

  /// The server has begun with `history`, which a new one writes before anything else.
  func begin(with history: ScopeHistory, now: Duration) {
    log.setTime(now)
    if epoch == nil {
      epoch = history.epoch
      log.begin(now: now) { ScopeLog($0).snapshot(history, at: $0.lastSequence) { _ in } }
      log.settle()
    }
    (old, reported) = (entries.count, entries.count)
    copies.append((entries.count, log.files))
  }

  /// The next record is of a set of the server's own, or not.
  func note(own: SubmittedSet?) { owns.append(own) }

  /// Lets the disk work until now, and tells the server what came of it.
  func settle(now: Duration) {
    _ = log.durable(now: now)
    completions.deliver()
  }

  /// Records are safe: each counts before the server may tell of it.
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

  /// What is written of the maker of the set at each place of the order.
  var origins: [Int: ChangeOrigin] {
    var origins: [Int: ChangeOrigin] = [:]
    for record in entries.lazy.compactMap(\.record) {
      if let sequence = record.sequence { origins[sequence] = record.origin }
    }
    return origins
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
    append(.epoch, outlivesProcess: false) { records throws(LogError) in
      try ScopeLog(records).appendEpoch(epoch)
    }
    log.settle()
    self.epoch = epoch
    return lost
  }

  /// The server's memory is gone, and with it what was not safe: all of that, or the end of it. Gives what
  /// is there although nobody was told.
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
