import Foundation

extension URL: PropertyValue {
  /// A URL.
  public static var _propertyType: _PropertyType { .url }
  /// The absolute string of the URL.
  public var _jsonValue: JSONValue { .string(absoluteString) }
  /// Decodes the text of a URL. Returns nil for any other text, and for text that would have to be
  /// escaped to become a URL.
  public static func _decode(_ json: JSONValue) -> URL? {
    guard case .string(let text) = json else { return nil }
    return URL(string: text, encodingInvalidCharacters: false)
  }
  /// Describes that a text is not a URL.
  public static func _problem(with json: JSONValue) -> String? {
    if case .string = json { "\(json.text) is no URL" } else { nil }
  }
  /// Returns true if the absolute strings are equal: a URL relative to a base is the same as the
  /// complete URL.
  public static func _isSame(_ a: URL, _ b: URL) -> Bool {
    String._isSame(a.absoluteString, b.absoluteString)
  }
}

extension Data: PropertyValue {
  /// Bytes.
  public static var _propertyType: _PropertyType { .data }
  /// The bytes as base64 text, with padding.
  public var _jsonValue: JSONValue { .string(base64EncodedString()) }
  /// Decodes base64 text in the form in which it is encoded: with padding and without other
  /// characters.
  public static func _decode(_ json: JSONValue) -> Data? {
    guard case .string(let text) = json, let data = Data(base64Encoded: text),
      data.base64EncodedString() == text
    else { return nil }
    return data
  }
  /// Always true.
  @inlinable public static var _isBuffer: Bool { true }
}

extension Dictionary: PropertyValue where Key == String, Value: PropertyValue {
  /// An object whose values are of the value's type.
  public static var _propertyType: _PropertyType { .dictionary(Value._propertyType) }
  /// An object with its keys in the order of their UTF-8 bytes. Cost: O(n log n).
  public var _jsonValue: JSONValue {
    var object = JSONObject()
    object.reserveCapacity(count)
    for key in Array(keys).sortedByBytes() { object.append(newKey: key, self[key]!._jsonValue) }
    return .object(object)
  }
  /// Decodes an object; nil if one of its values cannot be decoded.
  public static func _decode(_ json: JSONValue) -> [String: Value]? {
    guard case .object(let object) = json else { return nil }
    var result: [String: Value] = [:]
    result.reserveCapacity(object.count)
    for (key, value) in object {
      guard let element = Value._decode(value) else { return nil }
      result[key] = element
    }
    return result
  }
  /// Always true.
  @inlinable public static var _isBuffer: Bool { true }
  /// Describes the problem with the first value that cannot be decoded.
  public static func _problem(with json: JSONValue) -> String? {
    guard case .object(let object) = json else { return nil }
    return object.first { Value._decode($0.value) == nil }.flatMap {
      Value._problem(with: $0.value)
    }
  }
  /// Returns true if all keys, byte for byte, and all values are the same. Cost: O(n).
  public static func _isSame(_ a: [String: Value], _ b: [String: Value]) -> Bool {
    guard a.count == b.count else { return false }
    return a.allSatisfy { key, value in
      guard let place = b.index(forKey: key) else { return false }
      return String._isSame(key, b[place].key) && Value._isSame(value, b[place].value)
    }
  }
}
