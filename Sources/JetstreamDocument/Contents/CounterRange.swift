/// The whole numbers that a counter can have: those of the property's type.
///
/// The server, the models, pending change sets and everything that is saved of a model follow one rule. Operations
/// on a counter are applied one after the other, in the server's order. The result of each one is the sum, limited
/// to the range; a sum that met a bound does not remember by how much. From that follows how an operation is taken
/// back:
///
/// - The server rejects it: the remaining operations are applied again to the confirmed number. Nothing is
///   subtracted.
/// - It is undone: that is an operation of its own, which adds the opposite number.
///
/// Only the property's type has the range. If no class is known, as in a server that keeps unknown content, a
/// counter can be any signed or unsigned number of 64 bits.
package struct CounterRange: Sendable, Hashable {
  package let lowest: Int64
  package let highest: UInt64

  /// The range of a counter whose type is not known.
  package static let unknown = CounterRange(lowest: .min, highest: .max)

  private init(lowest: Int64, highest: UInt64) { (self.lowest, self.highest) = (lowest, highest) }

  /// Makes the range of a type; nil for one that is no whole number of at most 64 bits.
  package init?(_ type: Any.Type) {
    guard let type = type as? any FixedWidthInteger.Type else { return nil }
    self.init(of: type)
  }

  private init?<Number: FixedWidthInteger>(of type: Number.Type) {
    guard let lowest = Int64(exactly: Number.min), let highest = UInt64(exactly: Number.max) else {
      return nil
    }
    self.init(lowest: lowest, highest: highest)
  }

  /// Returns the number as JSON after some operations; nil if the JSON is no whole number.
  func json(_ json: JSONValue, after operations: [PropertyOperation]) -> JSONValue? {
    guard var counter = CounterContent(json, within: self) else { return nil }
    counter.apply(operations)
    return counter.json
  }

  /// Returns the total that some operations add to the number. Nil if the JSON is no whole number, or if the total
  /// does not fit 64 signed bits.
  package func difference(of json: JSONValue, after operations: [PropertyOperation]) -> Int64? {
    guard let before = CounterContent(json, within: self) else { return nil }
    var after = before
    after.apply(operations)
    return Int64(exactly: after.number - before.number)
  }

  func whole(_ json: JSONValue) -> Int128? {
    switch json {
    case .integer(let value): Int128(value)
    case .unsigned(let value): Int128(value)
    // A double counts as a whole number only if the type is known to be one.
    case .double(let value): self == .unknown ? nil : Int128(exactly: value)
    default: nil
    }
  }
}
