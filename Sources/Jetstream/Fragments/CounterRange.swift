/// The whole numbers that a counter can be: those of the property's type.
///
/// Server, models, pending change sets and everything that is kept of a model follow one rule. Operations on a
/// counter are done one after the other, in the server's order, and the result of each one is the sum, or the
/// number of the range nearest to it. A sum that has met a bound does not remember by how much. From that
/// follows what is done when an operation does not count after all, or is undone:
///
/// - The server rejects it: the remaining operations are done again on the confirmed number. Nothing is
///   subtracted.
/// - It is undone: that is an operation of its own, which adds the opposite of what was added.
///
/// Only the property's type has the range. Where no class is known, as in a server that keeps unknown content,
/// a counter can be any number of 64 bits, signed or unsigned.
package struct CounterRange: Sendable, Hashable {
  package let lowest: Int64
  package let highest: UInt64

  /// The range of a counter whose type is not known.
  static let unknown = CounterRange(lowest: .min, highest: .max)

  private init(lowest: Int64, highest: UInt64) { (self.lowest, self.highest) = (lowest, highest) }

  /// The range of a type; nil for one that has no whole numbers of at most 64 bits.
  init?(_ type: Any.Type) {
    guard let type = type as? any FixedWidthInteger.Type else { return nil }
    self.init(of: type)
  }

  private init?<Number: FixedWidthInteger>(of type: Number.Type) {
    guard let lowest = Int64(exactly: Number.min), let highest = UInt64(exactly: Number.max) else {
      return nil
    }
    self.init(lowest: lowest, highest: highest)
  }

  /// The number after some operations, of which only additions count.
  fileprivate func number(_ number: Int128, after operations: [PropertyOperation]) -> Int128 {
    var number = number
    for case .add(let delta) in operations {
      number = min(max(number + Int128(delta), Int128(lowest)), Int128(highest))
    }
    return number
  }

  /// Returns the number as JSON after some operations; nil if the JSON is no whole number.
  func json(_ json: JSONValue, after operations: [PropertyOperation]) -> JSONValue? {
    guard let before = whole(json) else { return nil }
    let after = number(before, after: operations)
    return Int64(exactly: after).map { .integer($0) } ?? .unsigned(UInt64(after))
  }

  /// Returns what some operations together add to the number; nil if the JSON is no whole number, or if that is no
  /// number of 64 bits.
  func difference(of json: JSONValue, after operations: [PropertyOperation]) -> Int64? {
    whole(json).flatMap { Int64(exactly: number($0, after: operations) - $0) }
  }

  private func whole(_ json: JSONValue) -> Int128? {
    switch json {
    case .integer(let value): Int128(value)
    case .unsigned(let value): Int128(value)
    // Only where a whole number is expected is this one.
    case .double(let value): self == .unknown ? nil : Int128(exactly: value)
    default: nil
    }
  }
}
