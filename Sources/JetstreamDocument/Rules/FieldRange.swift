import Foundation

/// The numbers from one bound to another, both included.
package struct FieldRange: Sendable, Hashable {
  /// The lowest number; nil for none.
  package let lower: JSONValue?
  /// The highest number; nil for none.
  package let upper: JSONValue?

  /// Makes a range. Returns nil if there are no bounds, if one is no number, or if the lower one is higher.
  package init?(from lower: JSONValue?, to upper: JSONValue?) {
    let (low, high) = (lower.flatMap(FieldNumber.init), upper.flatMap(FieldNumber.init))
    if (lower != nil && low == nil) || (upper != nil && high == nil) { return nil }
    if low == nil && high == nil { return nil }
    if let low, let high, high.isLess(than: low) { return nil }
    self.lower = low?.json
    self.upper = high?.json
  }

  /// Returns true if a value is a number of the range. Numbers are compared exactly, whatever their types.
  package func contains(_ json: JSONValue) -> Bool {
    guard let number = FieldNumber(json) else { return false }
    if let lower = lower.flatMap(FieldNumber.init), number.isLess(than: lower) { return false }
    if let upper = upper.flatMap(FieldNumber.init), upper.isLess(than: number) { return false }
    return true
  }

  /// The range in words, behind "has to be".
  var words: String {
    switch (lower?.plainText, upper?.plainText) {
    case (let lower?, let upper?) where lower == upper: lower
    case (let lower?, let upper?): "from \(lower) to \(upper)"
    case (let lower?, nil): "at least \(lower)"
    case (nil, let upper?): "at most \(upper)"
    case (nil, nil): "a number"
    }
  }
}

/// A number of a value, with all its digits.
enum FieldNumber {
  case whole(Int128)
  case real(Double)
  /// The text of a `Decimal`, as properties of that type have it.
  case decimal(Decimal, String)

  init?(_ json: JSONValue) {
    switch json {
    case .integer(let value): self = .whole(Int128(value))
    case .unsigned(let value): self = .whole(Int128(value))
    case .double(let value): self.init(value)
    // The number that its text is read as by all other replicas.
    case .float(let value): self.init(Double("\(value)") ?? Double(value))
    case .string(let text):
      // The longest text of a `Decimal` has 169 bytes.
      guard text.utf8.count <= 200, let value = Self.decimal(text) else { return nil }
      self = .decimal(value, text)
    case .null, .bool, .array, .object: return nil
    }
  }

  private init?(_ value: Double) {
    guard value.isFinite else { return nil }
    self = Int128(exactly: value).map(Self.whole) ?? .real(value)
  }

  private static func decimal(_ text: String) -> Decimal? {
    guard text.utf8.allSatisfy({ "+-.0123456789eE".utf8.contains($0) }),
      let value = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")), !value.isNaN
    else { return nil }
    return value
  }

  /// The number as JSON writes it.
  var json: JSONValue? {
    switch self {
    case .whole(let value):
      Int64(exactly: value).map { .integer($0) } ?? UInt64(exactly: value).map { .unsigned($0) }
        ?? .double(Double(value))
    case .real(let value): .double(value)
    case .decimal(_, let text): .string(text)
    }
  }

  func isLess(than other: FieldNumber) -> Bool {
    switch (self, other) {
    case (.whole(let a), .whole(let b)): return a < b
    case (.real(let a), .real(let b)): return a < b
    case (.whole(let a), .real(let b)):
      // The fraction decides only between neighbours.
      guard let below = Int128(exactly: b.rounded(.down)) else { return b > 0 }
      return a <= below
    case (.real(let a), .whole(let b)):
      guard let below = Int128(exactly: a.rounded(.down)) else { return a < 0 }
      return below < b
    case (.decimal, _), (_, .decimal):
      guard let a = decimal, let b = other.decimal else { return false }
      return a < b
    }
  }

  /// The number as a `Decimal`; nil if it is too large or too small for one.
  private var decimal: Decimal? {
    switch self {
    case .whole(let value): Self.decimal("\(value)")
    case .real(let value): Self.decimal("\(value)")
    case .decimal(let value, _): value
    }
  }
}

extension JSONValue {
  /// The text of a number, also of one that is written as a text.
  fileprivate var plainText: String { if case .string(let text) = self { text } else { text } }
}
