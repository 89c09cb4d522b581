import Foundation

/// Applying operations to JSON values and UUIDs, without models.
extension PropertyOperation {
  /// Returns the JSON value after `operations`: an array of UUIDs, or a whole number within `range`. Any other
  /// value is returned unchanged. If `value` is nil, the operations begin with an empty collection, or with zero.
  package static func apply(
    _ operations: [PropertyOperation], to value: JSONValue?, within range: CounterRange
  ) -> JSONValue {
    let isNumber = operations.contains { $0.model == nil }
    let value = value ?? (isNumber ? .integer(0) : .array([]))
    switch value {
    case .array:
      guard var list = CollectionContent(value) else { return value }
      list.apply(operations)
      return list.json
    default: return range.json(value, after: operations) ?? value
    }
  }
}

extension FixedWidthInteger {
  /// Returns the sum, limited to the range of the type. For types of at most 64 bits.
  package func addingWithinRange(_ delta: Int64) -> Self {
    Self(clamping: Int128(self) + Int128(delta))
  }

  /// Returns the number to be added to `old` to get this number; nil if it does not fit 64 signed bits.
  func difference(to old: Self) -> Int64? { Int64(exactly: Int128(self) - Int128(old)) }
}
