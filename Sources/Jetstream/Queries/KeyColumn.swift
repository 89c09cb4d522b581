/// The values of one sort key for all rows, as of their last evaluation.
///
/// Rows are compared by these values and never by the current values of their models. So rows that wait for their
/// evaluation stay in the order in which they were inserted.
class KeyColumn {
  /// Evaluates the key of `model` at `slot`; returns true if the row may belong elsewhere in the order now.
  func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    preconditionFailure("A column is abstract.")
  }
  /// Returns less than 0 if the row at `a` comes before the one at `b`, and 0 if the key does not decide.
  func compare(_ a: Int, _ b: Int) -> Int { preconditionFailure("A column is abstract.") }
  /// Releases the value of a row that has left.
  func clear(_ slot: Int) { preconditionFailure("A column is abstract.") }
}

/// A column of one type of key.
final class TypedColumn<Key>: KeyColumn {
  private let key: (ModelObject) -> Key
  private let order: (Key, Key) -> Int
  private var values: ContiguousArray<Key?> = []

  init(key: @escaping (ModelObject) -> Key, order: @escaping (Key, Key) -> Int) {
    self.key = key
    self.order = order
  }

  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    let new = key(model)
    while values.count <= slot { values.append(nil) }
    let isSame = values[slot].map { order($0, new) == 0 } ?? false
    values[slot] = .some(new)
    return !isSame
  }

  override func compare(_ a: Int, _ b: Int) -> Int { order(value(a), value(b)) }

  override func clear(_ slot: Int) { if slot < values.count { values[slot] = .none } }

  /// Returns the key of the row at `slot`.
  func value(_ slot: Int) -> Key {
    guard let value = values[slot] else { preconditionFailure("A row is ordered before its key.") }
    return value
  }

  func compare(_ slot: Int, with key: Key) -> Int { order(value(slot), key) }
}

/// Three-way comparisons.
enum KeyOrder {
  /// Compares two values; one that is not equal to itself, such as not-a-number, comes before all others.
  static func compare<Key: Comparable>(_ a: Key, _ b: Key) -> Int {
    if a < b { return -1 }
    if b < a { return 1 }
    if a == b { return 0 }
    let (aIsOrdered, bIsOrdered) = (a == a, b == b)
    return aIsOrdered == bIsOrdered ? 0 : aIsOrdered ? 1 : -1
  }

  /// Compares two optional values; nil comes before all others.
  static func compare<Key: Comparable>(_ a: Key?, _ b: Key?) -> Int {
    switch (a, b) {
    case (let a?, let b?): compare(a, b)
    case (nil, nil): 0
    case (nil, _): -1
    case (_, nil): 1
    }
  }
}
