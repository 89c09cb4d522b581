import Foundation
import Jetstream

/// What was accepted at one place of a scope's order, as the sessions are told.
struct StreamItem {
  /// Whose set it is, for clients that number their sets.
  struct Author: Hashable {
    let client: UUID
    let number: Int
  }

  let sequence: Int
  let author: Author?
  /// What was done. Models that came back without being added are in front.
  let fragments: [SyncFragment]
  /// The same with values, if there are sessions that know no operations.
  let whole: [SyncFragment]?
  /// The models in it that nobody had before.
  let newcomers: Set<UUID>
}

/// The newest part of a scope's order, for clients that were away.
struct ScopeStream {
  private var items: [StreamItem] = []
  /// How many items are kept.
  let limit: Int

  init(limit: Int) { self.limit = limit }

  mutating func append(_ item: StreamItem) {
    items.append(item)
    // By halves, so that it costs nothing worth mentioning for each.
    if items.count > 2 * limit { items.removeFirst(items.count - limit) }
  }

  /// The place in front of the first that is known; nil if none is.
  var start: Int? { items.first.map { $0.sequence - 1 } }

  /// What came after a place; nil if that is not known any more.
  func items(after sequence: Int, upTo last: Int) -> ArraySlice<StreamItem>? {
    if sequence == last { return [] }
    guard sequence < last, let first = items.first, first.sequence <= sequence + 1 else {
      return nil
    }
    return items[(sequence + 1 - first.sequence)...]
  }
}

/// Which sets of a client were decided, and how, as far as the client does not know it.
struct ClientDecisions {
  /// How a set that has come stands to what was decided.
  enum Verdict {
    case new
    case decided([FragmentReply])
    /// Another set had this number: the client, or the server, is not what it was.
    case contradiction
  }

  private(set) var decided = 0
  private(set) var lastChecksum: UInt32 = 0
  private(set) var decisions: [ScopeStanding.Decision] = []
  /// Those of the sets that ``decisions`` are of, by number.
  private(set) var checksums: [Int: UInt32] = [:]

  init() {}

  init(_ history: ScopeHistory.Client) {
    decided = history.decided
    lastChecksum = history.checksum
    decisions = history.decisions
    checksums = history.checksums
  }

  /// What another process has to know of it.
  var history: ScopeHistory.Client {
    var history = ScopeHistory.Client(
      decided: decided, checksum: lastChecksum, decisions: decisions)
    history.checksums = checksums
    return history
  }

  /// What is to be said of a set before it is looked at.
  func verdict(on number: Int, checksum: UInt32) -> Verdict {
    if number > decided { return .new }
    if number == decided, checksum != lastChecksum { return .contradiction }
    guard let known = decisions.first(where: { $0.number == number }),
      checksums[number].map({ $0 == checksum }) ?? true
    else { return .contradiction }
    return .decided(known.fragmentReplies)
  }

  /// - Parameter sequence: the place in the order, if something was done.
  mutating func decide(_ decision: ScopeRecord.Decision, at sequence: Int?) {
    decided = decision.number
    lastChecksum = decision.checksum
    checksums[decision.number] = decision.checksum
    decisions.append(
      .init(
        number: decision.number, fragmentReplies: decision.fragmentReplies, sequence: sequence))
  }

  /// The client knows what became of its sets up to a number. The last decision is kept, to recognise its
  /// set by.
  mutating func forget(upTo number: Int) {
    let known = decisions.prefix { $0.number <= number && $0.number < decided }
    if known.isEmpty { return }
    for decision in known { checksums[decision.number] = nil }
    decisions.removeFirst(known.count)
  }

  /// Those that the client does not know, in order.
  func unknown(after number: Int) -> [ScopeStanding.Decision] {
    decisions.filter { $0.number > number }
  }
}

extension Array<SyncFragment> {
  /// Tells sets apart that have the same number.
  var checksum: UInt32 {
    var bytes: [UInt8] = []
    for fragment in self { fragment.write(to: &bytes) }
    return LogChecksum.of(bytes)
  }
}
