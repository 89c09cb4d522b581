import Foundation

/// Properties and models of newer peers that the classes of a scope do not know.
///
/// They are kept, and are part of everything that describes the scope: additions, ``fullState()``,
/// ``canonicalJSON``. So an old version of an app can edit the content of a newer one without damaging it.
extension Scope {
  /// Returns the properties of a model that its class does not know, by their names on the wire, in the order of
  /// the names, with the values as they arrived. A value is replaced when a peer changes it.
  ///
  /// ```swift
  /// if scope.unknownProperties(of: shape)["rotation"] != nil { showHint("Made by a newer version") }
  /// ```
  package func unknownProperties(of model: ModelObject) -> JSONObject {
    model.record?.unknownProperties ?? JSONObject()
  }

  /// Returns the unknown class name of a model for which an object of its property's class stands in; nil for every
  /// other model.
  package func unknownClassName(of model: ModelObject) -> String? {
    model.record?.unknown?.className
  }

  /// The models that have no object, because only unknown properties, or other such models, refer to them: as
  /// additions with all their values, in the order of their UUIDs.
  ///
  /// They may be of known classes as well. A model becomes an object when a known property comes to refer to it.
  /// Cost: O(unknown values).
  package var unknownModels: [SyncFragment] {
    guard let unknown else { return [] }
    return unknown.additions(of: unknown.live())
  }

  /// True if models without an object are kept, whether or not something refers to them.
  package var hasUnknownModels: Bool { unknown?.fragments.isEmpty == false }

  /// The number of models without an object that are kept, whether or not something refers to them. Cost: O(1).
  package var unknownModelCount: Int { unknown?.fragments.count ?? 0 }

  /// Returns the UUIDs of ``unknownModels``. Cost: O(unknown values), once until one of them may count no longer.
  package func unknownModelUUIDs() -> Set<UUID> { unknown?.live() ?? [] }

  /// Returns the models without an object that a value refers to, directly or through others.
  package func unknownModels(referredToBy value: JSONValue) -> [SyncFragment] {
    unknown?.additions(reachableFrom: [["": value]]) ?? []
  }

  /// Returns a model without an object, whether or not something refers to it.
  package func unknownModel(_ uuid: UUID) -> SyncFragment? { unknown?.fragments[uuid] }

  /// Returns the value of an unknown property, or of any property of a model without an object.
  package func unknownValue(_ key: PropertyKey) -> JSONValue? {
    guard unknown != nil else { return nil }
    if let model = model(key.uuid) { return model.unknownValue(key.name) }
    return unknownModel(key.uuid)?.properties[key.name]
  }

  /// Returns the schema by which the scope reads a fragment: for an unknown class, that of the objects that stand
  /// in.
  package func schema(of fragment: SyncFragment) -> ModelSchema? {
    guard let unknown else { return schema(named: fragment.className) }
    return tree.record(of: fragment.uuid)?.schema ?? schema(named: fragment.className)
      ?? unknown.standIns[fragment.className]
  }
}
