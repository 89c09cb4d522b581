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

  /// Stands in the places of items that a stream has dropped.
  fileprivate static let dropped = StreamItem(
    sequence: 0, author: nil, origin: ChangeOrigin(), fragments: [], whole: nil, newcomers: [])
}

/// The most recent change sets of a scope, for clients that come back and for sessions that are behind. A client that has
/// missed more gets the full state.
///
/// A scope keeps change sets of a few times its full state's size: with more, a client that has missed them all is better
/// off with the state. See ``Extent``. A class, since many look at it for each change set.
package final class ScopeStream {
  /// An amount of change sets.
  package struct Limit {
    /// The number of change sets.
    package var sets: Int
    /// The approximate size of the change sets on the wire.
    package var bytes: Int
  }

  /// The amount that is kept: at least this much, at most about twice as much.
  package struct Extent {
    /// The number of change sets; fewer are kept if they have more bytes.
    package var sets: Int
    /// The approximate size of the change sets on the wire, for a scope with a large full state, or one that is not
    /// measured yet. The last change set is kept whatever its size.
    package var bytes: Int
    /// The same for a scope with a small full state, unless ``bytes`` is less. A client that was away for a moment goes
    /// on from these: it compares nothing, and is told whose change sets have overwritten its own. They are not fewer
    /// than what waits for a client of version 1, see ``ServerEngine/Configuration/absentLimit``.
    package var leastBytes = 256 << 10
    /// The number of full states that take as many bytes as is kept in between.
    package var states = 2
    /// The approximate size of the full state from which on the scope takes no more models and no longer values; nil for
    /// no limit. States are measured up to this size, too.
    package var scopeBytes: Int?
  }

  // No access to those that are marked is open while other code runs: items run none when they are released.
  /// The items, behind those that were dropped.
  @exclusivity(unchecked) private var places: [StreamItem] = []
  /// For each place, ``totalBytes`` once its item was appended.
  @exclusivity(unchecked) private var ends: [Int] = []
  /// The number of places whose items were dropped.
  @exclusivity(unchecked) private var droppedCount = 0
  /// The number of these whose items were released: with each new item, a few are. Many at once would hold up all others, and
  /// their memory would be in no cache when it is needed again.
  @exclusivity(unchecked) private var releasedCount = 0
  /// The approximate size of the items in bytes.
  @exclusivity(unchecked) private(set) var bytes = 0
  /// The approximate size in bytes of all items ever appended.
  @exclusivity(unchecked) private(set) var totalBytes = 0
  let limit: Extent
  /// Measuring it reads models, whose values may be code of the app.
  private var state: StateSize
  /// The approximate size of the change sets that are kept, at least.
  @exclusivity(unchecked) private(set) var keptBytes: Int

  init(limit: Extent) {
    self.limit = limit
    state = StateSize(limit)
    keptBytes = limit.bytes
  }

  private var items: ArraySlice<StreamItem> { places[droppedCount...] }

  private var count: Int { places.count - droppedCount }

  func append(_ item: StreamItem) {
    let size = item.roughSize
    places.append(item)
    bytes += size
    totalBytes += size
    ends.append(totalBytes)
    trimIfDue()
    release(4)
  }

  /// True if a part of the full state is to be measured: the stream has grown enough since the last time.
  var isMeasurementDue: Bool { state.isDue(at: totalBytes) }

  /// Measures a part of the full state if that is due, and keeps change sets accordingly. Cost: O(1), or once for so many bytes
  /// of the stream, that of reading a few hundred models.
  func measureState(of content: any HostedContent) {
    if isMeasurementDue, state.measure(content, at: totalBytes) { keepWorth() }
  }

  /// Measures the full state of a scope with a limit on its size from its beginning to its end. Cost: O(n).
  func measureWholeState(of content: any HostedContent) {
    while !state.measure(content, at: totalBytes) {}
    keepWorth()
  }

  /// Reads a part of the state of a scope that is about to refuse a change set. Returns the effort, in models that were read:
  /// 0 if nothing has changed since the state was measured.
  func measureForRefusal(_ content: any HostedContent) -> Int {
    defer { keepWorth() }
    return state.measureForRefusal(content, at: totalBytes)
  }

  /// Takes the size of a state that was measured elsewhere.
  func takeSize(bytes: Int, ofModels count: Int) {
    state.take(bytes: bytes, ofModels: count, at: totalBytes)
    keepWorth()
  }

  private func keepWorth() {
    let (wanted, before) = (state.bytes.map { max(limit.leastBytes, limit.states * $0) }, keptBytes)
    keptBytes = min(limit.bytes, wanted ?? .max)
    trimIfDue()
    // Most of what was kept goes, and it may be long until the next item.
    if keptBytes < before / 2 { release(.max) }
  }

  /// The approximate number of bytes of change sets that cost a client as much as the full state, which it compares with
  /// its own; nil if the state is too large for it to matter, or not measured yet.
  var bytesWorthState: Int? { state.bytes.map { $0 + $0 / 2 + limit.leastBytes / 4 } }

  /// Returns the approximate size of the full state by now, with this number of models; see ``StateSize``.
  func estimatedBytes(of models: Int) -> Int { state.estimate(of: models) }

  /// Changes the size of the full state by what a change set has done to it.
  func noteSize(_ change: (inout StateSize) -> Void) { change(&state) }

  private func trimIfDue() {
    // Half of the items are dropped at once, so that the cost of each append stays negligible.
    if count > 2 * limit.sets || bytes > 2 * keptBytes { trim() }
  }

  private func trim() {
    while count > 1, count > limit.sets || bytes > keptBytes {
      bytes = totalBytes - ends[droppedCount]
      droppedCount += 1
    }
  }

  /// Releases some of the items that were dropped, and the places of all once that is done.
  private func release(_ most: Int) {
    guard releasedCount < droppedCount else { return }
    let end = releasedCount + min(droppedCount - releasedCount, most)
    for place in releasedCount..<end { places[place] = .dropped }
    releasedCount = end
    guard releasedCount == droppedCount else { return }
    places.removeFirst(droppedCount)
    ends.removeFirst(droppedCount)
    (droppedCount, releasedCount) = (0, 0)
  }

  /// Returns the approximate size in bytes of all items ever appended up to a sequence; of those that were dropped, if the
  /// sequence is among them.
  func totalBytes(upTo sequence: Int) -> Int {
    guard let first = items.first?.sequence, sequence >= first else { return totalBytes - bytes }
    return ends[droppedCount + min(sequence - first, count - 1)]
  }

  /// Describes what must not be the case, a line for each.
  func checkInvariants() -> [String] {
    if count <= 1 || (count <= 2 * limit.sets && bytes <= 2 * keptBytes) { return [] }
    return ["the stream has \(count) change sets of \(bytes) bytes, of \(keptBytes)"]
  }

  /// All items, in order.
  var all: [StreamItem] { Array(items) }

  /// The highest number of a change set in the stream for each client that has made one. Cost: O(number of items).
  var lastNumbers: [UUID: Int] {
    items.reduce(into: [:]) { result, item in
      guard let author = item.author else { return }
      result[author.client] = max(result[author.client] ?? 0, author.number)
    }
  }

  /// The sequence before the first item; nil if there are no items.
  var start: Int? { items.first.map { $0.sequence - 1 } }

  /// Returns the sequence of the last change set that a client has made up to a sequence. If the stream has none, that is
  /// the sequence before its first. Cost: O(number of items).
  func lastSequence(by client: UUID, upTo sequence: Int) -> Int {
    guard let first = items.first?.sequence else { return sequence }
    let count = min(items.count, max(0, sequence + 1 - first))
    return items.prefix(count).last { $0.author?.client == client }?.sequence ?? first - 1
  }

  /// Returns the item at a sequence; nil if there is none, or if it was dropped.
  func item(at sequence: Int) -> StreamItem? {
    guard let start, sequence > start, sequence <= start + count else { return nil }
    return places[droppedCount + sequence - start - 1]
  }

  /// Returns the items after `sequence`; nil if some of them were dropped, or if `sequence` is after `last`.
  func items(after sequence: Int, upTo last: Int) -> ArraySlice<StreamItem>? {
    if sequence == last { return [] }
    guard sequence < last, let first = items.first, first.sequence <= sequence + 1 else {
      return nil
    }
    return items[(droppedCount + sequence + 1 - first.sequence)...]
  }
}

extension StreamItem {
  /// The approximate size of the change set in bytes.
  var roughSize: Int {
    (text?.bytes.count ?? fragments.roughSize) + (whole?.roughSize ?? 0)
  }
}
