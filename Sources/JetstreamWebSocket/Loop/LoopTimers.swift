/// The work that a loop is to do at given times, as a binary heap.
struct LoopTimers {
  private struct Entry {
    let time: Duration
    /// The number of entries before this one: those of one time are taken in their order.
    let number: UInt64
    let work: @Sendable () -> Void

    func precedes(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
  }

  private var heap: ContiguousArray<Entry> = []
  private var lastNumber: UInt64 = 0

  /// The earliest time; nil if there is no work.
  var first: Duration? { heap.first?.time }

  mutating func add(_ time: Duration, _ work: @escaping @Sendable () -> Void) {
    lastNumber += 1
    heap.append(Entry(time: time, number: lastNumber, work: work))
    var at = heap.count - 1
    while at > 0, heap[at].precedes(heap[(at - 1) / 2]) {
      heap.swapAt(at, (at - 1) / 2)
      at = (at - 1) / 2
    }
  }

  /// Removes and returns the work whose time has come, the earliest first.
  mutating func takeDue(at now: Duration) -> [@Sendable () -> Void] {
    var due: [@Sendable () -> Void] = []
    while let first, first <= now { due.append(removeFirst()) }
    return due
  }

  private mutating func removeFirst() -> @Sendable () -> Void {
    heap.swapAt(0, heap.count - 1)
    let entry = heap.removeLast()
    var at = 0
    while true {
      var next = 2 * at + 1
      guard next < heap.count else { return entry.work }
      if next + 1 < heap.count, heap[next + 1].precedes(heap[next]) { next += 1 }
      guard heap[next].precedes(heap[at]) else { return entry.work }
      heap.swapAt(at, next)
      at = next
    }
  }
}
