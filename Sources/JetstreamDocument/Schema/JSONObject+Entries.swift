extension JSONObject {
  /// Writes values of properties into the values of a model: an entry of a dictionary that becomes null is gone.
  /// Cost: O(n) in both.
  package mutating func assign(_ values: JSONObject, of schema: ClassSchema?) {
    var removesEntries = false
    for member in values.members {
      self[member.key] = member.value
      if member.value == .null { removesEntries = true }
    }
    if removesEntries { dropNullEntries(of: schema) }
  }

  /// Drops the entries of dictionaries that are null: null is no entry. A name that the schema does not have is that of
  /// an entry if it may be one. Cost: O(n).
  package mutating func dropNullEntries(of schema: ClassSchema?) {
    removeAll { key, value in
      guard value == .null else { return false }
      return schema?[wireName: key].map { $0.entryKey != nil } ?? EntryName.mayBeEntry(key)
    }
  }
}
