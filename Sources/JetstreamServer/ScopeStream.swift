import Foundation
import Jetstream

/// The change set accepted at one sequence, as sessions are sent it. It never changes, and many hold it.
final class StreamItem: Sendable {
  /// The client that has made the change set, and the number that it has given it.
  struct Author: Hashable, Sendable {
    let client: UUID
    let number: Int
  }

  let sequence: Int
  let author: Author?
  /// The author, date and message of the change set.
  let origin: ChangeOrigin
  /// The fragments that were applied. Models that came back without being added come first.
  let fragments: [SyncFragment]
  /// The JSON text of ``fragments``, if it was made already.
  let text: FragmentsText?
  /// The same change set with values instead of operations; nil if no session needs that.
  let whole: [SyncFragment]?
  /// The added models that no session had before.
  let newcomers: Set<UUID>
  /// The replies to the fragments that the client has sent, in their order; empty if all were accepted as they were, and
  /// for a change set of the server's own.
  let replies: [FragmentReply]

  init(
    sequence: Int, author: Author?, origin: ChangeOrigin, fragments: [SyncFragment],
    text: FragmentsText? = nil, whole: [SyncFragment]?, newcomers: Set<UUID>,
    replies: [FragmentReply] = []
  ) {
    (self.sequence, self.author, self.origin) = (sequence, author, origin)
    (self.fragments, self.text, self.whole) = (fragments, text, whole)
    (self.newcomers, self.replies) = (newcomers, replies)
  }
}

/// The most recent change sets of a scope, for clients that come back. A client that has missed more gets the full
/// state.
package struct ScopeStream {
  /// The amount that is kept: at least this much, at most about twice as much.
  package struct Limit {
    /// The number of change sets; fewer are kept if they have more ``bytes``.
    package var sets: Int
    /// The approximate size of the change sets on the wire. The last change set is kept whatever its size.
    package var bytes: Int
  }

  private var items: [StreamItem] = []
  /// For each item, ``totalBytes`` once it was appended.
  private var ends: [Int] = []
  /// The approximate size of the items in bytes.
  private(set) var bytes = 0
  /// The approximate size in bytes of all items ever appended.
  private(set) var totalBytes = 0
  let limit: Limit

  init(limit: Limit) { self.limit = limit }

  mutating func append(_ item: StreamItem) {
    let size = item.roughSize
    items.append(item)
    bytes += size
    totalBytes += size
    ends.append(totalBytes)
    // Half of the items are dropped at once, so that the cost of each append stays negligible.
    if items.count > 2 * limit.sets || bytes > 2 * limit.bytes { trim() }
  }

  private mutating func trim() {
    var excess = 0
    while excess < items.count - 1, items.count - excess > limit.sets || bytes > limit.bytes {
      excess += 1
      bytes = totalBytes - ends[excess - 1]
    }
    items.removeFirst(excess)
    ends.removeFirst(excess)
  }

  /// Returns the approximate size in bytes of all items ever appended up to a sequence; of those that were dropped, if the
  /// sequence is among them.
  func totalBytes(upTo sequence: Int) -> Int {
    guard let first = items.first?.sequence, sequence >= first else { return totalBytes - bytes }
    return ends[min(sequence - first, ends.count - 1)]
  }

  /// All items, in order.
  var all: [StreamItem] { items }

  /// The sequence before the first item; nil if there are no items.
  var start: Int? { items.first.map { $0.sequence - 1 } }

  /// Returns the sequence of the last change set that a client has made up to a sequence. If the stream has none, that is
  /// the sequence before its first. Cost: O(number of items).
  func lastSequence(by client: UUID, upTo sequence: Int) -> Int {
    guard let first = items.first?.sequence else { return sequence }
    let count = min(items.count, max(0, sequence + 1 - first))
    return items[..<count].last { $0.author?.client == client }?.sequence ?? first - 1
  }

  /// Returns the items after `sequence`; nil if some of them were dropped, or if `sequence` is after `last`.
  func items(after sequence: Int, upTo last: Int) -> ArraySlice<StreamItem>? {
    if sequence == last { return [] }
    guard sequence < last, let first = items.first, first.sequence <= sequence + 1 else {
      return nil
    }
    return items[(sequence + 1 - first.sequence)...]
  }
}

extension StreamItem {
  /// The approximate size of the change set in bytes.
  fileprivate var roughSize: Int {
    fragments.reduce(0) { $0 + $1.roughSize } + (whole ?? []).reduce(0) { $0 + $1.roughSize }
  }
}
