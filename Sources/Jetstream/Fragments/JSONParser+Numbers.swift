extension JSONParser {
  /// What the digits of a number say: `magnitude * 10^exponent`, unless it was too long to count.
  private struct Decimal {
    var magnitude: UInt64 = 0
    var exponent = 0
    var isExact = true

    /// Takes one more digit.
    @inline(__always)
    mutating func take(_ digit: UInt8) {
      let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
      if overflow || carry { isExact = false } else { magnitude = sum }
    }
  }

  /// Reads a number whose first byte, a digit or a minus sign, is the next byte.
  mutating func number() throws(JSONError) -> JSONValue {
    let start = position
    let isNegative = next == UInt8(ascii: "-")
    if isNegative { position += 1 }
    var decimal = Decimal()
    if next == UInt8(ascii: "0") {
      position += 1
      guard digit == nil else { throw failure(.invalidNumber) }
    } else {
      try digits { decimal.take($0) }
    }
    let isFraction = next == UInt8(ascii: ".")
    if isFraction {
      position += 1
      let first = position
      try digits { decimal.take($0) }
      decimal.exponent = first - position
    }
    let isScaled = next | 0x20 == UInt8(ascii: "e")
    if isScaled { decimal.exponent += try exponent() }
    guard isFraction || isScaled else {
      return try whole(decimal, isNegative: isNegative, from: start)
    }
    return .double(try double(decimal, isNegative: isNegative, from: start))
  }

  private var digit: UInt8? {
    @inline(__always) get {
      let value = next &- UInt8(ascii: "0")
      return value < 10 ? value : nil
    }
  }

  /// Hands on one digit or more.
  @inline(__always)
  private mutating func digits(_ take: (UInt8) -> Void) throws(JSONError) {
    guard digit != nil else { throw failure(.invalidNumber) }
    while let digit {
      take(digit)
      position += 1
    }
  }

  /// Reads `e`, a sign and digits. Beyond a million the exact value makes no difference.
  private mutating func exponent() throws(JSONError) -> Int {
    position += 1
    let isNegative = next == UInt8(ascii: "-")
    if isNegative || next == UInt8(ascii: "+") { position += 1 }
    var exponent = 0
    try digits { if exponent < 1_000_000 { exponent = exponent * 10 + Int($0) } }
    return isNegative ? -exponent : exponent
  }

  private func whole(
    _ decimal: Decimal, isNegative: Bool, from start: Int
  ) throws(JSONError) -> JSONValue {
    if decimal.isExact {
      if !isNegative {
        return Int64(exactly: decimal.magnitude).map { .integer($0) }
          ?? .unsigned(decimal.magnitude)
      }
      if decimal.magnitude <= Int64.min.magnitude {
        return .integer(Int64(truncatingIfNeeded: 0 &- decimal.magnitude))
      }
    }
    return .double(try double(decimal, isNegative: isNegative, from: start))
  }

  /// The nearest double. A product or quotient of two exactly known doubles is rounded once, so
  /// short numbers need no general algorithm.
  private func double(
    _ decimal: Decimal, isNegative: Bool, from start: Int
  ) throws(JSONError) -> Double {
    if decimal.isExact, decimal.magnitude == 0 { return isNegative ? -0.0 : 0 }
    if decimal.isExact, decimal.magnitude < 1 << 53, abs(decimal.exponent) <= 22 {
      let magnitude = Double(decimal.magnitude)
      let value =
        decimal.exponent < 0
        ? magnitude / Self.powersOfTen[-decimal.exponent]
        : magnitude * Self.powersOfTen[decimal.exponent]
      return isNegative ? -value : value
    }
    let text = String(
      decoding: UnsafeBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self)
    guard let value = Double(text) else { throw JSONError(.invalidNumber, at: start) }
    guard value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
    return value
  }

  private static let powersOfTen: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}
