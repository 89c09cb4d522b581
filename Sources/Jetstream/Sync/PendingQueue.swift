/// The pending change sets of a replica, in the order of their numbers.
///
/// Mostly the first one is decided first. Removing it costs O(1) on average, however many wait behind it.
struct PendingQueue: RandomAccessCollection, MutableCollection {
  /// Places in front of `head` are empty, all others are not.
  private var entries: ContiguousArray<PendingEntry?> = []
  private var head = 0
  /// The number of change sets, from the first one on, that were sent in this session or are decided.
  private(set) var sentCount = 0
  /// The number of change sets that the server has decided but whose sequence the replica has not reached.
  private(set) var decidedCount = 0
  /// The number of change sets, from the first one on, whose decisions stay known when the session is lost.
  private(set) var keptCount = 0
  /// The number of the last change set that was made; 0 if none was.
  var lastNumber = 0
  /// The numbers of those that call procedures with arguments: their changes are guesses.
  private(set) var calls: Set<Int> = []
  /// The change sets that a server of version 1 is sent in several messages, by number.
  var splits: [Int: SplitSet] = [:]
  /// The sizes of messages that the server has refused to read, by the numbers of the change sets that they carried.
  private(set) var refused: [Int: Int] = [:]
  /// True while a change set is undone here that could not be sent.
  var isRejecting = false

  /// The number of change sets that were not sent in this session.
  var unsentCount: Int { count - sentCount }

  /// The change set that is sent next.
  var next: PendingEntry? { unsentCount > 0 ? self[sentCount] : nil }

  /// The number up to which all change sets are decided and reached.
  var concludedNumber: Int { first.map { $0.number - 1 } ?? lastNumber }

  /// The number up to which all change sets are concluded, or their decisions kept.
  var knownNumber: Int { keptCount < count ? self[keptCount].number - 1 : lastNumber }

  /// True if the server has decided a part of a change set.
  var isPartlyDecided: Bool { splits.values.contains { !$0.decided.isEmpty } }

  var startIndex: Int { 0 }
  var endIndex: Int { entries.count - head }

  subscript(place: Int) -> PendingEntry {
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

  /// Returns the place of the change set with a number; nil if it is not pending. Cost: O(log n).
  func place(of number: Int) -> Int? {
    let place = place(after: number - 1)
    return place < count && self[place].number == number ? place : nil
  }

  /// Returns the place of the next change set whose decision is kept, if that is at a sequence; nil otherwise.
  func placeKept(at sequence: Int?) -> Int? {
    guard keptCount > 0, let sequence else { return nil }
    return self[0].decision?.sequence == sequence ? 0 : nil
  }

  /// Returns the place of the first change set with a higher number; the end if there is none. Cost: O(log n).
  func place(after number: Int) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].number > number { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Returns the number for a new change set.
  mutating func takeNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// Notes that the change sets up to a place were sent, or are decided.
  mutating func noteSent(upTo place: Int) { sentCount = Swift.max(sentCount, place + 1) }

  /// Notes the index of the message that has carried a change set, unless that is not pending any more, or waits to be
  /// sent again.
  ///
  /// - Returns: false if it was not noted.
  @discardableResult
  mutating func noteMessage(_ index: Int, of number: Int) -> Bool {
    guard let place = place(of: number), place < sentCount else { return false }
    self[place].messageIndex = index
    return true
  }

  /// Notes that the server refuses to read a change set, whose message has this size.
  mutating func refuse(_ place: Int, bytes: Int) { refused[self[place].number] = bytes }

  /// Notes the server's decision about a change set whose sequence is not reached. The caller of a procedure learns its
  /// outcome now.
  mutating func decide(_ place: Int, _ decision: ScopeStanding.Decision) {
    if !self[place].isDecided { decidedCount += 1 }
    self[place].decision = decision
    if let outcome = decision.outcome { self[place].shared.madeHandle?.tell(outcome) }
  }

  /// Keeps the decision about a change set beyond the session, if those about all before it are kept.
  mutating func keep(_ place: Int) {
    if place == keptCount { keptCount += 1 }
  }

  /// Returns the number up to which the kept decisions are at sequences that a server has reached.
  func knownNumber(upTo sequence: Int) -> Int {
    let lost = prefix(keptCount).first { ($0.decision?.sequence ?? 0) > sequence }
    return lost.map { $0.number - 1 } ?? knownNumber
  }

  /// Forgets the kept decisions about all change sets above a number: they wait to be sent again. Returns false if there are
  /// none, or once change sets behind them were sent in this session.
  mutating func forgetDecisions(after number: Int) -> Bool {
    let first = place(after: number)
    guard first < keptCount, sentCount == keptCount else { return false }
    for place in first..<keptCount { self[place].decision = nil }
    decidedCount -= keptCount - first
    (sentCount, keptCount) = (first, first)
    return true
  }

  /// Makes all change sets wait to be sent again, but for those whose decisions are kept.
  mutating func returnToWaiting() {
    (sentCount, decidedCount) = (keptCount, keptCount)
    splits = splits.filter { !$0.value.decided.isEmpty }
    for number in splits.keys { splits[number]!.sessionEnded() }
    for place in indices {
      self[place].messageIndex = nil
      if place >= keptCount { self[place].decision = nil }
    }
  }

  mutating func append(_ entry: PendingEntry) {
    entries.append(entry)
    if entry.set.arguments != nil { calls.insert(entry.number) }
  }

  /// Inserts a change set that is not decided, in a queue of which nothing was sent. Cost: O(n) in the sets behind it.
  mutating func insert(_ entry: PendingEntry) {
    // A log that says that change sets behind it are decided is wrong: the server decides them in order.
    _ = forgetDecisions(after: entry.number)
    let place = place(after: entry.number)
    entries.insert(entry, at: head + place)
    if entry.set.arguments != nil { calls.insert(entry.number) }
  }

  /// Removes a change set. Cost: O(n) in the sets behind it, but O(1) for the first one.
  mutating func remove(at place: Int) -> PendingEntry {
    let entry = self[place]
    if place < sentCount { sentCount -= 1 }
    if place < keptCount { keptCount -= 1 }
    if entry.isDecided { decidedCount -= 1 }
    if !calls.isEmpty { calls.remove(entry.number) }
    if !refused.isEmpty { refused[entry.number] = nil }
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

  mutating func removeAll() {
    (entries, head, sentCount, decidedCount, keptCount, calls) = ([], 0, 0, 0, 0, [])
    refused = [:]
  }

  /// Returns a description of every broken invariant; for tests.
  func brokenInvariants() -> [String] {
    var broken: [String] = []
    let sent = map { $0.messageIndex != nil || $0.isDecided }
    if sent.prefix(sentCount).contains(false) || sent.dropFirst(sentCount).contains(true) {
      broken.append("\(sentCount) sets should be sent, but \(sent)")
    }
    let carriers = prefix(sentCount).map { $0.messageIndex ?? -1 }
    if carriers != carriers.sorted() {
      broken.append("the sets were sent in messages \(carriers)")
    }
    let decided = count { $0.isDecided }
    if decided != decidedCount {
      broken.append("\(decidedCount) sets should be decided, but \(decided) are")
    }
    if prefix(keptCount).contains(where: { $0.decision?.sequence == nil }) {
      broken.append("\(keptCount) sets should have a decision with a sequence")
    }
    let numbers = map(\.number)
    if zip(numbers, numbers.dropFirst()).contains(where: { $0 >= $1 })
      || numbers.last ?? 0 > lastNumber
    {
      broken.append("the sets have the numbers \(numbers), the last one is \(lastNumber)")
    }
    return broken
  }
}
