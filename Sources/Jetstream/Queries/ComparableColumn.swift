import Foundation

/// A column of keys that know their own order; nil in front, and then what is not equal to itself.
///
/// Rows are compared often, so the columns of common keys are classes of their own: a method of a generic class that is
/// called through its base class is never specialized, and would ask for the size of a key and for its `<` at run time.
class ComparableColumn<Key: Comparable>: KeyColumn {
  private let key: (ModelObject) -> Key?
  private let isReversed: Bool
  private var values: ContiguousArray<Key?> = []

  init(_ key: @escaping (ModelObject) -> Key?, _ order: SortOrder) {
    self.key = key
    isReversed = order == .reverse
  }

  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    evaluateKey(model, at: slot)
  }
  override func compare(_ a: Int, _ b: Int) -> Int { compareKeys(a, b) }

  @inline(__always)
  fileprivate final func evaluateKey(_ model: ModelObject, at slot: Int) -> Bool {
    let new = key(model)
    if slot >= values.count {
      while values.count <= slot { values.append(nil) }
      values[slot] = new
      return true
    }
    // A row that was not evaluated yet counts as one whose key was nil: it has no place to leave.
    let isSame = KeyOrder.compare(values[slot], new) == 0
    values[slot] = new
    return !isSame
  }

  @inline(__always)
  fileprivate final func compareKeys(_ a: Int, _ b: Int) -> Int {
    let order = KeyOrder.compare(values[a], values[b])
    return isReversed ? -order : order
  }

  final override func clear(_ slot: Int) { if slot < values.count { values[slot] = nil } }

  /// Makes the column of a key.
  static func make(_ key: @escaping (ModelObject) -> Key?, _ order: SortOrder) -> KeyColumn {
    // Sound because the two types are one where this is called.
    func known<Known>(_ type: Known.Type) -> (ModelObject) -> Known? {
      { unsafeBitCast(key($0), to: Known?.self) }
    }
    if Key.self == Int.self { return IntColumn(known(Int.self), order) }
    if Key.self == Double.self { return DoubleColumn(known(Double.self), order) }
    if Key.self == String.self { return StringColumn(known(String.self), order) }
    if Key.self == Date.self { return DateColumn(known(Date.self), order) }
    return ComparableColumn(key, order)
  }
}

private final class IntColumn: ComparableColumn<Int> {
  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    evaluateKey(model, at: slot)
  }
  override func compare(_ a: Int, _ b: Int) -> Int { compareKeys(a, b) }
}

private final class DoubleColumn: ComparableColumn<Double> {
  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    evaluateKey(model, at: slot)
  }
  override func compare(_ a: Int, _ b: Int) -> Int { compareKeys(a, b) }
}

private final class StringColumn: ComparableColumn<String> {
  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    evaluateKey(model, at: slot)
  }
  override func compare(_ a: Int, _ b: Int) -> Int { compareKeys(a, b) }
}

private final class DateColumn: ComparableColumn<Date> {
  override func evaluate(_ model: ModelObject, at slot: Int) -> Bool {
    evaluateKey(model, at: slot)
  }
  override func compare(_ a: Int, _ b: Int) -> Int { compareKeys(a, b) }
}
