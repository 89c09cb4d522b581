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

/// The newest part of a scope's order, for clients that were away. One that asks for more gets the full state.
struct ScopeStream {
  /// How much is kept at least; at most twice as much.
  struct Limit {
    let sets: Int
    /// Of the change sets on the wire, roughly. The last set is kept whatever its size is.
    let bytes: Int
  }

  private var items: [StreamItem] = []
  private var sizes: [Int] = []
  /// About how many bytes the items take.
  private(set) var bytes = 0
  /// The same of all that were ever appended.
  private(set) var totalBytes = 0
  let limit: Limit

  init(limit: Limit) { self.limit = limit }

  mutating func append(_ item: StreamItem) {
    let size = item.roughSize
    items.append(item)
    sizes.append(size)
    bytes += size
    totalBytes += size
    // By halves, so that it costs nothing worth mentioning for each.
    if items.count > 2 * limit.sets || bytes > 2 * limit.bytes { trim() }
  }

  private mutating func trim() {
    var excess = 0
    while excess < items.count - 1, items.count - excess > limit.sets || bytes > limit.bytes {
      bytes -= sizes[excess]
      excess += 1
    }
    items.removeFirst(excess)
    sizes.removeFirst(excess)
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

extension StreamItem {
  /// About how many bytes it takes.
  fileprivate var roughSize: Int {
    fragments.reduce(0) { $0 + $1.roughSize } + (whole ?? []).reduce(0) { $0 + $1.roughSize }
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
