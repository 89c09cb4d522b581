import Jetstream

/// The amount of work that may be done before others have their turn, counted in fragments, operations, elements,
/// entries and differences: a clock would make a judgement depend on the machine.
///
/// Some steps are done in one piece, whatever they cost: all operations of one fragment, the consequences of rejections for
/// other fragments, lost moves, and rules of properties.
struct WorkBudget {
  private(set) var left: Int
  /// The amount of an unlimited budget that was taken out for what a change set leads to, whatever its size: the models that
  /// come and go by it.
  private(set) var effort = 0
  /// True if it is never spent.
  let isUnlimited: Bool

  /// Makes a budget.
  init(_ amount: Int) { (left, isUnlimited) = (amount, false) }

  private init() { (left, isUnlimited) = (.max, true) }

  static var unlimited: WorkBudget { WorkBudget() }

  var isSpent: Bool { left <= 0 }

  /// Takes out what a walk from `position` to `end` costs, or as much of it as there is. Returns the part to walk now.
  mutating func take(from position: Int, to end: Int) -> Range<Int> {
    if isUnlimited { return position..<end }
    let count = min(max(0, left), end - position)
    left -= count
    return position..<position + count
  }

  /// Takes out what a walk over fragments costs, from `position` on, or as much of it as there is. Returns the part to walk
  /// now.
  mutating func take(from position: Int, of fragments: [SyncFragment]) -> Range<Int> {
    if isUnlimited { return position..<fragments.count }
    var end = position
    let fragments = fragments.span
    while end < fragments.count, left > 0 {
      left -= fragments[end].size
      end += 1
    }
    return position..<end
  }

  /// Takes out the cost of work that is done in one piece, even if that is more than there is.
  mutating func take(_ amount: Int) {
    if isUnlimited { effort += amount } else { left -= amount }
  }
}

extension SyncFragment {
  /// The number of properties of a fragment that cost no more than the fragment. Classes have few; only dictionaries
  /// have any number of entries.
  private static let fewProperties = 16

  /// Returns the number of operations, of elements of arrays, of members of objects and of properties beyond a few of a
  /// fragment, and one for itself.
  fileprivate var size: Int {
    var result = 1 + max(0, properties.count - Self.fewProperties)
    let entries = operations.entries.span
    for at in entries.indices { result += entries[at].operations.count }
    let members = properties.members.span
    for at in members.indices {
      switch members[at].value {
      case .array(let elements): result += elements.count
      case .object(let object): result += object.count
      default: break
      }
    }
    return result
  }
}

extension ScopeSync {
  /// Returns true if the sizes of the fragments come to more than a number. Cost: O(n) in the fragments, up to that number.
  func isLarger(than size: Int) -> Bool {
    let all = self.fragments
    let fragments = all.span
    var left = size - fragments.count
    // They are read where they stand: each copy would be retained field by field.
    for at in fragments.indices {
      if left < 0 { return true }
      left -= fragments[at].size - 1
    }
    return left < 0
  }
}
