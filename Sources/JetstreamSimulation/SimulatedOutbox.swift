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
  private var random: SimulationRandom
  /// What was written, each at the place of its number less one.
  private var entries: [Entry] = []
  /// The last record that this process has begun with, and the last one that it was told to be safe.
  private var old = 0
  private var reported = 0
  /// How many records there were when the last snapshot was asked for.
  private var snapshotAt = 0
  /// What the root was called before there was a server.
  private(set) var ownRoot: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    var random = random
    log = SimulatedLog(random: SimulationRandom(seed: random.next()), delay: delay)
    self.random = random
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

  func write(_ record: ReplicaRecord, now: Duration) {
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
    let number = log.append(now: now) { records throws(LogError) in
      try ClientLog(records).append(record)
    }
    if number != entries.count {
      log.note("A client's record \(entries.count) has got the number \(number)")
    }
  }

  /// How many records of this process are safe by now; nil if no more than before.
  func nextSafe(now: Duration) -> Int? {
    let safe = min(log.durable(now: now), entries.count)
    guard safe > reported else { return nil }
    reported = safe
    return safe - old
  }

  /// When the disk has done something.
  var deadline: Duration? { log.deadline }

  func fail(_ pick: Int) { log.fail(pick) }

  func takeProblems() -> [String] { log.takeProblems() }

  /// Now and then everything until now becomes one state.
  func snapshotIfDue(_ history: @autoclosure () -> ReplicaHistory?, now: Duration) {
    guard reported == entries.count, entries.count - snapshotAt > 20, random.chance(0.1),
      let history = history()
    else { return }
    snapshotAt = entries.count
    log.begin(now: now) { ClientLog($0).snapshot(history, at: $0.lastSequence) { _ in } }
  }

  /// The client's memory is gone, and with it what was not safe: all of that, or the end of it.
  func crash(now: Duration) {
    log.crash(now: now)
    let kept = min(log.records.lastSequence, entries.count)
    entries.removeLast(entries.count - kept)
    snapshotAt = min(snapshotAt, kept)
    // Nobody has heard of the first name, either.
    if entries.isEmpty { ownRoot = nil }
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
