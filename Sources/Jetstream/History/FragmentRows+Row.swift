import Foundation

extension FragmentRows {
  /// One model.
  package struct Row: Sendable, Hashable {
    /// The name of the model's class on the wire.
    package let className: String
    /// The values by property name, without what waits.
    private var values: JSONObject
    /// The operations that wait to be applied to their collections, by property. One alone costs as much as the
    /// collection is large, and many together cost that once.
    private var waiting: [String: [PropertyOperation]] = [:]

    init(className: String, properties: JSONObject) {
      (self.className, values) = (className, properties)
    }

    /// Takes a model as a fragment has it: null is no entry of a dictionary.
    init(_ fragment: SyncFragment) {
      (className, values) = (fragment.className, fragment.properties)
      values.dropNullEntries(of: nil)
    }

    /// The values by property name. Cost: O(n) in the collections for which operations wait.
    package var properties: JSONObject {
      var row = self
      row.settle()
      return row.values
    }

    /// Returns the value of a property. Cost: O(n) in a collection for which operations wait.
    func value(of key: String) -> JSONValue? {
      guard let operations = waiting[key] else { return values[key] }
      return PropertyOperation.apply(operations, to: values[key], within: .unknown)
    }

    /// Writes values of properties; null is no entry of a dictionary.
    mutating func assign(_ new: JSONObject) {
      if !waiting.isEmpty { for (key, _) in new { waiting[key] = nil } }
      values.assign(new, of: nil)
    }

    /// Applies operations to a property. Those on a collection wait until they are as many as the models in it, so that
    /// each costs the same.
    ///
    /// - Returns: true if the property is a collection.
    mutating func perform(_ operations: [PropertyOperation], on key: String) -> Bool {
      let isList = values[key] != nil || operations.allSatisfy { $0.model != nil }
      let value = values[key] ?? .array([])
      guard case .array(let elements) = value,
        waiting[key] != nil || (isList && CollectionContent(value) != nil)
      else {
        values[key] = PropertyOperation.apply(operations, to: values[key], within: .unknown)
        return false
      }
      if elements.isEmpty { values[key] = value }
      waiting[key, default: []] += operations
      guard waiting[key]!.count > max(64, elements.count) else { return true }
      values[key] = self.value(of: key)
      waiting[key] = nil
      return true
    }

    /// Applies all operations that wait.
    mutating func settle() {
      if waiting.isEmpty { return }
      for (key, _) in waiting { values[key] = value(of: key) }
      waiting = [:]
    }

    package static func == (a: Row, b: Row) -> Bool {
      a.className == b.className && a.properties == b.properties
    }

    package func hash(into hasher: inout Hasher) {
      hasher.combine(className)
      hasher.combine(properties)
    }
  }
}
