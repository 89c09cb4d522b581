import Foundation
import Jetstream
import JetstreamServer

/// The history of a server that promises to be durable: a real log or a shared storage, and a reference for what it has to
/// contain.
///
/// A record is appended, becomes durable after a while, and is reported to the server then, which
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

  private let store: any SimulatedStore
  /// The number of records after which the keeper takes a snapshot.
  private let snapshotEvery: Int
  private var keeper: RecordKeeper<ScopeRecord, StorageError>?
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
  /// Copies of what is stored, from times when all its records were reported; the first is from the server's start.
  private var copies: [(count: Int, content: SimulatedCopy)] = []
  /// The epoch of the journal; nil before a server has begun with it.
  private(set) var epoch: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>, isShared: Bool, forgets: Bool) {
    var random = random
    let own = SimulationRandom(seed: random.next())
    store =
      isShared
      ? SimulatedSharedStore(random: own, delay: delay)
      : SimulatedServerLog(random: own, delay: delay)
    snapshotEvery = random.chance(0.05) ? 1 : random.number(in: 4...60)
    self.random = random
    self.forgets = forgets
  }

  /// Returns the history that a starting server begins with; nil if there is none.
  func history() -> ScopeHistory? {
    do {
      let stored = try store.read()
      let history = try ScopeHistory(stored)
      if let history { check(history, behind: stored.snapshot) }
      return history
    } catch {
      store.note("The server's history cannot be read after a crash: \(error)")
      return nil
    }
  }

  private func check(_ history: ScopeHistory, behind snapshot: LogSnapshot?) {
    let written = entries.dropFirst(snapshot?.sequence ?? 0).compactMap(\.record)
    if history.records.map(\.json.text) != written.map(\.json.text) {
      store.note("The server's history does not hold what was written to it")
    }
  }

  /// Makes the keeper of a server process that begins with ``history()``.
  func begin(
    _ history: ScopeHistory?, ticker: Ticker, isSafe: @escaping (Content) -> Void,
    stored: @escaping (Int) -> Void, prepare: @escaping (@escaping () -> Void) -> Void,
    stalled: @escaping () -> Void, current: @escaping () -> ScopeHistory?
  ) -> RecordKeeper<ScopeRecord, StorageError> {
    completions = SimulatedCompletions()
    owns = []
    self.isSafe = isSafe
    var owner = RecordKeeper<ScopeRecord, StorageError>.Owner(
      encode: { [unowned self] in
        entries.append(.record($0, own: owns.removeFirst()))
        return $0.content()
      }, mustOutliveProcess: \.mustOutliveProcess,
      append: { [store] batch, done in
        let last = batch.expected + batch.records.count
        store.append(last, outlivesProcess: batch.outlivesProcess) {
          $0.append(
            batch.records, after: batch.expected, outlivesProcess: batch.outlivesProcess, then: done
          )
        }
      },
      stored: { [unowned self] count in
        tell(upTo: old + count)
        stored(count)
      },
      snapshot: { [store] in
        guard let history = current() else { return nil }
        return RecordSnapshot { [store] in
          store.lease.writeSnapshot(at: $0, state: { history.content }, then: $1)
        }
      }, note: { _ in })
    owner.prepareSnapshot = prepare
    owner.stalled = { _ in stalled() }
    owner.ended = { [store] in store.note("The server cannot write its history any more: \($0)") }
    let keeper = RecordKeeper(
      ticker: ticker, completions: completions, after: store.last,
      tail: history?.records.count ?? 0, snapshotEvery: snapshotEvery, owner: owner)
    self.keeper = keeper
    return keeper
  }

  /// Takes the history with which the server has begun, if it is new, and writes it as the first snapshot.
  func begin(with history: ScopeHistory?, now: Duration) {
    store.setTime(now)
    if let history {
      epoch = history.epoch
      store.lease.writeSnapshot(at: store.last, state: { history.content }) { _ in }
      store.settle()
    }
    (old, reported) = (entries.count, entries.count)
    copies.append((entries.count, store.copy))
  }

  /// Notes the server's own change set that the next record is about; nil if it is about none.
  func note(own: SubmittedSet?) { owns.append(own) }

  /// Lets the disk work until `now`, and delivers the outcomes to the server.
  func settle(now: Duration) {
    store.work(until: now)
    completions.deliver()
  }

  /// Reports records as durable: each counts before the server may tell clients of it.
  private func tell(upTo count: Int) {
    while reported < count {
      reported += 1
      isSafe(entries[reported - 1].content)
    }
    if reported == entries.count, random.chance(0.2) { copies.append((reported, store.copy)) }
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
  var deadline: Duration? { store.deadline }

  /// True while the disk has work, or a record has not been reported as durable. After a failure the
  /// disk is idle for a second, and then the keeper tries again.
  var isBusy: Bool { store.isBusy || reported < entries.count }

  func fail(_ pick: Int) { store.fail(pick) }

  func takeProblems() -> [String] { store.takeProblems() }

  /// Puts an old copy in the place of what is stored, and begins a new epoch. Returns the decisions that are lost.
  func lose(_ pick: Int, epoch: String, now: Duration) -> [ScopeRecord.Decision] {
    let copy = copies[pick % copies.count]
    store.restore(copy.content)
    let lost = entries[copy.count..<reported].compactMap(\.content.decision)
    truncate(to: copy.count)
    entries.append(.epoch)
    store.append(entries.count, outlivesProcess: false) { [expected = entries.count - 1] in
      $0.append(
        [ScopeHistory.beginning(of: epoch)], after: expected, outlivesProcess: false, then: { _ in }
      )
    }
    store.settle()
    self.epoch = epoch
    return lost
  }

  /// Ends the server's process. Records that were not durable are lost: all of them, or the last ones. Returns
  /// the content of the records that are there but were not reported.
  func crash(now: Duration) -> [Content] {
    keeper = nil
    if forgets {
      let start = copies.last { $0.count == old }!
      store.restore(start.content)
      truncate(to: old)
      return []
    }
    store.crash(now: now)
    let last = store.last
    if last < reported {
      store.note("\(reported) records were safe, but \(last) are there after a crash")
    }
    let untold = entries[reported..<max(reported, last)].map(\.content)
    truncate(to: last)
    return untold
  }

  private func truncate(to count: Int) {
    entries.removeLast(entries.count - count)
    copies.removeAll { $0.count > count }
  }
}
