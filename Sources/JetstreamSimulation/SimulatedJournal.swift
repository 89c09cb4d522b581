import Foundation
import Jetstream
import JetstreamServer

/// The disk of a server that promises to be durable: what is written is safe only after a while, and
/// what is not safe is gone with the server.
final class SimulatedJournal {
  /// A record in the form in which it stands on the disk.
  private struct Entry {
    let bytes: [UInt8]
    let safeAt: Duration
    let content: Content
  }

  /// What a record is about.
  struct Content {
    /// The server's own set, if it is one.
    let own: SubmittedSet?
    let decision: ScopeRecord.Decision?
    let fragments: [SyncFragment]
  }

  private var random: SimulationRandom
  private let delay: ClosedRange<Int>
  private let forgets: Bool
  /// What the records begin with.
  private var base: ScopeHistory?
  private var entries: [Entry] = []
  /// How many of the entries there were when the server started.
  private var old = 0
  private var reported = 0
  /// Which history it is; nil as long as there is none.
  private(set) var epoch: String?

  init(random: SimulationRandom, delay: ClosedRange<Int>, forgets: Bool) {
    self.random = random
    self.delay = delay
    self.forgets = forgets
  }

  /// A server starts: what it begins with, if there was one before.
  func history() -> ScopeHistory? {
    guard var history = base else { return nil }
    for entry in entries {
      guard let json = try? JSONValue(parsing: entry.bytes),
        let record = try? ScopeRecord(json: json)
      else { preconditionFailure("A record of the journal cannot be read.") }
      history.records.append(record)
    }
    return history
  }

  /// The server has begun with `history`: now and then, everything until then becomes one state.
  func begin(_ history: ScopeHistory) {
    if base == nil || random.chance(0.5) {
      base = history
      entries = []
    }
    epoch = epoch ?? history.epoch
    (old, reported) = (entries.count, 0)
  }

  func write(_ record: ScopeRecord, own: SubmittedSet?, now: Duration) {
    let safeAt = max(
      entries.last?.safeAt ?? .zero, now + .milliseconds(random.number(in: delay)))
    let content = Content(
      own: record.decision == nil ? own : nil, decision: record.decision,
      fragments: record.fragments)
    entries.append(
      Entry(bytes: Array(record.json.text.utf8), safeAt: safeAt, content: content))
  }

  /// The next record that is safe by now, and how many there are with it that this server has written;
  /// nil if there is none.
  func nextSafe(now: Duration) -> (count: Int, Content)? {
    guard let next = entries.dropFirst(old + reported).first, next.safeAt <= now else { return nil }
    reported += 1
    return (reported, next.content)
  }

  /// When the next record is safe.
  var deadline: Duration? { entries.dropFirst(old + reported).first?.safeAt }

  /// An old copy is put in its place, which begins another history. Gives the decisions that are gone with
  /// what was written since.
  func lose(_ pick: Int, epoch: String) -> [ScopeRecord.Decision] {
    let told = old + reported
    let kept = told * (pick % 10) / 10
    let lost = entries[kept..<told].compactMap(\.content.decision)
    entries.removeLast(entries.count - kept)
    base?.epoch = epoch
    self.epoch = epoch
    return lost
  }

  /// The server's memory is gone, and with it what was not safe: all of that, or the end of it. Gives what
  /// is there although nobody was told.
  func crash(now: Duration) -> [Content] {
    // What an earlier server has left is safe: the next one has gone on from it.
    let own = entries.dropFirst(old).prefix { $0.safeAt <= now }.count
    let safe = forgets ? old : old + own
    let kept = forgets ? safe : random.number(in: safe...max(safe, entries.count))
    entries.removeLast(entries.count - kept)
    return entries.dropFirst(old + reported).map(\.content)
  }
}
