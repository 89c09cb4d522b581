/// The pending change sets of a replica, in the order of their numbers.
///
/// Mostly the first one is decided first. Removing it costs O(1) on average, however many wait behind it.
struct PendingQueue: RandomAccessCollection, MutableCollection {
  /// Places in front of `head` are empty, all others are not.
  private var entries: ContiguousArray<Replica.Pending?> = []
  private var head = 0
  /// The number of change sets, from the first one on, that were sent in this session or are decided.
  private(set) var sentCount = 0
  /// The number of change sets that the server has decided but whose sequence the replica has not reached.
  private(set) var decidedCount = 0

  var startIndex: Int { 0 }
  var endIndex: Int { entries.count - head }

  subscript(place: Int) -> Replica.Pending {
    get { entries[head + place]! }
    _modify { yield &entries[head + place]! }
  }

  /// Returns the place of the change set that a message has carried; nil if none that was sent has this message's index.
  /// Messages are numbered in the order of the sets, and only sets in front of all those were
  /// decided before. Cost: O(log n).
  func place(sentIn messageIndex: Int) -> Int? {
    var (low, high) = (0, sentCount)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].messageIndex ?? -1 < messageIndex { low = middle + 1 } else { high = middle }
    }
    return low < sentCount && self[low].messageIndex == messageIndex ? low : nil
  }

  /// Notes that the change sets up to a place were sent, or are decided.
  mutating func noteSent(upTo place: Int) { sentCount = Swift.max(sentCount, place + 1) }

  /// Notes the server's decision about a change set whose sequence is not reached.
  mutating func decide(_ place: Int, _ replies: [FragmentReply]) {
    if self[place].decision == nil { decidedCount += 1 }
    self[place].decision = replies
  }

  /// Makes all change sets wait to be sent again.
  mutating func returnToWaiting() {
    (sentCount, decidedCount) = (0, 0)
    for place in indices {
      self[place].messageIndex = nil
      self[place].decision = nil
    }
  }

  mutating func append(_ entry: Replica.Pending) { entries.append(entry) }

  /// Cost: O(n) in the sets behind the place.
  mutating func insert(_ entry: Replica.Pending, at place: Int) {
    entries.insert(entry, at: head + place)
  }

  /// Removes a change set. Cost: O(n) in the sets behind it, but O(1) for the first one.
  mutating func remove(at place: Int) -> Replica.Pending {
    let entry = self[place]
    if place < sentCount { sentCount -= 1 }
    if entry.decision != nil { decidedCount -= 1 }
    guard place == 0 else {
      entries.remove(at: head + place)
      return entry
    }
    entries[head] = nil
    head += 1
    if head == entries.count {
      (entries, head) = ([], 0)
    } else if head > 64, head > entries.count / 2 {
      entries.removeFirst(head)
      head = 0
    }
    return entry
  }

  mutating func removeAll() { self = PendingQueue() }
}
