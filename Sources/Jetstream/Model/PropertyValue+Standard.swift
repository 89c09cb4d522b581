import Foundation

extension Bool: PropertyValue {
  /// A truth value.
  public static var propertyType: PropertyType { .boolean }
  /// `true` or `false`.
  public var jsonValue: JSONValue { .bool(self) }
  /// Reads `true` and `false`, nothing else.
  public static func decode(_ json: JSONValue) -> Bool? {
    if case .bool(let value) = json { value } else { nil }
  }
}

extension PropertyValue where Self: FixedWidthInteger {
  /// An integer of this type.
  public static var propertyType: PropertyType { .integer("\(Self.self)") }
  /// The digits; all 64 bits are kept.
  public var jsonValue: JSONValue {
    if let value = Int64(exactly: self) { .integer(value) } else { .unsigned(UInt64(self)) }
  }
  /// Reads an integral number that fits.
  public static func decode(_ json: JSONValue) -> Self? {
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
  /// A number.
  public static var propertyType: PropertyType { .number("Double") }
  /// The number; not-a-number and the infinities are the texts `NaN`, `Infinity` and `-Infinity`.
  public var jsonValue: JSONValue {
    isFinite ? .double(self) : NonFinite.text(isNaN: isNaN, isNegative: self < 0)
  }
  /// Reads any number and the texts of the non-finite ones.
  public static func decode(_ json: JSONValue) -> Double? {
    switch json {
    case .double(let value): value
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .float(let value): Double(value)
    case .string(let text): NonFinite.value(text)
    default: nil
    }
  }
  /// Equality under which not-a-number equals itself, so that writing it twice changes nothing.
  @inlinable public static func isSame(_ a: Double, _ b: Double) -> Bool {
    a == b || (a.isNaN && b.isNaN)
  }
}

extension Float: PropertyValue {
  /// A number.
  public static var propertyType: PropertyType { .number("Float") }
  /// The number; not-a-number and the infinities are the texts `NaN`, `Infinity` and `-Infinity`.
  public var jsonValue: JSONValue {
    isFinite ? .float(self) : NonFinite.text(isNaN: isNaN, isNegative: self < 0)
  }
  /// Reads any number within range, rounded to the nearest `Float`, and the non-finite texts.
  public static func decode(_ json: JSONValue) -> Float? {
    if case .float(let value) = json { return value }
    guard let wide = Double.decode(json) else { return nil }
    let value = Float(wide)
    return value.isFinite || !wide.isFinite ? value : nil
  }
  /// Equality under which not-a-number equals itself, so that writing it twice changes nothing.
  @inlinable public static func isSame(_ a: Float, _ b: Float) -> Bool {
    a == b || (a.isNaN && b.isNaN)
  }
}

/// The texts of numbers that JSON has no form for.
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
  /// A text.
  public static var propertyType: PropertyType { .string }
  /// The text.
  public var jsonValue: JSONValue { .string(self) }
  /// Reads a text, nothing else.
  public static func decode(_ json: JSONValue) -> String? {
    if case .string(let value) = json { value } else { nil }
  }
  /// Equality of the bytes: two ways to encode one character are different values, or replicas
  /// would keep different bytes.
  @inlinable public static func isSame(_ a: String, _ b: String) -> Bool {
    a == b && a.utf8.elementsEqual(b.utf8)
  }
}

extension UUID: PropertyValue {
  /// A UUID.
  public static var propertyType: PropertyType { .uuid }
  /// Lower-case text.
  public var jsonValue: JSONValue { .string(wireText) }
  /// Reads the text in either case.
  public static func decode(_ json: JSONValue) -> UUID? {
    if case .string(let text) = json { UUID(wireText: text) } else { nil }
  }
}

extension RGBAColor: PropertyValue {
  /// A colour.
  public static var propertyType: PropertyType { .color }
  /// `0xRRGGBBAA` as an integer.
  public var jsonValue: JSONValue { .integer(Int64(rgba)) }
  /// Reads an integer of 32 bits.
  public static func decode(_ json: JSONValue) -> RGBAColor? {
    UInt32.decode(json).map(RGBAColor.init(rgba:))
  }
}

extension Date: PropertyValue {
  /// A moment.
  public static var propertyType: PropertyType { .date }
  /// Seconds since 1970.
  public var jsonValue: JSONValue { timeIntervalSince1970.jsonValue }
  /// Whether two moments are the same. One that is not a number is the same as another such.
  public static func isSame(_ a: Date, _ b: Date) -> Bool {
    Double.isSame(a.timeIntervalSinceReferenceDate, b.timeIntervalSinceReferenceDate)
  }
  /// Reads seconds since 1970, or ISO 8601 text with or without fractions of a second.
  public static func decode(_ json: JSONValue) -> Date? {
    if case .string(let text) = json {
      if let seconds = NonFinite.value(text) { return Date(timeIntervalSince1970: seconds) }
      let plain = Date.ISO8601FormatStyle()
      let fractional = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
      return (try? fractional.parse(text)) ?? (try? plain.parse(text))
    }
    guard let seconds = Double.decode(json), seconds.isFinite else { return nil }
    return Date(timeIntervalSince1970: seconds)
  }
}

extension PropertyValue where Self: RawRepresentable, RawValue: PropertyValue {
  /// The raw value's type, limited to the declared cases.
  public static var propertyType: PropertyType { .enumeration(RawValue.propertyType) }
  /// The raw value.
  public var jsonValue: JSONValue { rawValue.jsonValue }
  /// Reads a raw value; one that no case has is refused.
  public static func decode(_ json: JSONValue) -> Self? {
    RawValue.decode(json).flatMap(Self.init(rawValue:))
  }
  /// Names the type that does not have the raw value.
  public static func problem(with json: JSONValue) -> String? {
    RawValue.decode(json) == nil
      ? RawValue.problem(with: json) : "\(json.text) is no \(String(describing: Self.self))"
  }
}

extension Array: PropertyValue where Element: PropertyValue {
  /// An array of the element's type.
  public static var propertyType: PropertyType { .array(Element.propertyType) }
  /// The elements in order.
  public var jsonValue: JSONValue { .array(map { $0.jsonValue }) }
  /// Reads an array all of whose elements can be read.
  public static func decode(_ json: JSONValue) -> [Element]? {
    guard case .array(let values) = json else { return nil }
    var result: [Element] = []
    result.reserveCapacity(values.count)
    for value in values {
      guard let element = Element.decode(value) else { return nil }
      result.append(element)
    }
    return result
  }
  /// The problem with the first element that cannot be read.
  public static func problem(with json: JSONValue) -> String? {
    guard case .array(let values) = json else { return nil }
    return values.first { Element.decode($0) == nil }.flatMap(Element.problem)
  }
  /// Equality of all elements. Cost: O(n).
  public static func isSame(_ a: [Element], _ b: [Element]) -> Bool {
    a.elementsEqual(b, by: Element.isSame)
  }
  /// A buffer.
  @inlinable public static var _isBuffer: Bool { true }
}

extension Optional: PropertyValue where Wrapped: PropertyValue {
  /// The wrapped type or null.
  public static var propertyType: PropertyType {
    Wrapped._storageKind == .model ? Wrapped.propertyType : .optional(Wrapped.propertyType)
  }
  /// Null for nil.
  public var jsonValue: JSONValue { self?.jsonValue ?? .null }
  /// Reads null as nil.
  public static func decode(_ json: JSONValue) -> Wrapped?? {
    if json == .null { return .some(nil) }
    return Wrapped.decode(json).map { .some($0) }
  }
  /// The problem with the wrapped value.
  public static func problem(with json: JSONValue) -> String? { Wrapped.problem(with: json) }
  /// Equality of the wrapped values.
  @inlinable public static func isSame(_ a: Wrapped?, _ b: Wrapped?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (let a?, let b?): Wrapped.isSame(a, b)
    default: false
    }
  }
  /// A reference where the wrapped type is a model.
  @inlinable public static var _storageKind: _StorageKind {
    Wrapped._storageKind == .model ? .reference : .plain
  }
  /// A buffer if the wrapped value is one.
  @inlinable public static var _isBuffer: Bool { Wrapped._isBuffer }
  /// The wrapped model.
  public static func _model(of value: Wrapped?) -> ModelObject? { value.flatMap(Wrapped._model) }
  /// A reference to `model`; nil if its class does not fit.
  public static func _value(of model: ModelObject?) -> Wrapped?? {
    guard let model else { return .some(nil) }
    return Wrapped._value(of: model).map { .some($0) }
  }
  /// The wrapped class.
  public static var _modelClass: ModelObject.Type? { Wrapped._modelClass }
  /// Whether the wrapped type can be `model`.
  public static func _canHold(_ model: ModelObject) -> Bool { Wrapped._canHold(model) }
}
