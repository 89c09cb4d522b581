import Foundation

/// An app-defined value type that a `@Property` can hold, encoded as JSON by its `Codable`
/// conformance.
///
/// ```swift
/// struct Point: CodableValue { var x, y: Double }
///
/// final class Shape: ModelObject {
///   @Property var center = Point(x: 0, y: 0)
///   @Property var corners: [Point] = []
/// }
/// ```
///
/// Keys are encoded in the order of their UTF-8 bytes, dates as seconds since 1970, `Data` as
/// base64 text, and numbers that JSON cannot express as `NaN`, `Infinity` and `-Infinity`. A number
/// is read again as a `Double` if it has a fraction: encode a `Decimal` with more digits as text. The
/// property rejects JSON for which `init(from:)` throws. `encode(to:)` must not throw, a `Decimal` must
/// be a number, and arrays and objects must not nest more than 240 levels deep: each of these traps.
///
/// Equal values must encode alike in every process, since replicas compare what is encoded. Only the keys of objects are
/// sorted. A `Set` within the value, and a `Dictionary` whose keys are neither texts, integers nor
/// `CodingKeyRepresentable`, are encoded as arrays in an order that differs between processes: the replicas of a scope
/// would never become equal. Write `encode(to:)` for such a type, and encode a sorted array:
///
/// ```swift
/// struct Filter: CodableValue {
///   var tags: Set<String> = []
///
///   func encode(to encoder: any Encoder) throws {
///     var container = encoder.container(keyedBy: CodingKeys.self)
///     try container.encode(tags.sorted(), forKey: .tags)
///   }
///
///   private enum CodingKeys: CodingKey { case tags }
/// }
/// ```
///
/// Two values are the same if they are equal and have the same encoding. A value that is not equal
/// to itself, because it contains a not-a-number, is compared by its encoding only.
///
/// Cost: encoding and decoding use Foundation's coders and take some microseconds per value.
/// Writing an equal value encodes both. Writing a different value encodes nothing until the change
/// set is made, except for the first write of an interval, which stores the old value.
public protocol CodableValue: PropertyValue, Codable, Equatable, Sendable {}

extension CodableValue {
  /// A plain value with the name of the type.
  public static var _propertyType: _PropertyType { .value(String(describing: Self.self)) }

  /// The JSON that the type's `Codable` conformance encodes, with sorted keys.
  public var _jsonValue: JSONValue {
    do {
      return try JSONValue(encoding: self)
    } catch {
      preconditionFailure("A \(Self.self) in a @Property cannot be written as JSON: \(error)")
    }
  }

  /// Decodes a value with the type's `Codable` conformance; nil if `init(from:)` throws.
  public static func _decode(_ json: JSONValue) -> Self? { try? read(json) }

  /// Returns the message of the error that `init(from:)` throws; nil if it accepts the JSON.
  public static func _problem(with json: JSONValue) -> String? {
    do {
      _ = try read(json)
      return nil
    } catch let error as DecodingError {
      return error.sentence
    } catch {
      return (error as? any LocalizedError)?.errorDescription ?? "\(error)"
    }
  }

  private static func read(_ json: JSONValue) throws -> Self {
    // A value that could not be written again is refused.
    if json.nests(deeperThan: JSONLimits.value.maxDepth) { throw JSONError(.tooDeep, at: 0) }
    return try json.decoded(as: Self.self)
  }

  /// Returns true if two values are equal and have the same encoding.
  public static func _isSame(_ a: Self, _ b: Self) -> Bool {
    // Only a value that is not equal to itself may be the same as one that it does not equal.
    if a != b, a == a, b == b { return false }
    return String._isSame(a._jsonValue.text, b._jsonValue.text)
  }
}

/// Enumerations are encoded as their raw values.
extension CodableValue where Self: RawRepresentable, RawValue: PropertyValue {
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

extension DecodingError {
  /// The description of the error, preceded by the path of keys to the invalid part.
  fileprivate var sentence: String {
    let context: Context
    switch self {
    case .dataCorrupted(let found), .keyNotFound(_, let found), .typeMismatch(_, let found),
      .valueNotFound(_, let found):
      context = found
    @unknown default: return "\(self)"
    }
    let path = context.codingPath.map(\.stringValue).joined(separator: ".")
    return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
  }
}

/// The shared coders. They keep no state between calls.
private enum CodableCoders {
  static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    encoder.dateEncodingStrategy = .secondsSince1970
    encoder.dataEncodingStrategy = .base64
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return encoder
  }()

  static let decoder: JSONDecoder = {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .secondsSince1970
    decoder.dataDecodingStrategy = .base64
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return decoder
  }()
}

extension JSONValue {
  /// Makes the JSON of a value with sorted keys, as that of a property is made.
  package init(encoding value: some Encodable) throws {
    let bytes = try CodableCoders.encoder.encode(value)
    self = try JSONValue(parsing: bytes, limits: .value).sortedByKey
  }

  /// Returns the value of a type that this JSON describes.
  package func decoded<Value: Decodable>(as type: Value.Type) throws -> Value {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return try CodableCoders.decoder.decode(type, from: Data(bytes))
  }

  /// This value with the keys of every object in the order of their UTF-8 bytes.
  fileprivate var sortedByKey: JSONValue {
    switch self {
    case .array(let elements): return .array(elements.map(\.sortedByKey))
    case .object(let object): return .object(object.sortedByKey(\.sortedByKey))
    default: return self
    }
  }
}
