import Foundation

extension Bool: PropertyValue {
  /// A Boolean.
  public static var _propertyType: _PropertyType { .boolean }
  /// `true` or `false`.
  public var _jsonValue: JSONValue { .bool(self) }
  /// Decodes `true` and `false`; nil for any other JSON.
  public static func _decode(_ json: JSONValue) -> Bool? {
    if case .bool(let value) = json { value } else { nil }
  }
}

extension PropertyValue where Self: FixedWidthInteger {
  /// An integer of this type.
  public static var _propertyType: _PropertyType { .integer("\(Self.self)") }
  /// The integer, with all 64 bits.
  public var _jsonValue: JSONValue {
    if let value = Int64(exactly: self) { .integer(value) } else { .unsigned(UInt64(self)) }
  }
  /// Decodes an integral number; nil if it does not fit this type.
  public static func _decode(_ json: JSONValue) -> Self? {
    switch json {
    case .integer(let value): Self(exactly: value)
    case .unsigned(let value): Self(exactly: value)
    case .double(let value): Self(exactly: value)
    default: nil
    }
  }
}

extension Int: PropertyValue {}
extension Int8: PropertyValue {}
extension Int16: PropertyValue {}
extension Int32: PropertyValue {}
extension Int64: PropertyValue {}
extension UInt: PropertyValue {}
extension UInt8: PropertyValue {}
extension UInt16: PropertyValue {}
extension UInt32: PropertyValue {}
extension UInt64: PropertyValue {}

extension Double: PropertyValue {
  /// A floating-point number.
  public static var _propertyType: _PropertyType { .number("Double") }
  /// The number; not-a-number and the infinities are the strings `NaN`, `Infinity` and `-Infinity`.
  public var _jsonValue: JSONValue {
    isFinite ? .double(self) : NonFinite.text(isNaN: isNaN, isNegative: self < 0)
  }
  /// Decodes any number, and the strings of the non-finite ones.
  public static func _decode(_ json: JSONValue) -> Double? {
    switch json {
    case .double(let value): value
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .float(let value): Double(value)
    case .string(let text): NonFinite.value(text)
    default: nil
    }
  }
  /// Returns true for equal values, and for two that are both not-a-number: writing it twice
  /// changes nothing.
  @inlinable public static func _isSame(_ a: Double, _ b: Double) -> Bool {
    a == b || (a.isNaN && b.isNaN)
  }
}

extension Float: PropertyValue {
  /// A floating-point number.
  public static var _propertyType: _PropertyType { .number("Float") }
  /// The number; not-a-number and the infinities are the strings `NaN`, `Infinity` and `-Infinity`.
  public var _jsonValue: JSONValue {
    isFinite ? .float(self) : NonFinite.text(isNaN: isNaN, isNegative: self < 0)
  }
  /// Decodes any number within range, rounded to the nearest `Float`, and the strings of the
  /// non-finite ones.
  public static func _decode(_ json: JSONValue) -> Float? {
    if case .float(let value) = json { return value }
    guard let wide = Double._decode(json) else { return nil }
    let value = Float(wide)
    return value.isFinite || !wide.isFinite ? value : nil
  }
  /// Returns true for equal values, and for two that are both not-a-number: writing it twice
  /// changes nothing.
  @inlinable public static func _isSame(_ a: Float, _ b: Float) -> Bool {
    a == b || (a.isNaN && b.isNaN)
  }
}

/// The strings for numbers that JSON cannot express.
private enum NonFinite {
  static func text(isNaN: Bool, isNegative: Bool) -> JSONValue {
    .string(isNaN ? "NaN" : isNegative ? "-Infinity" : "Infinity")
  }

  static func value(_ text: String) -> Double? {
    switch text {
    case "NaN": .nan
    case "Infinity": .infinity
    case "-Infinity": -.infinity
    default: nil
    }
  }
}

extension String: PropertyValue {
  /// A string.
  public static var _propertyType: _PropertyType { .string }
  /// The string itself.
  public var _jsonValue: JSONValue { .string(self) }
  /// Decodes a string; nil for any other JSON.
  public static func _decode(_ json: JSONValue) -> String? {
    if case .string(let value) = json { value } else { nil }
  }
  /// Returns true if the UTF-8 bytes are equal. Two encodings of one character are different
  /// values; otherwise replicas could keep different bytes.
  public static func _isSame(_ a: String, _ b: String) -> Bool { a.hasBytes(of: b) }
}

extension UUID: PropertyValue {
  /// A UUID.
  public static var _propertyType: _PropertyType { .uuid }
  /// The UUID in lower case.
  public var _jsonValue: JSONValue { .string(wireText) }
  /// Decodes a UUID in upper or lower case.
  public static func _decode(_ json: JSONValue) -> UUID? {
    if case .string(let text) = json { UUID(wireText: text) } else { nil }
  }
}

extension RGBAColor: PropertyValue {
  /// A colour.
  public static var _propertyType: _PropertyType { .color }
  /// `0xRRGGBBAA` as an integer.
  public var _jsonValue: JSONValue { .integer(Int64(rgba)) }
  /// Decodes an unsigned 32-bit integer.
  public static func _decode(_ json: JSONValue) -> RGBAColor? {
    UInt32._decode(json).map(RGBAColor.init(rgba:))
  }
}

extension Date: PropertyValue {
  /// A date.
  public static var _propertyType: _PropertyType { .date }
  /// The number of seconds since 1970.
  public var _jsonValue: JSONValue { timeIntervalSince1970._jsonValue }
  /// Returns true for dates with the same number of seconds since 1970, which takes one bit less than a `Date` may have:
  /// what is written as JSON and read again is the same.
  public static func _isSame(_ a: Date, _ b: Date) -> Bool {
    Double._isSame(a.timeIntervalSince1970, b.timeIntervalSince1970)
  }
  /// Decodes seconds since 1970, or ISO 8601 text with or without fractions of a second.
  public static func _decode(_ json: JSONValue) -> Date? {
    if case .string(let text) = json {
      if let seconds = NonFinite.value(text) { return Date(timeIntervalSince1970: seconds) }
      let plain = Date.ISO8601FormatStyle()
      let fractional = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
      return (try? fractional.parse(text)) ?? (try? plain.parse(text))
    }
    guard let seconds = Double._decode(json), seconds.isFinite else { return nil }
    return Date(timeIntervalSince1970: seconds)
  }
}

extension PropertyValue where Self: RawRepresentable, RawValue: PropertyValue {
  /// The raw value's type, limited to the declared cases.
  public static var _propertyType: _PropertyType { .enumeration(RawValue._propertyType) }
  /// The raw value as JSON.
  public var _jsonValue: JSONValue { rawValue._jsonValue }
  /// Returns the case with the raw value; nil if there is none.
  public static func _decode(_ json: JSONValue) -> Self? {
    RawValue._decode(json).flatMap(Self.init(rawValue:))
  }
  /// Describes why the JSON is not a raw value of the type.
  public static func _problem(with json: JSONValue) -> String? {
    RawValue._decode(json) == nil
      ? RawValue._problem(with: json) : "\(json.text) is no \(String(describing: Self.self))"
  }
}

extension Array: PropertyValue where Element: PropertyValue {
  /// An array of the element's type.
  public static var _propertyType: _PropertyType { .array(Element._propertyType) }
  /// The elements in order.
  public var _jsonValue: JSONValue { .array(map { $0._jsonValue }) }
  /// Decodes an array; nil if one of its elements cannot be decoded.
  public static func _decode(_ json: JSONValue) -> [Element]? {
    guard case .array(let values) = json else { return nil }
    var result: [Element] = []
    result.reserveCapacity(values.count)
    for value in values {
      guard let element = Element._decode(value) else { return nil }
      result.append(element)
    }
    return result
  }
  /// Describes the problem with the first element that cannot be decoded.
  public static func _problem(with json: JSONValue) -> String? {
    guard case .array(let values) = json else { return nil }
    return values.first { Element._decode($0) == nil }.flatMap(Element._problem)
  }
  /// Returns true if all elements are the same. Cost: O(n).
  public static func _isSame(_ a: [Element], _ b: [Element]) -> Bool {
    a.elementsEqual(b, by: Element._isSame)
  }
  /// Always true.
  @inlinable public static var _isBuffer: Bool { true }
}

extension Optional: PropertyValue where Wrapped: PropertyValue {
  /// The wrapped type or null.
  public static var _propertyType: _PropertyType {
    Wrapped._storageKind == .model ? Wrapped._propertyType : .optional(Wrapped._propertyType)
  }
  /// The wrapped value as JSON; null for nil.
  public var _jsonValue: JSONValue { self?._jsonValue ?? .null }
  /// Decodes null as nil, and other JSON as the wrapped type.
  public static func _decode(_ json: JSONValue) -> Wrapped?? {
    if json == .null { return .some(nil) }
    return Wrapped._decode(json).map { .some($0) }
  }
  /// Describes the problem with the wrapped value.
  public static func _problem(with json: JSONValue) -> String? { Wrapped._problem(with: json) }
  /// Returns true if both are nil or the wrapped values are the same.
  @inlinable public static func _isSame(_ a: Wrapped?, _ b: Wrapped?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (let a?, let b?): Wrapped._isSame(a, b)
    default: false
    }
  }
  /// `reference` if the wrapped type is a model; otherwise `plain`.
  @inlinable public static var _storageKind: _StorageKind {
    Wrapped._storageKind == .model ? .reference : .plain
  }
  /// True if the wrapped type is a buffer.
  @inlinable public static var _isBuffer: Bool { Wrapped._isBuffer }
  /// The access to the wrapped model; nil if the wrapped type is none.
  public static var _holder: _ModelHolding? {
    Wrapped._holder == nil ? nil : _ModelHolding(type: Self.self)
  }
}
