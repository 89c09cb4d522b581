import Foundation

extension Decimal: PropertyValue {
  /// A decimal number.
  public static var _propertyType: _PropertyType { .decimal }
  /// All digits as a text, without an exponent and without zeros that say nothing: `12.5`, `-0.003`, `1000`. A number in
  /// JSON would lose digits in every reader that makes a `Double` of it. Not-a-number is the text `NaN`.
  public var _jsonValue: JSONValue {
    if isNaN { return "NaN" }
    guard let digits = DecimalDigits(description) else {
      preconditionFailure("A Decimal describes itself as \(description), which is no number.")
    }
    return .string(digits.text)
  }
  /// Reads a text as `_jsonValue` writes it, or with zeros and an exponent, and any number. What has more digits than a
  /// `Decimal` can hold is refused instead of being rounded.
  public static func _decode(_ json: JSONValue) -> Decimal? {
    switch json {
    case .string("NaN"): return .nan
    case .string(let text): return DecimalDigits(text)?.decimal
    case .integer, .unsigned, .double, .float: return DecimalDigits(json.text)?.decimal
    default: return nil
    }
  }
  /// Says that a text is no decimal number, or has too many digits.
  public static func _problem(with json: JSONValue) -> String? {
    switch json {
    case .string(let text) where DecimalDigits(text) == nil: "\(json.text) is no decimal number"
    case .string, .integer, .unsigned, .double, .float:
      "\(json.text) has more digits than a decimal number can hold"
    default: nil
    }
  }
  /// Equality under which not-a-number equals itself.
  public static func _isSame(_ a: Decimal, _ b: Decimal) -> Bool {
    a.isNaN || b.isNaN ? a.isNaN && b.isNaN : a == b
  }
}

/// A decimal number of any length: digits without zeros at either end, times a power of ten.
private struct DecimalDigits: Equatable {
  var isNegative = false
  /// From 0 to 9. Empty for zero.
  var digits: [UInt8] = []
  var exponent = 0

  /// Reads a number as JSON writes them, but with any zeros in front. Cost: O(n).
  init?(_ text: String) {
    var rest = Substring(text).utf8
    if rest.first == UInt8(ascii: "-") {
      isNegative = true
      rest.removeFirst()
    }
    let whole = Self.takeDigits(&rest)
    var fraction: [UInt8] = []
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      fraction = Self.takeDigits(&rest)
      if fraction.isEmpty { return nil }
    }
    if whole.isEmpty { return nil }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest.removeFirst()
      let isDown = rest.first == UInt8(ascii: "-")
      if isDown || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
      let power = Self.takeDigits(&rest)
      if power.isEmpty { return nil }
      // Far beyond what any number here can have.
      let size = power.reduce(0) { min($0 * 10 + Int($1), 1 << 40) }
      exponent = isDown ? -size : size
    }
    guard rest.isEmpty else { return nil }
    exponent -= fraction.count
    digits = Array((whole + fraction).drop { $0 == 0 })
    while digits.last == 0 {
      digits.removeLast()
      exponent += 1
    }
    if digits.isEmpty { (isNegative, exponent) = (false, 0) }
  }

  private static func takeDigits(_ rest: inout Substring.UTF8View.SubSequence) -> [UInt8] {
    let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    rest = rest[digits.endIndex...]
    return digits.map { $0 - UInt8(ascii: "0") }
  }

  /// Without an exponent. Only for numbers of the size that a `Decimal` has.
  var text: String {
    if digits.isEmpty { return "0" }
    let whole = digits.count + exponent
    var bytes: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
    func append(_ digits: some Sequence<UInt8>) {
      bytes += digits.map { $0 + UInt8(ascii: "0") }
    }
    if exponent >= 0 {
      append(digits)
      append(repeatElement(0, count: exponent))
    } else if whole > 0 {
      append(digits[..<whole])
      bytes.append(UInt8(ascii: "."))
      append(digits[whole...])
    } else {
      append([0])
      bytes.append(UInt8(ascii: "."))
      append(repeatElement(0, count: -whole))
      append(digits)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The number itself; nil if a `Decimal` cannot have all digits.
  var decimal: Decimal? {
    if digits.isEmpty { return 0 }
    // A significand has 128 bits, which is not even 39 digits, and an exponent is a signed byte. Zeros in front of the
    // exponent may go into the significand.
    guard digits.count <= 39, exponent >= -128, exponent <= 127 + 38 else { return nil }
    guard let result = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")),
      DecimalDigits(result.description) == self
    else { return nil }
    return result
  }
}
