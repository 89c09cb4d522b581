extension JSONParser {
  /// Reads a number whose first byte, a digit or a minus sign, is the next byte.
  package mutating func number() throws(JSONError) -> JSONValue {
    let start = position
    let isNegative = next == UInt8(ascii: "-")
    if isNegative { position += 1 }
    var decimal = Decimal()
    let first = position
    try digits(of: &decimal)
    guard position - first == 1 || bytes[first] != UInt8(ascii: "0") else {
      position = first + 1
      throw failure(.invalidNumber)
    }
    let mark = next
    let isWhole = mark != UInt8(ascii: ".") && mark | 0x20 != UInt8(ascii: "e")
    if !isWhole || decimal.digits > 18 || (isNegative && decimal.magnitude == 0) {
      isCanonical = false
    }
    if isWhole {
      return try whole(decimal, isNegative: isNegative, from: start)
    }
    if mark == UInt8(ascii: ".") {
      position += 1
      let point = position
      try digits(of: &decimal)
      decimal.exponent = point - position
    }
    if next | 0x20 == UInt8(ascii: "e") { decimal.exponent += try exponent() }
    return .double(try double(decimal, isNegative: isNegative, from: start))
  }

  /// The digits of a number, as `magnitude * 10^exponent`, while there are not too many.
  private struct Decimal {
    var magnitude: UInt64 = 0
    var exponent = 0
    var digits = 0
  }

  /// Reads one digit or more.
  @inline(__always)
  private mutating func digits(of decimal: inout Decimal) throws(JSONError) {
    let first = position
    var place = first
    var magnitude = decimal.magnitude
    while place < bytes.count {
      let digit = bytes[place] &- UInt8(ascii: "0")
      guard digit < 10 else { break }
      magnitude = magnitude &* 10 &+ UInt64(digit)
      place += 1
    }
    position = place
    guard place > first else { throw failure(.invalidNumber) }
    decimal.magnitude = magnitude
    decimal.digits += place - first
  }

  /// Reads `e`, a sign and digits. Beyond a million the exact value makes no difference.
  private mutating func exponent() throws(JSONError) -> Int {
    position += 1
    let isNegative = next == UInt8(ascii: "-")
    if isNegative || next == UInt8(ascii: "+") { position += 1 }
    let first = position
    var exponent = 0
    while case let digit = next &- UInt8(ascii: "0"), digit < 10 {
      if exponent < 1_000_000 { exponent = exponent * 10 + Int(digit) }
      position += 1
    }
    guard position > first else { throw failure(.invalidNumber) }
    return isNegative ? -exponent : exponent
  }

  @inline(__always)
  private func whole(
    _ decimal: Decimal, isNegative: Bool, from start: Int
  ) throws(JSONError) -> JSONValue {
    if decimal.digits <= 18 {
      let magnitude = Int64(truncatingIfNeeded: decimal.magnitude)
      return .integer(isNegative ? -magnitude : magnitude)
    }
    if decimal.digits <= 20 {
      let text = String(decoding: bytes[start..<position], as: UTF8.self)
      if let value = Int64(text) { return .integer(value) }
      if let value = UInt64(text) { return .unsigned(value) }
    }
    return .double(try Self.longDouble(bytes, from: start, to: position))
  }

  /// The nearest double. A product or quotient of two exactly known doubles is rounded once, so
  /// short numbers need no general algorithm.
  @inline(__always)
  private func double(
    _ decimal: Decimal, isNegative: Bool, from start: Int
  ) throws(JSONError) -> Double {
    // Nineteen digits always fit the magnitude.
    guard decimal.digits <= 19, decimal.magnitude < 1 << 53,
      abs(decimal.exponent) <= 22 || decimal.magnitude == 0
    else { return try Self.longDouble(bytes, from: start, to: position) }
    let magnitude = Double(decimal.magnitude)
    let value =
      decimal.magnitude == 0
      ? 0
      : decimal.exponent < 0
        ? magnitude / Self.powersOfTen[-decimal.exponent]
        : magnitude * Self.powersOfTen[decimal.exponent]
    return isNegative ? -value : value
  }

  /// The nearest double to any text that is a number.
  @inline(never)
  private static func longDouble(
    _ bytes: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int
  ) throws(JSONError) -> Double {
    let text = String(decoding: bytes[start..<end], as: UTF8.self)
    guard let value = Double(text) else { throw JSONError(.invalidNumber, at: start) }
    guard value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
    return value
  }

  private static let powersOfTen: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}
