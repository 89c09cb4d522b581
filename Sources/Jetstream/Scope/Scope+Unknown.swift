import Foundation

/// What newer peers have put into a scope and its classes do not know.
///
/// It is kept and goes out again with everything that describes the scope: additions, ``fullState()``,
/// ``canonicalJSON``. So an old version of an app can edit what a newer one has made without harming
/// it.
extension Scope {
  /// The properties of a model that its class does not know, by their names on the wire and as they
  /// came, in the order of the names. A value is replaced when a peer changes it.
  ///
  /// ```swift
  /// if scope.unknownProperties(of: shape)["rotation"] != nil { showHint("Made by a newer version") }
  /// ```
  package func unknownProperties(of model: ModelObject) -> JSONObject {
    model.record?.unknownProperties ?? JSONObject()
  }

  /// The name of the unknown class of a model that came as one, and for which an object of the
  /// property's class stands in; nil for every other model.
  package func unknownClassName(of model: ModelObject) -> String? {
    model.record?.unknown?.className
  }

  /// The models that no object stands for, since only unknown properties refer to them, or other such
  /// models: as additions with all their values, in the order of their UUIDs.
  ///
  /// They may be of known classes as well. When a known property comes to refer to one, it becomes an
  /// object. Cost: O(unknown values).
  package var unknownModels: [SyncFragment] {
    guard let unknown else { return [] }
    return unknown.additions(of: unknown.live())
  }

  /// Whether there are models that no object stands for.
  package var hasUnknownModels: Bool { unknown?.fragments.isEmpty == false }

  /// The UUIDs of ``unknownModels``.
  package func unknownModelUUIDs() -> Set<UUID> { unknown?.live() ?? [] }

  /// The models that no object stands for and that a value refers to, directly or through others.
  package func unknownModels(referredToBy value: JSONValue) -> [SyncFragment] {
    unknown?.additions(reachableFrom: [["": value]]) ?? []
  }

  /// A model that no object stands for, although perhaps nothing refers to it any more.
  package func unknownModel(_ uuid: UUID) -> SyncFragment? { unknown?.fragments[uuid] }

  /// The value that is kept of an unknown property, or of any property of an unknown model.
  package func unknownValue(_ key: PropertyKey) -> JSONValue? {
    guard unknown != nil else { return nil }
    if let model = model(key.uuid) { return model.unknownValue(key.name) }
    return unknownModel(key.uuid)?.properties[key.name]
  }

  /// The schema by which the scope reads a fragment: for an unknown class that of what stands in.
  package func schema(of fragment: SyncFragment) -> ModelSchema? {
    guard let unknown else { return schema(named: fragment.className) }
    return record(of: fragment.uuid)?.schema ?? schema(named: fragment.className)
      ?? unknown.standIns[fragment.className]
  }
}
