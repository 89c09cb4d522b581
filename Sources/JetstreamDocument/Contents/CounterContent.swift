/// The content of a counter: a whole number within the range of the property's type.
///
/// All that operations do to a counter stands here; ``CounterRange`` has the rule that each one follows.
package struct CounterContent: Sendable, Hashable {
  /// The number.
  package private(set) var number: Int128
  /// The numbers that the counter can have.
  package let range: CounterRange

  /// Reads a whole number; nil for any other JSON.
  package init?(_ json: JSONValue, within range: CounterRange) {
    guard let number = range.whole(json) else { return nil }
    (self.number, self.range) = (number, range)
  }

  /// The number as JSON.
  package var json: JSONValue {
    Int64(exactly: number).map { .integer($0) } ?? .unsigned(UInt64(clamping: number))
  }

  /// Applies an operation. One on a collection has no effect.
  package mutating func apply(_ operation: PropertyOperation) {
    guard case .add(let delta) = operation else { return }
    number = min(max(number + Int128(delta), Int128(range.lowest)), Int128(range.highest))
  }

  /// Applies operations, one after the other.
  package mutating func apply(_ operations: some Sequence<PropertyOperation>) {
    for operation in operations { apply(operation) }
  }

  /// Returns the additions that lead from this number to `new`: none or one, and up to three where the distance does not
  /// fit 64 signed bits.
  ///
  /// Takes back and composes as well: the way back from what operations have led to, and the short way to it.
  package func operations(to new: CounterContent) -> [PropertyOperation] {
    var rest = new.number - number
    var result: [PropertyOperation] = []
    while rest != 0 {
      let step = Int64(clamping: rest)
      result.append(.add(step))
      rest -= Int128(step)
    }
    return result
  }
}

extension JSONValue {
  /// Returns the number to be added to one whole number to get another. Nil if one of them is no whole number, or
  /// if the difference or its opposite does not fit 64 bits.
  package static func difference(from old: JSONValue, to new: JSONValue) -> Int64? {
    func number(_ value: JSONValue) -> Int128? {
      switch value {
      case .integer(let number): Int128(number)
      case .unsigned(let number): Int128(number)
      default: nil
      }
    }
    guard let old = number(old), let new = number(new) else { return nil }
    // The opposite has to fit, too.
    return Int64(exactly: new - old).flatMap { $0 == .min ? nil : $0 }
  }
}
