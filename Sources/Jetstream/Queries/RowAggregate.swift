/// Something that is made of one value of each row that is shown.
///
/// A row counts with the value that it had when it was added, until it is removed. So what it is evaluated to in between
/// does no harm.
class RowAggregate {
  /// Evaluates the value of `model`, which has the slot `slot`, shown or not.
  func evaluate(_ model: ModelObject, at slot: Int) {
    preconditionFailure("An aggregate is abstract.")
  }
  /// Counts the row at `slot`, with the value that it was evaluated to last.
  func add(_ slot: Int) { preconditionFailure("An aggregate is abstract.") }
  /// Takes back what ``add(_:)`` has counted.
  func remove(_ slot: Int) { preconditionFailure("An aggregate is abstract.") }
  /// Lets go of the value of a row that has gone.
  func clear(_ slot: Int) { preconditionFailure("An aggregate is abstract.") }
}

/// An aggregate of values of one type; nil where a row does not count.
class TypedAggregate<Key>: RowAggregate {
  private let key: (ModelObject) -> Key?
  private var evaluated: ContiguousArray<Key?> = []
  private var counted: ContiguousArray<Key?> = []

  init(key: @escaping (ModelObject) -> Key?) { self.key = key }

  /// Takes one more value in.
  func put(_ value: Key) { preconditionFailure("An aggregate is abstract.") }
  /// Takes one value out that was taken in.
  func take(_ value: Key) { preconditionFailure("An aggregate is abstract.") }

  final override func evaluate(_ model: ModelObject, at slot: Int) {
    let value = key(model)
    while evaluated.count <= slot {
      evaluated.append(nil)
      counted.append(nil)
    }
    evaluated[slot] = value
  }

  final override func add(_ slot: Int) {
    counted[slot] = evaluated[slot]
    if let value = evaluated[slot] { put(value) }
  }

  final override func remove(_ slot: Int) {
    guard let value = counted[slot] else { return }
    counted[slot] = nil
    take(value)
  }

  final override func clear(_ slot: Int) { if slot < evaluated.count { evaluated[slot] = nil } }
}

/// The sum of integers, in so many bits that no number of rows can make it overflow.
final class IntegerSum: TypedAggregate<Int128> {
  private(set) var total: Int128 = 0
  private static let bound: Int128 = 1 << 64

  /// A key that is too large to be added up safely counts as the bound.
  private func bounded(_ value: Int128) -> Int128 { max(-Self.bound, min(value, Self.bound)) }

  override func put(_ value: Int128) { total += bounded(value) }
  override func take(_ value: Int128) { total -= bounded(value) }
}

/// The sum of floating-point numbers.
final class FloatingPointSum: TypedAggregate<Double> {
  private(set) var total = ExactSum()

  override func put(_ value: Double) { total.add(value) }
  override func take(_ value: Double) { total.subtract(value) }
}

/// The number of times that each key occurs.
final class DistinctKeys<Key: Hashable>: TypedAggregate<Key> {
  private var counts: [Key: Int] = [:]
  /// Keys that have come or gone since the last update, some of them both.
  private var touched: [Key] = []

  override func put(_ value: Key) {
    // It would never be found again.
    guard value == value else { return }
    let count = counts[value, default: 0]
    counts[value] = count + 1
    if count == 0 { touched.append(value) }
  }

  override func take(_ value: Key) {
    guard let count = counts[value] else { return }
    counts[value] = count > 1 ? count - 1 : nil
    if count == 1 { touched.append(value) }
  }

  /// Brings the set of all keys up to date; true if it is another one now. Cost: O(what has come and gone).
  func update(_ keys: inout Set<Key>) -> Bool {
    var hasChanged = false
    for key in touched {
      if counts[key] != nil {
        if keys.insert(key).inserted { hasChanged = true }
      } else if keys.remove(key) != nil {
        hasChanged = true
      }
    }
    touched = []
    return hasChanged
  }
}
