/// A type of values that are read and written member by member, without a value in between: of a large object, a
/// dictionary takes longer to make than all of its members.
protocol MemberwiseValue: SendableMetatype {
  /// Returns the JSON as the type writes it; nil if it is not a value of the type.
  static func normalized(_ json: JSONValue) -> JSONValue?
  /// Returns true if the JSON is a value of the type.
  static func accepts(_ json: JSONValue) -> Bool
  /// Returns true if two objects are the same value of the type; nil if values have to be made to tell.
  static func areSame(_ a: JSONObject, _ b: JSONObject) -> Bool?
}

extension Dictionary: MemberwiseValue where Key == String, Value: PropertyValue {
  static func normalized(_ json: JSONValue) -> JSONValue? {
    guard case .object(let object) = json else { return nil }
    return object.sortedByKey(transforming: { Value._decode($0)?._jsonValue }).map { .object($0) }
  }

  static func accepts(_ json: JSONValue) -> Bool {
    guard case .object(let object) = json else { return false }
    return object.members.allSatisfy { Value._decode($0.value) != nil }
  }

  static func areSame(_ a: JSONObject, _ b: JSONObject) -> Bool? {
    // Neither a key that only one has nor a value that cannot be read makes them the same.
    guard a.count == b.count else { return false }
    for at in a.members.indices {
      guard a.members[at].key.hasBytes(of: b.members[at].key) else { return nil }
      guard let first = Value._decode(a.members[at].value),
        let second = Value._decode(b.members[at].value), Value._isSame(first, second)
      else { return false }
    }
    return true
  }
}
