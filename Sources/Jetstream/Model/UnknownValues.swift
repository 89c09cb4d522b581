import Foundation

/// The properties and the class of a model that its own class does not know, as newer peers sent them. Stored with
/// the model's observers, so that a model without any needs no room for it.
struct UnknownValues {
  /// The unknown properties by their names on the wire.
  private(set) var properties = JSONObject()
  /// The name of the model's class at other replicas, if the scope does not know that class.
  var className: String?
  private var isSorted = true

  init(className: String? = nil) { self.className = className }

  /// The unknown properties in the order of their names, so that replicas agree.
  var sorted: JSONObject {
    mutating get {
      sort()
      return properties
    }
  }

  /// Puts the unknown properties in the order of their names.
  mutating func sort() {
    if isSorted { return }
    properties = JSONObject(properties.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    isSorted = true
  }

  /// Returns the same without the properties that may name models. Only the newer class knows: the value of a reference
  /// and of a dictionary's entry is a UUID, and that of a collection an array of them.
  ///
  /// - Parameter isName: returns true for a UUID that may be that of a model.
  func withoutModels(_ isName: (UUID) -> Bool) -> UnknownValues {
    func names(_ value: JSONValue) -> Bool {
      if case .string(let text) = value { UUID(wireText: text).map(isName) ?? false } else { false }
    }
    func namesModels(_ value: JSONValue) -> Bool {
      if case .array(let elements) = value { elements.contains(where: names) } else { names(value) }
    }
    var result = self
    result.properties.removeAll { _, value in namesModels(value) }
    return result
  }

  var isEmpty: Bool { properties.isEmpty && className == nil }

  /// Sets properties; null is no entry of a dictionary. Cost: O(n) in all.
  mutating func set(_ values: JSONObject) {
    if values.members.contains(where: { properties[$0.key] == nil }) {
      isSorted = properties.isEmpty && values.count == 1
    }
    properties.assign(values, of: nil)
  }

  /// Drops the properties that `state` does not name.
  mutating func keep(onlyIn state: JSONObject) {
    let gone = properties.filter { state[$0.key] == nil }.map(\.key)
    if gone.isEmpty { return }
    properties = JSONObject(
      properties.filter { state[$0.key] != nil }.map { ($0.key, $0.value) })
  }
}
