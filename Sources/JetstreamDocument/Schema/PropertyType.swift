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
  /// An object of values by key. Of references: models by key, each of them a property of its own in fragments.
  case dictionary(_PropertyType)
  /// The JSON of the `CodableValue` with the given name.
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
  package var misuse: String? {
    switch self {
    case .optional(.optional):
      "is optional twice, but null can stand for one nil only."
    case .optional(.json):
      "is optional, but null is a value of JSON itself; declare it as JSONValue, which can be null."
    case .dictionary(.reference): nil
    case .enumeration(let inner), .optional(let inner), .array(let inner), .set(let inner),
      .dictionary(let inner):
      switch inner {
      case .reference(let name), .collection(let name), .dictionary(.reference(let name)):
        "holds models inside of a value; declare it as ModelArray<\(name)> or "
          + "ModelDictionary<String, \(name)>."
      default: inner.misuse
      }
    default: nil
    }
  }
}
