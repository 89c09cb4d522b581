/// The form of rules in the JSON of a schema, as members of their property.
extension FieldRules {
  /// Writes the rules into the JSON of a property.
  func write(to object: inout JSONObject) {
    if let range { object["range"] = [range.lower ?? .null, range.upper ?? .null] }
    if let length {
      let most: JSONValue =
        length.upperBound == .max ? .null : .integer(Int64(length.upperBound))
      object["length"] = [.integer(Int64(length.lowerBound)), most]
    }
    if let pattern { object["pattern"] = .string(pattern.text) }
    if isImmutable { object["immutable"] = true }
    if isUnique { object["unique"] = true }
  }
}
