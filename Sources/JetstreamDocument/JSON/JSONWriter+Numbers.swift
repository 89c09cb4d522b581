extension JSONWriter {
  /// Appends a whole number.
  package static func write(_ value: Int64, to output: inout JSONOutput) {
    if value < 0 { output.append("-") }
    write(digitsOf: value.magnitude, to: &output)
  }

  /// Appends a number of any size in plain digits.
  package static func write(digitsOf value: UInt64, to output: inout JSONOutput) {
    guard value >= 10 else {
      output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
      return
    }
    var length = 2
    var bound: UInt64 = 100
    while length < 20, value >= bound {
      length += 1
      bound = length < 20 ? bound * 10 : .max
    }
    output.append(upTo: length) { digits in
      var rest = value
      var position = length
      while position > 0 {
        position -= 1
        let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
        digits[position] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
        rest = quotient
      }
      return length
    }
  }

  /// Appends a double: see the article on canonical JSON for its text.
  package static func write(_ value: Double, to output: inout JSONOutput) {
    if value.magnitude < 0x1p53 {
      if value == value.rounded(.towardZero) { return write(Int64(value), to: &output) }
      // Decimals of up to 15 digits all lie at different doubles, so one that gives this double
      // back is its shortest text.
      let thousandths = (value * 1000).rounded()
      if thousandths.magnitude < 1e15, thousandths / 1000 == value {
        return write(thousandths: Int64(thousandths), to: &output)
      }
    }
    guard value.isFinite else { return output.append(fixed: "null") }
    write(shortest: value.description, to: &output)
  }

  /// Appends a float: like a double, but with the text that is shortest for a float.
  package static func write(_ value: Float, to output: inout JSONOutput) {
    if value.magnitude < 0x1p53 {
      if value == value.rounded(.towardZero) { return write(Int64(value), to: &output) }
      // As for doubles, with the six digits that a float keeps apart.
      let thousandths = (value * 1000).rounded()
      if thousandths.magnitude < 1e6, thousandths / 1000 == value {
        return write(thousandths: Int64(thousandths), to: &output)
      }
    }
    guard value.isFinite else { return output.append(fixed: "null") }
    guard value.magnitude != roundedTwice else { return write(Double(value), to: &output) }
    write(shortest: value.description, to: &output)
  }

  /// The only float whose shortest text, read as a double and rounded, gives its neighbour instead:
  /// the text lies so close to the middle that the double is the middle. Found by trying them all.
  private static var roundedTwice: Float { Float(bitPattern: 0x15AE_43FD) }

  /// Appends a number that has one to three decimals.
  private static func write(thousandths: Int64, to output: inout JSONOutput) {
    if thousandths < 0 { output.append("-") }
    let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
    write(digitsOf: whole, to: &output)
    output.append(".")
    var rest = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction / 100)
    output.append(rest)
    guard fraction % 100 != 0 else { return }
    rest = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction / 10 % 10)
    output.append(rest)
    guard fraction % 10 != 0 else { return }
    output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction % 10))
  }

  /// Appends Swift's description of a number, which is JSON, without a needless `.0`.
  private static func write(shortest description: String, to output: inout JSONOutput) {
    var description = description
    description.withUTF8 { output.append($0) }
    if description.hasSuffix(".0") { output.removeLast(2) }
  }
}
