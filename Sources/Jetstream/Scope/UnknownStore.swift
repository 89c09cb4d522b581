import Foundation

/// The part of a scope's content that its classes cannot hold: models of unknown classes, and models that only
/// unknown properties refer to. Made when the first unknown property or class arrives.
///
/// A kept model counts as content while something refers to it: an unknown property of a model in the tree, or
/// another kept model that counts. Jetstream cannot know whether a text is a reference, so it takes every UUID in a
/// kept value for one.
final class UnknownStore {
  /// The kept models as additions with all their values. None of them is in the tree.
  var fragments: [UUID: SyncFragment] = [:]
  /// The models in the tree with unknown properties.
  private var carriers: [ObjectIdentifier: ModelRecord] = [:]
  /// The schemas of the objects that stand in for models of unknown classes, by the name of the unknown class.
  var standIns: [String: ModelSchema] = [:]
  private var pruneAt = 1024

  func carry(_ record: ModelRecord) { carriers[ObjectIdentifier(record)] = record }

  func drop(_ record: ModelRecord) { carriers[ObjectIdentifier(record)] = nil }

  /// Keeps the last shared state of a model, without the object.
  func keep(_ record: ModelRecord) {
    fragments[record.uuid] = SyncFragment(
      .add, uuid: record.uuid, className: record.wireClassName,
      properties: record.confirmedProperties())
  }

  /// Returns the UUIDs of the kept models that count. Cost: O(unknown values).
  func live() -> Set<UUID> {
    if fragments.isEmpty { return [] }
    return reachable(from: carriers.values.map { $0.unknown?.properties ?? JSONObject() })
  }

  /// Returns the kept models that `values` refer to, directly or through other kept models.
  func reachable(from values: [JSONObject]) -> Set<UUID> {
    var result: Set<UUID> = []
    var open = values
    while let next = open.popLast() {
      for (_, value) in next {
        value.forEachUUID { uuid in
          guard let fragment = fragments[uuid], result.insert(uuid).inserted else { return }
          open.append(fragment.properties)
        }
      }
    }
    return result
  }

  /// Returns the models of ``reachable(from:)`` as additions, in the order of their UUIDs.
  func additions(reachableFrom values: [JSONObject]) -> [SyncFragment] {
    if fragments.isEmpty || values.isEmpty { return [] }
    return additions(of: reachable(from: values))
  }

  func additions(of uuids: Set<UUID>) -> [SyncFragment] {
    uuids.compactMap { fragments[$0] }.sorted { $0.uuid < $1.uuid }
  }

  /// Applies a fragment to a kept model. An addition replaces all its values.
  ///
  /// - Parameter schema: the schema of the model; nil if its class is not known.
  func update(by fragment: SyncFragment, as schema: ModelSchema?, resetsMissing: Bool) {
    guard let kept = fragments[fragment.uuid] else { return }
    fragments[fragment.uuid] = kept.updated(
      by: fragment, as: schema, resetsMissing: resetsMissing)
  }

  /// Drops the kept models that no longer count, once their number has doubled. Until then, new references can
  /// revive them.
  func pruneIfDue() {
    guard fragments.count > pruneAt else { return }
    let live = live()
    fragments = fragments.filter { live.contains($0.key) }
    pruneAt = max(1024, fragments.count * 2)
  }
}

extension Scope {
  func ensureUnknown() -> UnknownStore {
    if let unknown { return unknown }
    let made = UnknownStore()
    unknown = made
    // The models that have left would have been kept if the store had existed then.
    for (uuid, known) in interval.departed.states where self.tree.record(of: uuid) == nil {
      made.fragments[uuid] = known
    }
    for model in interval.departed.models {
      if let record = model.record, hasLeft(record), self.tree.record(of: record.uuid) == nil {
        made.keep(record)
      }
    }
    return made
  }

  /// Called when a model enters the scope. Takes over the unknown properties that the store keeps for it.
  func unknownEnters(_ record: ModelRecord) {
    if let unknown {
      let kept = unknown.fragments.removeValue(forKey: record.uuid)
      // The app attaches the model: its unknown properties have their last shared values.
      if !isWritingRemotely || record.isNew, let known = kept ?? knownModel(record.uuid) {
        for (key, value) in known.properties where record.schema[wireName: key] == nil {
          record.keepUnknown(key, value)
        }
      }
    }
    if record.unknown != nil { ensureUnknown().carry(record) }
  }

  /// Called when a model leaves the scope. Keeps its last shared state, since an unknown property may still refer
  /// to it.
  func unknownLeaves(_ record: ModelRecord, from store: UnknownStore) {
    store.drop(record)
    if !record.isNew { store.keep(record) }
  }
}
