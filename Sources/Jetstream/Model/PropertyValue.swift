import Foundation

/// A type that a `@Property` can hold.
///
/// Jetstream conforms the standard types: `Bool`, every integer, `Float`, `Double`, `String`, `Date`,
/// `UUID`, `URL`, `Data`, `Decimal`, ``RGBAColor``, arrays, sets and dictionaries with `String` keys of these, optionals
/// of all of them, ``JSONValue`` for any JSON, an optional ``ModelObject`` subclass, and ``ModelArray``. An enumeration with a raw
/// value of one of these joins by naming the protocol, and a `Codable` value type by naming
/// ``CodableValue``:
///
/// ```swift
/// enum Priority: Int, PropertyValue { case low, normal, high }
/// struct Point: CodableValue { var x, y: Double }
/// ```
///
/// Values are told apart by what they are on the wire, so that equal replicas have equal bytes: texts
/// are compared byte for byte, not-a-number equals itself, and minus zero is zero.
public protocol PropertyValue {
  /// What the property is on the wire.
  static var propertyType: PropertyType { get }

  /// The value as JSON.
  var jsonValue: JSONValue { get }

  /// Reads a value from JSON; nil if the JSON is not one.
  static func decode(_ json: JSONValue) -> Self?

  /// Returns why a text or another piece of JSON that ``decode(_:)`` refuses is no value of this type, as a
  /// sentence for people. A client whose change a server refuses for it gets the sentence with the error. Nil,
  /// the default, where the JSON is simply of another type.
  static func problem(with json: JSONValue) -> String?

  /// Whether two values are the same: writing an equal value does nothing at all.
  static func isSame(_ a: Self, _ b: Self) -> Bool

  /// How the framework handles the value; not meant to be implemented outside of it.
  static var _storageKind: _StorageKind { get }
  /// Whether changing a copy of the value takes time in proportion to its size.
  static var _isBuffer: Bool { get }
  /// The model that a reference holds.
  static func _model(of value: Self) -> ModelObject?
  /// A reference to `model`; nil if its class does not fit.
  static func _value(of model: ModelObject?) -> Self?
  /// The list of models that a collection holds.
  static func _list(of value: Self) -> ModelList?
  /// A collection of `list`; nil if an element's class does not fit.
  static func _value(of list: ModelList) -> Self?
  /// The class of the models that the value holds.
  static var _modelClass: ModelObject.Type? { get }
  /// Whether a reference or collection of this type can hold `model`.
  static func _canHold(_ model: ModelObject) -> Bool
  /// Opens the value of this type at `address` for changes that are written down.
  static func _openLease(at address: UnsafeMutableRawPointer) -> ListLease?
  /// The value of this type at `address`, as JSON.
  static func _json(at address: UnsafeRawPointer) -> JSONValue
  /// Whether the value of this type at `address` is the one that the JSON describes.
  static func _isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool
  /// Changes the list of the value of this type at `address` in place.
  static func _changeList(at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void)
}

/// How a property's value takes part in the tree.
@frozen public enum _StorageKind: Sendable {
  /// A value.
  case plain
  /// A model by itself, which only an optional of it can be stored as.
  case model
  /// An optional model.
  case reference
  /// A ``ModelArray``.
  case collection
}

/// What a property is on the wire.
public indirect enum PropertyType: Sendable, Hashable, CustomStringConvertible {
  /// A truth value.
  case boolean
  /// An integer; the name of its Swift type tells the width.
  case integer(String)
  /// A number of the named floating-point type.
  case number(String)
  /// A text.
  case string
  /// Seconds since 1970 as a number; ISO 8601 text is read too.
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
  case enumeration(PropertyType)
  /// The type or null.
  case optional(PropertyType)
  /// An array of values.
  case array(PropertyType)
  /// An array of different values, whose order does not count.
  case set(PropertyType)
  /// An object of values by key.
  case dictionary(PropertyType)
  /// What the ``CodableValue`` of the given name writes.
  case value(String)
  /// The UUID of a model of the named class, which need not exist, or null.
  case weakReference(String)
  /// A model of the named class or null.
  case reference(String)
  /// Models of the named class, each at most once.
  case collection(String)

  /// How error messages call the type, in the words that old peers use.
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

  /// Why a property cannot have this type, as the end of a sentence about it; nil if it can.
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
  /// Has nothing to say.
  public static func problem(with json: JSONValue) -> String? { nil }
  /// A plain value.
  @inlinable public static var _storageKind: _StorageKind { .plain }
  /// A value of constant size.
  @inlinable public static var _isBuffer: Bool { false }
  /// Plain values hold no model.
  public static func _model(of value: Self) -> ModelObject? { nil }
  /// Plain values hold no model.
  public static func _value(of model: ModelObject?) -> Self? { nil }
  /// Plain values hold no list.
  public static func _list(of value: Self) -> ModelList? { nil }
  /// Plain values hold no list.
  public static func _value(of list: ModelList) -> Self? { nil }
  /// Plain values hold no model.
  public static var _modelClass: ModelObject.Type? { nil }
  /// Plain values hold no model.
  public static func _canHold(_ model: ModelObject) -> Bool { false }
  /// Plain values hold no list.
  public static func _changeList(
    at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void
  ) {}
  /// Plain values need no lease.
  @inlinable
  public static func _openLease(at address: UnsafeMutableRawPointer) -> ListLease? { nil }
  // Required by the protocol so that each type has its own: what change sets are made with must not
  // look its type up at run time. Sound because `Property` passes the address of a value of its type.
  /// Reads the value and gives its JSON.
  public static func _json(at address: UnsafeRawPointer) -> JSONValue {
    address.assumingMemoryBound(to: Self.self).pointee.jsonValue
  }
  /// Reads both as values and compares them; models by their UUIDs.
  public static func _isSame(_ json: JSONValue, at address: UnsafeRawPointer) -> Bool {
    let value = address.assumingMemoryBound(to: Self.self).pointee
    if _storageKind != .plain { return value.jsonValue == json }
    guard let other = decode(json) else { return false }
    return isSame(other, value)
  }
}

extension PropertyValue where Self: Equatable {
  /// The type's own equality.
  @inlinable public static func isSame(_ a: Self, _ b: Self) -> Bool { a == b }
}
