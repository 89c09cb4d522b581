extension JSONObject {
  /// Writes the value of a property into the values of a model: an entry of a dictionary that becomes null is gone.
  package mutating func assign(_ value: JSONValue, to key: String, of schema: ClassSchema?) {
    self[key] = value == .null && schema?[wireName: key]?.entryKey != nil ? nil : value
  }
}
