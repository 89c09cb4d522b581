/// The form of a schema in a file and in a message.
extension Schema {
  /// The version of the form.
  package static let version: Int64 = 1

  /// The size of the longest text of a schema that a server reads, in bytes.
  package static let maximumBytes = 256 << 10

  /// The schema as JSON, with the classes in the order of their names.
  package var json: JSONValue {
    var result: JSONObject = [:]
    result["version"] = .integer(Self.version)
    result["root"] = .string(root.wireName)
    result["classes"] = .array(all.map(\.json))
    return .object(result)
  }
}

extension ClassSchema {
  /// The class as JSON: what is synced of it.
  fileprivate var json: JSONValue {
    var result: JSONObject = [:]
    result["name"] = .string(wireName)
    if !superclasses.isEmpty { result["superclasses"] = .array(superclasses.map { .string($0) }) }
    result["properties"] = .array(properties.filter(\.isSynced).map(\.json))
    return .object(result)
  }
}

extension PropertySchema {
  /// The property as JSON.
  fileprivate var json: JSONValue {
    var result: JSONObject = [:]
    result["name"] = .string(wireName)
    result["type"] = .string(type.signature)
    if kind == .plain { result["default"] = defaultValue }
    if isCounter { result["counter"] = true }
    if let mergeRule { result["merge"] = .string(mergeRule.name) }
    rules?.write(to: &result)
    return .object(result)
  }
}
