import Foundation

/// Applying operations to JSON values and UUIDs, without models.
extension PropertyOperation {
  /// Applies `operations` to a list of UUIDs, in order. Cost: O(n) for each operation.
  package static func apply(_ operations: [PropertyOperation], to list: inout [UUID]) {
    for operation in operations {
      switch operation {
      case .insert(let uuid, let place):
        list.removeAll { $0 == uuid }
        list.insert(uuid, at: position(of: place, in: list))
      case .remove(let uuid): list.removeAll { $0 == uuid }
      case .move(let uuid, let place):
        guard let at = list.firstIndex(of: uuid) else { continue }
        list.remove(at: at)
        list.insert(uuid, at: position(of: place, in: list))
      case .add: continue
      }
    }
  }

  private static func position(of place: Place, in list: [UUID]) -> Int {
    switch place {
    case .start: return 0
    case .end: return list.count
    case .after(let others):
      for other in others {
        if let at = list.firstIndex(of: other) { return at + 1 }
      }
      return list.count
    }
  }

  /// Returns the JSON value after `operations`: an array of UUIDs, or a whole number within `range`. Any other
  /// value is returned unchanged. If `value` is nil, the operations begin with an empty collection, or with zero.
  package static func apply(
    _ operations: [PropertyOperation], to value: JSONValue?, within range: CounterRange
  ) -> JSONValue {
    let isNumber = operations.contains { $0.model == nil }
    let value = value ?? (isNumber ? .integer(0) : .array([]))
    switch value {
    case .array(let elements):
      var list: [UUID] = []
      for case .string(let text) in elements {
        if let uuid = UUID(wireText: text) { list.append(uuid) }
      }
      guard list.count == elements.count else { return value }
      apply(operations, to: &list)
      return .array(list.map { .string($0.wireText) })
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
