/// Inserting many slots at once.
extension OrderTree {
  /// Inserts `new` by an order in which what is in the tree already stands. Cost: O(log n) comparisons for each, or
  /// O(n) for a large part of all.
  mutating func insert(_ new: [Int], by isBefore: (Int, Int) -> Bool) {
    if new.count > 32, new.count > count / 8 {
      rebuild(Self.merge(slots, new.sorted(by: isBefore), isBefore))
    } else {
      for slot in new { insert(slot) { isBefore(slot, $0) } }
    }
  }

  private static func merge(
    _ old: ContiguousArray<Int>, _ new: [Int], _ isBefore: (Int, Int) -> Bool
  ) -> ContiguousArray<Int> {
    if old.isEmpty { return ContiguousArray(new) }
    var result: ContiguousArray<Int> = []
    result.reserveCapacity(old.count + new.count)
    var next = 0
    for slot in old {
      while next < new.count, isBefore(new[next], slot) {
        result.append(new[next])
        next += 1
      }
      result.append(slot)
    }
    result.append(contentsOf: new[next...])
    return result
  }
}
