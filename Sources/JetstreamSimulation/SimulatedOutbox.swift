import Foundation
import Jetstream

/// What a client that promises to be durable has on its disk: a real log, and what is known to be in it.
final class SimulatedOutbox {
  /// One record of the log.
  private struct Entry {
    let kind: LogKind
    let payload: [UInt8]
    /// The payload, read once for all comparisons.
    let json: PlainJSON
    /// The change set that was made, or the number of the one that was decided.
    let about: About?
  }

  private enum About {
    case made(Int, UUID)
    case decided(Int)
    case discarded([ConflictName])
    /// A state of the server's history of this name.
    case base(epoch: String?)
  }

  private let log: SimulatedLog
  /// After how many records the keeper takes a snapshot.
  private let snapshotEvery: Int
  private var keeper: RecordKeeper<ReplicaRecord>?
  private var completions = SimulatedCompletions()
  /// What was written, each at the place of its number less one.
  private var entries: [Entry] = []
  /// The last record that this process has begun with, and the last one that it was told to be safe.
  private var old = 0
  private var reported = 0
  /// What the root was called before there was a server.
  private(set) var ownRoot: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    snapshotEvery = random.chance(0.05) ? 1 : random.number(in: 4...60)
  }

  /// A client starts: what it begins with, if there was one before.
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
    let written = entries.dropFirst(snapshot?.sequence ?? 0).map { ($0.kind, $0.payload) }
    if !history.records.map(\.line).elementsEqual(written, by: ==) {
      log.note("A client's log does not hold what was written to it")
    }
  }

  /// The keeper of a process that begins with ``history()``, as a client makes it.
  func begin(
    ticker: Ticker, replica: @escaping () -> Replica?
  ) -> RecordKeeper<ReplicaRecord> {
    completions = SimulatedCompletions()
    let keeper = RecordKeeper<ReplicaRecord>(
      ticker: ticker, completions: completions, tail: log.records.opening.tailCount,
      snapshotEvery: snapshotEvery,
      owner: .init(
        append: { [unowned self] record throws(LogError) in write(record) },
        stored: { [unowned self] count in
          reported = old + count
          replica()?.stored(count)
        },
        snapshot: { [log] in
          guard let history = replica()?.history else { return nil }
          let last = log.records.lastSequence
          return RecordSnapshot(carried: history.pending.count) { [log] in
            ClientLog(log.records).snapshot(history, at: last, then: $0)
          }
        }, note: { _ in }))
    self.keeper = keeper
    return keeper
  }

  /// Lets the disk work until now, and tells the client what came of it.
  func settle(now: Duration) {
    setTime(now)
    _ = log.durable(now: now)
    completions.deliver()
  }

  /// What is written from now on is written at this time.
  func setTime(_ now: Duration) { log.setTime(now) }

  private func write(_ record: ReplicaRecord) -> LogReceipt {
    let line = record.line
    if case .named(_, let root) = record, ownRoot == nil { ownRoot = root.uuidString.lowercased() }
    let about: About? =
      switch record {
      case .made(let number, let set): .made(number, set.id)
      case .decided(let decided): .decided(decided.number)
      case .base(let base): .base(epoch: base.position?.epoch)
      case .discarded(let names): .discarded(names)
      default: nil
      }
    entries.append(
      Entry(
        kind: line.kind, payload: line.payload, json: PlainJSON(line.payload) ?? .null,
        about: about))
    let receipt = log.append(outlivesProcess: true) { records throws(LogError) in
      try ClientLog(records).append(record)
    }
    if receipt.sequence != entries.count {
      log.note("A client's record \(entries.count) has got the number \(receipt.sequence)")
    }
    return receipt
  }

  /// When the disk has done something.
  var deadline: Duration? { log.deadline }

  func fail(_ pick: Int) { log.fail(pick) }

  func takeProblems() -> [String] { log.takeProblems() }

  /// The client's memory is gone, and with it what was not safe: all of that, or the end of it. A process that
  /// is killed leaves all that it has written.
  ///
  /// - Returns: whether everything has to be there that the client has shown.
  func crash(now: Duration) -> Bool {
    keeper = nil
    let isKept = log.crash(now: now)
    let kept = min(log.records.lastSequence, entries.count)
    entries.removeLast(entries.count - kept)
    // Nobody has heard of the first name, either.
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
      case .discarded, .base, nil: break
      }
    }
    return open.map(\.set)
  }

  /// What the next process has to know of that does not count. `set` gives the set of this name, and what was
  /// learned of it.
  func losses(
    root: String, _ set: (UUID) -> (SubmittedSet, [SubmittedSet.Loss])?
  ) -> [KnownLoss] {
    var losses: [KnownLoss] = []
    // A number is given again when the set that had it was forgotten in a crash.
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
      case .base, nil: break
      }
    }
    return losses
  }

  /// What was written, in order.
  var lines: [(kind: LogKind, json: PlainJSON)] { entries.map { ($0.kind, $0.json) } }

  /// The server's history that the confirmed state is of.
  var epoch: String? {
    for entry in entries.reversed() { if case .base(let epoch)? = entry.about { return epoch } }
    return nil
  }

  /// Whether a set of this number will be there after a crash.
  func keepsSet(_ number: Int, now: Duration) -> Bool {
    entries.prefix(log.durable(now: now)).contains { entry in
      if case .made(number, _)? = entry.about { true } else { false }
    }
  }

  /// Up to which number it will be known after a crash what became of the sets.
  func keptDecisions(now: Duration) -> Int {
    let safe = log.durable(now: now)
    var open: Set<Int> = []
    for (place, entry) in entries.enumerated() {
      switch entry.about {
      case .made(let number, _): open.insert(number)
      case .decided(let number) where place < safe: open.remove(number)
      case .decided, .discarded, .base, nil: break
      }
    }
    return (open.min() ?? lastNumber + 1) - 1
  }

  /// The number of the last change set.
  var lastNumber: Int {
    entries.reduce(0) { last, entry in
      if case .made(let number, _)? = entry.about { max(last, number) } else { last }
    }
  }
}
