/// The stretch of a query's rows that a limit lets through.
///
/// It stands between the filters and the rows that are shown. It has all rows that the filters let through, in the order
/// of the query; of the steps of a tick it makes those of the rows that are shown. A row that comes into the window or
/// leaves it only because others have come or gone is one more step. So the rest of the query, its sections among it,
/// knows nothing of limits.
final class RowWindow {
  /// The order of all rows. With sections, the rows that are shown have further keys in front.
  let columns: [KeyColumn]
  private let limit: Int
  private let offset: Int
  private var order = OrderTree()

  init(limit: Int, offset: Int, columns: [KeyColumn]) {
    self.limit = limit
    self.offset = offset
    self.columns = columns
  }

  /// True if the filters let the row at `slot` through, as far as the window knows.
  func contains(_ slot: Int) -> Bool { order.contains(slot) }

  /// The ranks of the window in an order of `count` rows.
  private func ranks(_ count: Int) -> Range<Int> {
    let start = min(offset, count)
    return start..<start + min(limit, count - start)
  }

  /// Takes the first rows, and returns those to show. Cost: O(n log n).
  func start(_ slots: [Int], by isBefore: (Int, Int) -> Bool) -> [Int] {
    order.insert(slots, by: isBefore)
    return ranks(order.count).map { order[$0] }
  }

  /// Takes the steps of the rows that the filters let through, and returns those of the rows to show. `shown` has the
  /// rows before, `step` makes one for a row that has no step of its own.
  ///
  /// Cost: O(log n) for each step, those that are returned included.
  func steps(
    for steps: [QueryStep], shown: OrderTree, by isBefore: (Int, Int) -> Bool,
    step makeStep: (_ slot: Int, _ wasShown: Bool) -> QueryStep
  ) -> [QueryStep] {
    let oldRanks = ranks(order.count)
    let removed = steps.compactMap { $0.wasShown ? order.rank(of: $0.slot) : nil }.sorted()
    for step in steps where step.wasShown { order.remove(step.slot) }
    order.insert(steps.compactMap { $0.isShown ? $0.slot : nil }, by: isBefore)
    let inserted = steps.compactMap { $0.isShown ? order.rank(of: $0.slot) : nil }.sorted()
    let newRanks = ranks(order.count)

    var result: [QueryStep] = []
    for var step in steps {
      step.wasShown = shown.contains(step.slot)
      step.isShown = step.isShown && newRanks.contains(order.rank(of: step.slot))
      if step.wasShown || step.isShown { result.append(step) }
    }

    // Rows without a step keep their order among each other. So those of them that leave stand at either end of the
    // window as it was, and those that come at either end of the window as it is; in between are those that stay.
    Self.forBothEnds(of: oldRanks) { old in
      let before = removed.rank(of: old)
      if before < removed.count, removed[before] == old { return true }
      let new = old - before + inserted.countInFront(ofOther: old - before)
      if newRanks.contains(new) { return false }
      result.append(makeStep(order[new], true))
      return true
    }
    let stepped = Set(steps.map(\.slot))
    Self.forBothEnds(of: newRanks) { new in
      let slot = order[new]
      if stepped.contains(slot) { return true }
      if shown.contains(slot) { return false }
      result.append(makeStep(slot, false))
      return true
    }
    return result
  }

  /// Calls `body` with the elements from the front on until it returns false, then with those from the back on until it
  /// does so again. Each is visited at most once but for the one at which it has stopped.
  private static func forBothEnds(of range: Range<Int>, _ body: (Int) -> Bool) {
    var low = range.lowerBound
    while low < range.upperBound, body(low) { low += 1 }
    var high = range.upperBound
    while high > low, body(high - 1) { high -= 1 }
  }
}

extension [Int] {
  /// Returns how many elements of a sorted array are less than `value`.
  func rank(of value: Int) -> Int { firstOffset { self[$0] >= value } }

  /// Returns how many of the places in a sorted array stand in front of the one with `index`, counted from 0, of all
  /// other places.
  fileprivate func countInFront(ofOther index: Int) -> Int { firstOffset { self[$0] - $0 > index } }

  /// The first offset for which `isBehind` is true, as it is for all that follow.
  private func firstOffset(where isBehind: (Int) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if isBehind(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
