import Foundation
import Jetstream

/// The disk of a client that promises to be durable: a real log, and a reference for what it has to contain.
final class SimulatedOutbox {
  /// One record of the log.
  private struct Entry {
    let content: RecordContent
    /// The payload, parsed once for all comparisons.
    let json: PlainJSON
    /// The content, as far as the checks need it; nil for records that they do not use.
    let about: About?
  }

  private enum About {
    case made(Int, UUID)
    case decided(Int)
    case known([Int])
    case forgotten(after: Int)
    case discarded([ConflictName])
    /// A confirmed state in this epoch of the server.
    case base(epoch: String?)
  }

  private let log: SimulatedLog
  /// The number of records after which the keeper takes a snapshot.
  private let snapshotEvery: Int
  private var keeper: RecordKeeper<ReplicaRecord, LogError>?
  private var completions = SimulatedCompletions()
  /// The records that were written, each at the index of its number less one.
  private var entries: [Entry] = []
  /// The number of the last record at the start of the process, and of the last one that was reported as
  /// durable.
  private var old = 0
  private var reported = 0
  /// The UUID of the root before the server has given it another one.
  private(set) var ownRoot: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    snapshotEvery = random.chance(0.05) ? 1 : random.number(in: 4...60)
  }

  /// Returns the history that a starting client begins with; nil if there is none.
  func history() -> ReplicaHistory? {
    (old, reported) = (entries.count, entries.count)
    do throws(LogError) {
      let history = try ClientLog(log.records).history()
      if let history { try check(history) }
      return history
    } catch {
      log.note("A client's log cannot be read after a crash: \(error)")
      return nil
    }
  }

  private func check(_ history: ReplicaHistory) throws(LogError) {
    let snapshot = try LogReader(log.records.directory).snapshot()
    let written = entries.dropFirst(snapshot?.sequence ?? 0).map(\.content)
    if !history.records.map(\.content).elementsEqual(written) {
      log.note("A client's log does not hold what was written to it")
    }
  }

  /// Makes the keeper of a client process that begins with ``history()``.
  func begin(
    ticker: Ticker, replica: @escaping () -> Replica?
  ) -> RecordKeeper<ReplicaRecord, LogError> {
    completions = SimulatedCompletions()
    let keeper = RecordKeeper<ReplicaRecord, LogError>(
      ticker: ticker, completions: completions, after: log.records.lastSequence,
      tail: log.records.opening.tailCount, snapshotEvery: snapshotEvery,
      owner: .init(
        encode: { [unowned self] in note($0) }, mustOutliveProcess: { _ in true },
        append: { [log] batch, done in
          log.append(batch.expected + batch.records.count, outlivesProcess: true) { records in
            ClientLog(records).append(batch.records, after: batch.expected, then: done)
          }
        },
        stored: { [unowned self] count in
          reported = old + count
          replica()?.stored(count)
        },
        snapshot: { [log] in
          guard let history = replica()?.history else { return nil }
          return RecordSnapshot(carried: history.pending.count) { [log] in
            ClientLog(log.records).snapshot(history, at: $0, then: $1)
          }
        }, note: { _ in }))
    self.keeper = keeper
    return keeper
  }

  /// Lets the disk work until `now`, and delivers the outcomes to the client.
  func settle(now: Duration) {
    setTime(now)
    _ = log.durable(now: now)
    completions.deliver()
  }

  /// Sets the time at which records are written from now on.
  func setTime(_ now: Duration) { log.setTime(now) }

  /// Takes note of a record that is about to be appended, and returns its content.
  private func note(_ record: ReplicaRecord) -> RecordContent {
    let content = record.content
    if case .named(_, let root) = record, ownRoot == nil { ownRoot = root.uuidString.lowercased() }
    let about: About? =
      switch record {
      case .made(let number, let set): .made(number, set.id)
      case .decided(let decided): .decided(decided.number)
      case .known(let decisions): .known(decisions.map(\.number))
      case .forgotten(let number): .forgotten(after: number)
      case .base(let base): .base(epoch: base.position?.epoch)
      case .discarded(let names): .discarded(names)
      default: nil
      }
    entries.append(
      Entry(content: content, json: PlainJSON(content.payload) ?? .null, about: about))
    return content
  }

  /// The time at which the disk does its next piece of work; nil if it is idle.
  var deadline: Duration? { log.deadline }

  /// True while the disk has work, or a record has not been reported as durable. After a failure the
  /// disk is idle for a second, and then the keeper tries again.
  var isBusy: Bool { log.isBusy || reported < entries.count }

  func fail(_ pick: Int) { log.fail(pick) }

  func takeProblems() -> [String] { log.takeProblems() }

  /// Ends the client's process. Records that were not durable are lost: all of them, or the last ones. A
  /// process that is killed loses nothing that it has written.
  ///
  /// - Returns: true if everything must be there that the client has shown.
  func crash(now: Duration) -> Bool {
    keeper = nil
    let isKept = log.crash(now: now)
    let kept = min(log.records.lastSequence, entries.count)
    entries.removeLast(entries.count - kept)
    // No peer has heard of the first UUID, either.
    if entries.isEmpty { ownRoot = nil }
    return isKept
  }

  /// The change sets that the next process has to bring back, in their order.
  var undecided: [UUID] {
    var open: [(number: Int, set: UUID)] = []
    for entry in entries {
      switch entry.about {
      case .made(let number, let set): open.append((number, set))
      case .decided(let number): open.removeAll { $0.number == number }
      case .known, .forgotten, .discarded, .base, nil: break
      }
    }
    return open.map(\.set)
  }

  /// Returns the losses that the next process has to know of. `set` returns the change set with this id, and
  /// the losses that were learned of it.
  func losses(
    root: String, _ set: (UUID) -> (SubmittedSet, [SubmittedSet.Loss])?
  ) -> [KnownLoss] {
    var losses: [KnownLoss] = []
    // A number is given again if the change set that had it was lost in a crash.
    var names: [Int: UUID] = [:]
    for entry in entries {
      switch entry.about {
      case .made(let number, let name):
        names[number] = name
        if let (set, _) = set(name) { losses.settle(by: set, root: root) }
      case .decided(let number):
        guard let name = names[number], let (set, lost) = set(name) else { continue }
        losses += lost.map { KnownLoss(set: set, loss: $0, ownRoot: ownRoot ?? "") }
      case .discarded(let names): for name in names { losses.discard(name, root: root) }
      case .known, .forgotten, .base, nil: break
      }
    }
    return losses
  }

  /// The records that were written, in order.
  var lines: [(kind: LogKind, json: PlainJSON)] {
    entries.flatMap { entry in
      // The remote change sets of one frame have one record.
      let parts = entry.content.kind.rawValue == "confirmed" ? entry.json["sets"]?.elements : nil
      return (parts ?? [entry.json]).map { (entry.content.kind, $0) }
    }
  }

  /// The epoch of the confirmed state; nil if there is none.
  var epoch: String? {
    for entry in entries.reversed() { if case .base(let epoch)? = entry.about { return epoch } }
    return nil
  }

  /// Returns true if the record of the change set with this number is durable.
  func keepsSet(_ number: Int, now: Duration) -> Bool {
    entries.prefix(log.durable(now: now)).contains { entry in
      if case .made(number, _)? = entry.about { true } else { false }
    }
  }

  /// Returns the number up to which the decisions on all change sets are durable.
  func keptDecisions(now: Duration) -> Int {
    let safe = log.durable(now: now)
    var open: Set<Int> = []
    var known: Set<Int> = []
    for (place, entry) in entries.enumerated() {
      switch entry.about {
      case .made(let number, _): open.insert(number)
      case .decided(let number) where place < safe:
        open.remove(number)
        known.remove(number)
      case .known(let numbers) where place < safe:
        known.formUnion(numbers)
        open.subtract(numbers)
      case .forgotten(let number):
        open.formUnion(known.filter { $0 > number })
        known = known.filter { $0 <= number }
      case .decided, .known, .discarded, .base, nil: break
      }
    }
    return (open.min() ?? lastNumber + 1) - 1
  }

  /// The number of the last change set that was made; 0 if there is none.
  var lastNumber: Int {
    entries.reduce(0) { last, entry in
      if case .made(let number, _)? = entry.about { max(last, number) } else { last }
    }
  }
}
