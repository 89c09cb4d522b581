import Foundation

/// A type that a `@Property` can hold.
///
/// Jetstream conforms the standard types: `Bool`, every integer, `Float`, `Double`, `String`,
/// `Date`, `UUID`, `URL`, `Data`, `Decimal`, ``RGBAColor``, arrays, sets and dictionaries with
/// `String` keys of these, optionals of all of them, ``JSONValue`` for any JSON, an optional
/// ``ModelObject`` subclass, ``ModelArray`` and ``ModelDictionary``. To add an enumeration with a raw value of one of
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
  /// Decodes a value from JSON, or returns another one.
  static func _decode(_ json: JSONValue, or other: () -> Self) -> Self
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
  /// A ``ModelDictionary``.
  case dictionary
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
  // Protocol requirements, so that each type has its own implementation: making change sets and judging them must
  // not look types up at run time. Safe because `Property` passes the address of a value of its
  // type.
  /// Decodes a value from JSON; calls `other` if the JSON is not a value of this type.
  public static func _decode(_ json: JSONValue, or other: () -> Self) -> Self {
    _decode(json) ?? other()
  }
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
