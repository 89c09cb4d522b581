import Foundation
import Jetstream

/// The disk of a client that promises to be durable: what is written is safe only after a while, and what
/// is not safe may be gone with the client.
final class SimulatedOutbox {
  /// A record in the form in which it stands on the disk.
  private struct Entry {
    let kind: LogKind
    let payload: [UInt8]
    let safeAt: Duration
    /// The change set that was made, or the number of the one that was decided.
    let about: About?
  }

  private enum About {
    case made(Int, UUID)
    case decided(Int)
    /// A state of the server's history of this name.
    case base(epoch: String?)
  }

  private var random: SimulationRandom
  private let delay: ClosedRange<Int>
  /// What the records begin with.
  private var base: ReplicaHistory?
  private var entries: [Entry] = []
  /// How many this process has written, and of how many of them it was told that they are safe.
  private var written = 0
  private var reported = 0
  /// What the root was called before there was a server.
  private(set) var ownRoot: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>) {
    self.random = random
    self.delay = delay
  }

  /// A client starts: what it begins with, if there was one before.
  func history() -> ReplicaHistory? {
    var history = base
    for entry in entries {
      guard let json = try? JSONValue(parsing: entry.payload),
        let record = try? ReplicaRecord(entry.kind, json: json)
      else { preconditionFailure("A record of a client's disk cannot be read.") }
      if case .named(let client, let root) = record, history == nil {
        history = ReplicaHistory(client: client, root: root)
      }
      history?.records.append(record)
    }
    (written, reported) = (0, 0)
    return history
  }

  func write(_ record: ReplicaRecord, now: Duration) {
    let safeAt = max(
      entries.last?.safeAt ?? .zero, now + .milliseconds(random.number(in: delay)))
    let line = record.line
    if case .named(_, let root) = record, ownRoot == nil { ownRoot = root.uuidString.lowercased() }
    let about: About? =
      switch record {
      case .made(let number, let set): .made(number, set.id)
      case .decided(let decided): .decided(decided.number)
      case .base(let base): .base(epoch: base.position?.epoch)
      default: nil
      }
    written += 1
    entries.append(
      Entry(kind: line.kind, payload: line.payload, safeAt: safeAt, about: about))
  }

  private var unreported: ArraySlice<Entry> { entries.suffix(written - reported) }

  /// How many records of this process are safe by now; nil if no more than before.
  func nextSafe(now: Duration) -> Int? {
    let safe = unreported.prefix { $0.safeAt <= now }.count
    reported += safe
    return safe > 0 ? reported : nil
  }

  /// When the next record is safe.
  var deadline: Duration? { unreported.first?.safeAt }

  /// Now and then everything until now becomes one state.
  func snapshotIfDue(_ history: @autoclosure () -> ReplicaHistory?) {
    guard unreported.isEmpty, entries.count > 20, random.chance(0.1), let history = history() else {
      return
    }
    base = history
    entries = []
  }

  /// The client's memory is gone, and with it what was not safe: all of that, or the end of it.
  func crash(now: Duration) {
    let safe = entries.count - unreported.drop { $0.safeAt <= now }.count
    entries.removeLast(entries.count - random.number(in: safe...max(safe, entries.count)))
    // Nobody has heard of the first name, either.
    if base == nil, entries.isEmpty { ownRoot = nil }
  }

  /// The change sets that the next process has to bring back, in their order.
  var undecided: [UUID] {
    var open: [(number: Int, set: UUID)] = []
    for entry in entries {
      switch entry.about {
      case .made(let number, let set): open.append((number, set))
      case .decided(let number): open.removeAll { $0.number == number }
      case .base, nil: break
      }
    }
    return open.map(\.set)
  }

  /// The server's history that the confirmed state is of.
  var epoch: String? {
    for entry in entries.reversed() { if case .base(let epoch)? = entry.about { return epoch } }
    return base?.base?.position?.epoch
  }

  /// Whether a set of this number will be there after a crash.
  func keepsSet(_ number: Int, now: Duration) -> Bool {
    number < base?.nextNumber ?? 1
      || entries.contains { entry in
        if case .made(number, _)? = entry.about { entry.safeAt <= now } else { false }
      }
  }

  /// Up to which number it will be known after a crash what became of the sets.
  func keptDecisions(now: Duration) -> Int {
    var open: Set<Int> = []
    for entry in entries {
      switch entry.about {
      case .made(let number, _): open.insert(number)
      case .decided(let number) where entry.safeAt <= now: open.remove(number)
      case .decided, .base, nil: break
      }
    }
    return (open.min() ?? lastNumber + 1) - 1
  }

  /// The number of the last change set.
  var lastNumber: Int {
    entries.reduce((base?.nextNumber ?? 1) - 1) { last, entry in
      if case .made(let number, _)? = entry.about { max(last, number) } else { last }
    }
  }
}
