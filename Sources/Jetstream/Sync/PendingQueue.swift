/// The pending change sets of a replica, in the order of their numbers.
///
/// Mostly the first one is decided first. Removing it costs O(1) on average, however many wait behind it.
struct PendingQueue: RandomAccessCollection, MutableCollection {
  /// Places in front of `head` are empty, all others are not.
  private var entries: ContiguousArray<Replica.Pending?> = []
  private var head = 0

  var startIndex: Int { 0 }
  var endIndex: Int { entries.count - head }

  subscript(place: Int) -> Replica.Pending {
    get { entries[head + place]! }
    _modify { yield &entries[head + place]! }
  }

  /// Returns the place of the change set that a message has carried; nil if none of the first `sent` sets has this
  /// message's index. Messages are numbered in the order of the sets, and only sets in front of all those were
  /// decided before. Cost: O(log n).
  func place(sentIn messageIndex: Int, among sent: Int) -> Int? {
    var (low, high) = (0, Swift.min(sent, count))
    while low < high {
      let middle = (low + high) / 2
      if self[middle].messageIndex ?? -1 < messageIndex { low = middle + 1 } else { high = middle }
    }
    return low < Swift.min(sent, count) && self[low].messageIndex == messageIndex ? low : nil
  }

  mutating func append(_ entry: Replica.Pending) { entries.append(entry) }

  /// Cost: O(n) in the sets behind the place.
  mutating func insert(_ entry: Replica.Pending, at place: Int) {
    entries.insert(entry, at: head + place)
  }

  /// Removes a change set. Cost: O(n) in the sets behind it, but O(1) for the first one.
  mutating func remove(at place: Int) -> Replica.Pending {
    let entry = self[place]
    guard place == 0 else {
      entries.remove(at: head + place)
      return entry
    }
    entries[head] = nil
    head += 1
    if head == entries.count {
      removeAll()
    } else if head > 64, head > entries.count / 2 {
      entries.removeFirst(head)
      head = 0
    }
    return entry
  }

  mutating func removeAll() { (entries, head) = ([], 0) }
}
