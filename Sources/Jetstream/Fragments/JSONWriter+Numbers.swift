extension JSONWriter {
  /// Appends a whole number.
  static func write(_ value: Int64, to bytes: inout [UInt8]) {
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    write(digitsOf: value.magnitude, to: &bytes)
  }

  /// Appends a number of any size in plain digits.
  static func write(digitsOf value: UInt64, to bytes: inout [UInt8]) {
    guard value >= 10 else {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
      return
    }
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var rest = value
      var start = 20
      while rest > 0 {
        let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
        start -= 1
        digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
        rest = quotient
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
    }
  }

  /// Appends a double: see the article on canonical JSON for its text.
  static func write(_ value: Double, to bytes: inout [UInt8]) {
    if value.magnitude < 0x1p53 {
      if value == value.rounded(.towardZero) { return write(Int64(value), to: &bytes) }
      // Decimals of up to 15 digits all lie at different doubles, so one that gives this double
      // back is its shortest text.
      let thousandths = (value * 1000).rounded()
      if thousandths.magnitude < 1e15, thousandths / 1000 == value {
        return write(thousandths: Int64(thousandths), to: &bytes)
      }
    }
    guard value.isFinite else { return write(fixed: "null", to: &bytes) }
    write(shortest: value.description, to: &bytes)
  }

  /// Appends a float: like a double, but with the text that is shortest for a float.
  static func write(_ value: Float, to bytes: inout [UInt8]) {
    if value.magnitude < 0x1p53 {
      if value == value.rounded(.towardZero) { return write(Int64(value), to: &bytes) }
      // As for doubles, with the six digits that a float keeps apart.
      let thousandths = (value * 1000).rounded()
      if thousandths.magnitude < 1e6, thousandths / 1000 == value {
        return write(thousandths: Int64(thousandths), to: &bytes)
      }
    }
    guard value.isFinite else { return write(fixed: "null", to: &bytes) }
    guard value.magnitude != roundedTwice else { return write(Double(value), to: &bytes) }
    write(shortest: value.description, to: &bytes)
  }

  /// The only float whose shortest text, read as a double and rounded, gives its neighbour instead:
  /// the text lies so close to the middle that the double is the middle. Found by trying them all.
  private static var roundedTwice: Float { Float(bitPattern: 0x15AE_43FD) }

  /// Appends a number that has one to three decimals.
  private static func write(thousandths: Int64, to bytes: inout [UInt8]) {
    if thousandths < 0 { bytes.append(UInt8(ascii: "-")) }
    let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
    write(digitsOf: whole, to: &bytes)
    bytes.append(UInt8(ascii: "."))
    var rest = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction / 100)
    bytes.append(rest)
    guard fraction % 100 != 0 else { return }
    rest = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction / 10 % 10)
    bytes.append(rest)
    guard fraction % 10 != 0 else { return }
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction % 10))
  }

  /// Appends Swift's description of a number, which is JSON, without a needless `.0`.
  private static func write(shortest description: String, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: description.utf8)
    if description.hasSuffix(".0") { bytes.removeLast(2) }
  }
}
