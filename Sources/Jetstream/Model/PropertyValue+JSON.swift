extension JSONValue: PropertyValue {
  /// Any JSON.
  public static var _propertyType: _PropertyType { .json }
  /// The value with the keys of all objects in order, and with every number as it would be read again. Traps if it nests
  /// more than 240 levels deep.
  public var _jsonValue: JSONValue {
    precondition(
      !nests(deeperThan: JSONLimits.value.maxDepth),
      "A JSON value in a @Property nests more than \(JSONLimits.value.maxDepth) levels deep, and no peer could read it."
    )
    return normalized
  }

  private var normalized: JSONValue {
    switch self {
    case .null, .bool, .string, .integer: self
    case .unsigned(let value): Int64(exactly: value).map { .integer($0) } ?? self
    case .double(let value): Self.read(value, text: text)
    case .float(let value): Self.read(Double(value), text: text)
    case .array(let elements): .array(elements.map(\.normalized))
    case .object(let object): .object(object.sortedByKey(\.normalized))
    }
  }
  /// Reads anything that nests at most 240 levels deep.
  public static func _decode(_ json: JSONValue) -> JSONValue? {
    json.nests(deeperThan: JSONLimits.value.maxDepth) ? nil : json.normalized
  }
  /// Equality of what is written: `.integer(1)` and `.double(1)` are the same, and so are objects whose keys stand in
  /// another order. Texts are compared byte for byte. Cost: O(n).
  public static func _isSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    var (first, second): ([UInt8], [UInt8]) = ([], [])
    a.writeCanonical(to: &first)
    b.writeCanonical(to: &second)
    return first == second
  }
  /// A buffer.
  @inlinable public static var _isBuffer: Bool { true }

  /// Returns a fraction as it is, and what is written as a whole number as that.
  private static func read(_ value: Double, text: String) -> JSONValue {
    if !value.isFinite { return .null }
    return Int64(text).map { .integer($0) } ?? (try? JSONValue(parsing: text)) ?? .double(value)
  }
}

extension JSONObject {
  /// Returns the object with the keys in the order of their UTF-8 bytes.
  func sortedByKey(_ transform: (JSONValue) -> JSONValue) -> JSONObject {
    // It makes a value of each.
    sortedByKey(transforming: transform)!
  }
}
