/// The amount of work that may be done before others have their turn, counted in fragments and differences: a clock would
/// make a judgement depend on the machine.
struct WorkBudget {
  private(set) var left: Int

  init(_ amount: Int) { left = amount }

  static var unlimited: WorkBudget { WorkBudget(.max) }

  var isSpent: Bool { left <= 0 }

  /// Takes out what a walk from `position` to `end` costs, or as much of it as there is. Returns the part to walk now.
  mutating func take(from position: Int, to end: Int) -> Range<Int> {
    let count = min(max(0, left), end - position)
    left -= count
    return position..<position + count
  }

  /// Takes out the cost of work that is done in one piece, even if that is more than there is.
  mutating func take(_ amount: Int) { left -= amount }
}
