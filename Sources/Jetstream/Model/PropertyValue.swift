import Foundation

/// A type that a `@Property` can hold.
///
/// Jetstream conforms the standard types: `Bool`, every integer, `Float`, `Double`, `String`,
/// `Date`, `UUID`, `URL`, `Data`, `Decimal`, ``RGBAColor``, arrays, sets and dictionaries with
/// `String` keys of these, optionals of all of them, ``JSONValue`` for any JSON, an optional
/// ``ModelObject`` subclass, and ``ModelArray``. To add an enumeration with a raw value of one of
/// these types, declare conformance to this protocol; to add a `Codable` value type, to
/// ``CodableValue``:
///
/// ```swift
/// enum Priority: Int, PropertyValue { case low, normal, high }
/// struct Point: CodableValue { var x, y: Double }
/// ```
///
/// Values are compared by their form on the wire, so that equal replicas have equal bytes: strings
/// are compared byte for byte, not-a-number equals itself, and minus zero equals zero.
public protocol PropertyValue {
  /// The type of the property on the wire.
  static var _propertyType: _PropertyType { get }

  /// The value as JSON.
  var _jsonValue: JSONValue { get }

  /// Decodes a value from JSON; nil if the JSON is not a value of this type.
  static func _decode(_ json: JSONValue) -> Self?

  /// Describes why the type does not accept the JSON, as a sentence. If a server rejects a
  /// change for this reason, the client gets the sentence with the error. Nil, the default, if the
  /// JSON is simply of another type.
  static func _problem(with json: JSONValue) -> String?

  /// Returns true if two values are the same. Writing a value that is the same as the current one
  /// does nothing.
  static func _isSame(_ a: Self, _ b: Self) -> Bool

  /// The way in which values of the type take part in the tree. This and the following requirements
  /// are for the framework; do not implement them.
  static var _storageKind: _StorageKind { get }
  /// True if changing a copy of the value takes time in proportion to its size.
  static var _isBuffer: Bool { get }
  /// The framework's access to the models of a value; nil if the type holds none.
  static var _holder: _ModelHolding? { get }
  /// Returns the value of this type at `address` as JSON.
  static func _json(at address: UnsafeRawPointer) -> JSONValue
  /// Returns true if the value of this type at `address` is the one that the JSON describes.
  static func _isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool
}

/// The way in which a property's value takes part in the tree.
@frozen public enum _StorageKind: Sendable {
  /// A value without models.
  case plain
  /// A model. A property can only hold it as an optional.
  case model
  /// An optional model.
  case reference
  /// A ``ModelArray``.
  case collection
}

/// The type of a property on the wire.
public indirect enum _PropertyType: Sendable, Hashable, CustomStringConvertible {
  /// A Boolean.
  case boolean
  /// An integer of the named Swift type, which gives the width.
  case integer(String)
  /// A number of the named floating-point type.
  case number(String)
  /// A string.
  case string
  /// A date as seconds since 1970. ISO 8601 text is decoded as well.
  case date
  /// A UUID as lower-case text.
  case uuid
  /// A URL as absolute text.
  case url
  /// Bytes as base64 text.
  case data
  /// A `Decimal` as text, with all its digits.
  case decimal
  /// Any JSON.
  case json
  /// A colour as one unsigned 32-bit integer.
  case color
  /// A raw value out of a fixed set that the receiver knows.
  case enumeration(_PropertyType)
  /// The type or null.
  case optional(_PropertyType)
  /// An array of values.
  case array(_PropertyType)
  /// An array of distinct values in an order that carries no meaning.
  case set(_PropertyType)
  /// An object of values by key.
  case dictionary(_PropertyType)
  /// The JSON of the ``CodableValue`` with the given name.
  case value(String)
  /// The UUID of a model of the named class, which need not exist, or null.
  case weakReference(String)
  /// A model of the named class or null.
  case reference(String)
  /// Models of the named class, each at most once.
  case collection(String)

  /// The name of the type in error messages, as in version 1 of the protocol.
  public var description: String {
    switch self {
    case .boolean: "Boolean"
    case .integer, .number, .color: "Number"
    case .string, .uuid, .url, .data, .decimal: "String"
    case .json: "any JSON"
    case .date: "Date"
    case .enumeration(let raw), .optional(let raw): raw.description
    case .array(let element), .set(let element): "array of \(element)"
    case .dictionary(let value): "object of \(value)"
    case .value(let name): name
    case .reference, .weakReference: "UUID"
    case .collection: "array of UUIDs"
    }
  }

  /// The reason why a property cannot have this type, as a predicate; nil if it can.
  var misuse: String? {
    switch self {
    case .optional(.optional):
      "is optional twice, but null can stand for one nil only."
    case .optional(.json):
      "is optional, but null is a value of JSON itself; declare it as JSONValue, which can be null."
    case .optional(let inner), .array(let inner), .set(let inner), .dictionary(let inner):
      switch inner {
      case .reference(let name), .collection(let name):
        "holds models inside of a value; declare it as ModelArray<\(name)>."
      default: inner.misuse
      }
    default: nil
    }
  }
}

extension PropertyValue {
  /// Returns nil.
  public static func _problem(with json: JSONValue) -> String? { nil }
  /// Always `plain`.
  @inlinable public static var _storageKind: _StorageKind { .plain }
  /// Always false.
  @inlinable public static var _isBuffer: Bool { false }
  /// Nil: plain values hold no model.
  @inlinable public static var _holder: _ModelHolding? { nil }
  // Protocol requirements, so that each type has its own implementation: making change sets must
  // not look types up at run time. Safe because `Property` passes the address of a value of its
  // type.
  /// Returns the value as JSON.
  public static func _json(at address: UnsafeRawPointer) -> JSONValue {
    address.assumingMemoryBound(to: Self.self).pointee._jsonValue
  }
  /// Decodes the JSON and compares the values; compares models by their UUIDs.
  public static func _isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    let value = address.assumingMemoryBound(to: Self.self).pointee
    if _storageKind != .plain { return value._jsonValue == json }
    guard let other = _decode(json) else { return false }
    return _isSame(other, value)
  }
}

extension PropertyValue where Self: Equatable {
  /// Returns true if the values are equal.
  @inlinable public static func _isSame(_ a: Self, _ b: Self) -> Bool { a == b }
}
