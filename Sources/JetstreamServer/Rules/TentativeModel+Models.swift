import Foundation
import Jetstream

/// The models that the properties of a model hold.
extension TentativeModel {
  /// Returns the models that a property holds now, or would hold.
  func models(in property: PropertySchema, after: Bool) -> [UUID] {
    if property.kind == .dictionary {
      return entries(of: property, after: after).map(\.model)
    }
    return Self.models(in: after ? newValue(of: property) : oldValue(of: property))
  }

  /// Returns the models that the value of a reference or of a collection names.
  static func models(in value: JSONValue) -> [UUID] {
    CollectionContent(value)?.elements ?? model(in: value).map { [$0] } ?? []
  }

  /// Returns the model that the value of a reference names; nil if it names none.
  static func model(in value: JSONValue) -> UUID? {
    if case .string(let text) = value { UUID(wireText: text) } else { nil }
  }

  /// Returns the entries that a dictionary has now, or would have.
  func entries(of dictionary: PropertySchema, after: Bool) -> [(key: String, model: UUID)] {
    var models: [String: UUID] = [:]
    func note(_ entry: PropertySchema, _ value: JSONValue) {
      guard let key = entry.entryKey, entry.index == dictionary.index else { return }
      models[key] = Self.model(in: value)
    }
    for member in (current?.currentProperties() ?? JSONObject()).members {
      if let entry = schema[wireName: member.key] { note(entry, member.value) }
    }
    if after {
      for place in 0..<writeCount { note(write(at: place).property, newValue(at: place)) }
    }
    return models.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Calls `body` with each model that a synced property would hold.
  func forEachNewChild(_ body: (UUID) -> Void) {
    for property in schema.properties where property.isSynced {
      // A comparison of kinds would call the other module.
      if case .plain = property.kind { continue }
      for uuid in models(in: property, after: true) { body(uuid) }
    }
  }
}
