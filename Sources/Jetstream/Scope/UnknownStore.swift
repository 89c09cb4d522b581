import Foundation

/// The part of a scope's content that its classes cannot hold: models of unknown classes, and models
/// that only unknown properties refer to. Made when the first unknown thing comes.
///
/// What is kept counts as content for as long as something refers to it: the unknown properties of a
/// model in the tree, or something kept that counts itself. Whether a text is a reference cannot be
/// known, so every UUID in a kept value is taken for one.
final class UnknownStore {
  /// The kept models as additions with all their values. None of them is in the tree.
  var fragments: [UUID: SyncFragment] = [:]
  /// The models in the tree with unknown properties.
  private var carriers: [ObjectIdentifier: ModelRecord] = [:]
  /// What stands in for unknown classes.
  var standIns: [String: ModelSchema] = [:]
  private var pruneAt = 1024

  func carry(_ record: ModelRecord) { carriers[ObjectIdentifier(record)] = record }

  func drop(_ record: ModelRecord) { carriers[ObjectIdentifier(record)] = nil }

  /// Keeps what the others know of a model, without the object.
  func keep(_ record: ModelRecord) {
    fragments[record.uuid] = SyncFragment(
      .add, uuid: record.uuid, className: record.wireClassName,
      properties: record.confirmedProperties())
  }

  /// The kept models that count. Cost: O(unknown values).
  func live() -> Set<UUID> {
    if fragments.isEmpty { return [] }
    return reachable(from: carriers.values.map { $0.unknown?.properties ?? JSONObject() })
  }

  /// The kept models that `values` refer to, and those that these refer to, and so on.
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

  /// The same as fragments, in the order of their UUIDs.
  func additions(reachableFrom values: [JSONObject]) -> [SyncFragment] {
    if fragments.isEmpty || values.isEmpty { return [] }
    return additions(of: reachable(from: values))
  }

  func additions(of uuids: Set<UUID>) -> [SyncFragment] {
    uuids.compactMap { fragments[$0] }.sorted { $0.uuid < $1.uuid }
  }

  /// Takes in what a fragment says of a kept model; an addition says everything.
  ///
  /// - Parameter schema: that of the model; nil if its class is not known.
  func update(by fragment: SyncFragment, as schema: ModelSchema?, resetsMissing: Bool) {
    guard let kept = fragments[fragment.uuid] else { return }
    fragments[fragment.uuid] = kept.updated(
      by: fragment, as: schema, resetsMissing: resetsMissing)
  }

  /// Forgets, now and then, what does not count any more. Until then it can be referred to again.
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
    // What is away would have been kept when it left.
    for (uuid, known) in remembered where self.record(of: uuid) == nil {
      made.fragments[uuid] = known
    }
    for model in left {
      if let record = model.record, hasLeft(record), self.record(of: record.uuid) == nil {
        made.keep(record)
      }
    }
    return made
  }

  /// A model comes that has unknown properties, or that is kept, or neither.
  func unknownEnters(_ record: ModelRecord) {
    if let unknown {
      let kept = unknown.fragments.removeValue(forKey: record.uuid)
      // The app puts it back itself: what it does not know is as the others say.
      if !isWritingRemotely || record.isNew, let known = kept ?? knownModel(record.uuid) {
        for (key, value) in known.properties where record.schema[wireName: key] == nil {
          record.keepUnknown(key, value)
        }
      }
    }
    if record.unknown != nil { ensureUnknown().carry(record) }
  }

  /// A model goes that something unknown may still refer to.
  func unknownLeaves(_ record: ModelRecord, from store: UnknownStore) {
    store.drop(record)
    if !record.isNew { store.keep(record) }
  }
}
