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
  /// What its maker has said of it.
  let origin: ChangeOrigin
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

  /// All that is known, in order.
  var all: [StreamItem] { items }

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

extension Array<SyncFragment> {
  /// Tells sets apart that have the same number.
  var checksum: UInt32 {
    var bytes: [UInt8] = []
    for fragment in self { fragment.write(to: &bytes) }
    return LogChecksum.of(bytes)
  }
}
