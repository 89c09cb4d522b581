import Foundation

extension URL: PropertyValue {
  /// A URL.
  public static var propertyType: PropertyType { .url }
  /// The absolute text.
  public var jsonValue: JSONValue { .string(absoluteString) }
  /// Reads the text of a URL. Text that is none is refused, and so is text that would have to be
  /// escaped to become one.
  public static func decode(_ json: JSONValue) -> URL? {
    guard case .string(let text) = json else { return nil }
    return URL(string: text, encodingInvalidCharacters: false)
  }
  /// Says that a text is no URL.
  public static func problem(with json: JSONValue) -> String? {
    if case .string = json { "\(json.text) is no URL" } else { nil }
  }
  /// Equality of the absolute texts: a URL that is relative to a base is the same as the whole one.
  public static func isSame(_ a: URL, _ b: URL) -> Bool {
    String.isSame(a.absoluteString, b.absoluteString)
  }
}

extension Data: PropertyValue {
  /// Bytes.
  public static var propertyType: PropertyType { .data }
  /// The bytes as base64 text, with padding.
  public var jsonValue: JSONValue { .string(base64EncodedString()) }
  /// Reads base64 text, in the one form in which it is written: with padding and nothing else.
  public static func decode(_ json: JSONValue) -> Data? {
    guard case .string(let text) = json, let data = Data(base64Encoded: text),
      data.base64EncodedString() == text
    else { return nil }
    return data
  }
  /// A buffer.
  @inlinable public static var _isBuffer: Bool { true }
}

extension Dictionary: PropertyValue where Key == String, Value: PropertyValue {
  /// An object with values of the value's type.
  public static var propertyType: PropertyType { .dictionary(Value.propertyType) }
  /// An object with its keys in the order of their UTF-8 bytes. Cost: O(n log n).
  public var jsonValue: JSONValue {
    var object = JSONObject()
    object.reserveCapacity(count)
    for key in keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
      object.append(newKey: key, self[key]!.jsonValue)
    }
    return .object(object)
  }
  /// Reads an object all of whose values can be read.
  public static func decode(_ json: JSONValue) -> [String: Value]? {
    guard case .object(let object) = json else { return nil }
    var result: [String: Value] = [:]
    result.reserveCapacity(object.count)
    for (key, value) in object {
      guard let element = Value.decode(value) else { return nil }
      result[key] = element
    }
    return result
  }
  /// A buffer.
  @inlinable public static var _isBuffer: Bool { true }
  /// The problem with the first value that cannot be read.
  public static func problem(with json: JSONValue) -> String? {
    guard case .object(let object) = json else { return nil }
    return object.first { Value.decode($0.value) == nil }.flatMap { Value.problem(with: $0.value) }
  }
  /// Equality of all keys, byte for byte, and values. Cost: O(n).
  public static func isSame(_ a: [String: Value], _ b: [String: Value]) -> Bool {
    guard a.count == b.count else { return false }
    return a.allSatisfy { key, value in
      guard let place = b.index(forKey: key) else { return false }
      return String.isSame(key, b[place].key) && Value.isSame(value, b[place].value)
    }
  }
}
