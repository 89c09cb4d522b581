import Foundation

/// A value type of your own that a `@Property` can hold, written as JSON by its `Codable` conformance.
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
/// Keys are written in the order of their UTF-8 bytes, dates as seconds since 1970, `Data` as base64
/// text, and numbers that JSON has no form for as `NaN`, `Infinity` and `-Infinity`. A value that its
/// `init(from:)` refuses is refused by the property. `encode(to:)` must not throw.
///
/// Two values are the same if they are equal and are written alike. One that is not equal to itself,
/// because there is a not-a-number in it, is compared by how it is written.
///
/// Cost: encoding and decoding go through Foundation's coders, some microseconds a value. Writing an
/// equal value encodes both; writing a different one encodes nothing until the change set is made,
/// but for the first write of an interval, which keeps the old value.
public protocol CodableValue: PropertyValue, Codable, Equatable, Sendable {}

extension CodableValue {
  /// A value of the named type.
  public static var propertyType: PropertyType { .value(String(describing: Self.self)) }

  /// What the type's `Codable` conformance writes.
  public var jsonValue: JSONValue {
    do {
      let bytes = try CodableCoders.encoder.encode(self)
      return try JSONValue(parsing: bytes).sortedByKey
    } catch {
      preconditionFailure("A \(Self.self) in a @Property cannot be written as JSON: \(error)")
    }
  }

  /// Reads what the type's `Codable` conformance accepts.
  public static func decode(_ json: JSONValue) -> Self? { try? read(json) }

  /// Returns the message of the error that `init(from:)` throws; nil if it accepts the JSON.
  public static func problem(with json: JSONValue) -> String? {
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
    var bytes: [UInt8] = []
    json.write(to: &bytes)
    return try CodableCoders.decoder.decode(Self.self, from: Data(bytes))
  }

  /// Whether two values are equal and written alike.
  public static func isSame(_ a: Self, _ b: Self) -> Bool {
    // Only a value that is not even equal to itself may be written like one that it does not equal.
    if a != b, a == a, b == b { return false }
    return String.isSame(a.jsonValue.text, b.jsonValue.text)
  }
}

/// An enumeration goes by its raw value, whatever protocol it joined by.
extension CodableValue where Self: RawRepresentable, RawValue: PropertyValue {
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

extension DecodingError {
  /// Returns the error's sentence about the value, behind the keys that lead to the part that is wrong.
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

/// The coders, set up once. They keep nothing between two calls.
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
  /// The value with the keys of every object in the order of their UTF-8 bytes.
  fileprivate var sortedByKey: JSONValue {
    switch self {
    case .array(let elements): return .array(elements.map(\.sortedByKey))
    case .object(let object): return .object(object.sortedByKey(\.sortedByKey))
    default: return self
    }
  }
}
