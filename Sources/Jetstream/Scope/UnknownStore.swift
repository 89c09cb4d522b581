import Foundation

/// The part of a scope's content that its classes cannot hold: models of unknown classes, and models that only
/// unknown properties refer to. Made when the first unknown property or class arrives.
///
/// A kept model counts as content while something refers to it: an unknown property of a model in the tree, or
/// another kept model that counts. Jetstream cannot know whether a text is a reference, so it takes every UUID in a
/// kept value for one.
final class UnknownStore {
  /// The kept models as additions with all their values. None of them is in the tree.
  var fragments: [UUID: SyncFragment] = [:] { didSet { found = nil } }
  /// The models in the tree with unknown properties.
  private var carriers: [ObjectIdentifier: ModelRecord] = [:]
  /// The schemas of the objects that stand in for models of unknown classes, by the name of the unknown class.
  var standIns: [String: ModelSchema] = [:]
  private var pruneAt = 1024
  /// The kept models that count; nil if they were not looked for since these, or what refers to them, have changed.
  private var found: Set<UUID>?
  /// The number of models whose unknown values were read to find the kept models that count, for tests.
  private(set) var readCount = 0

  /// Notes that unknown values of a model in the tree have changed, or that it has come in with some.
  ///
  /// - Parameter values: the values before and after; nil for all that the model has.
  func carry(_ record: ModelRecord, changing values: [JSONValue]? = nil) {
    carriers[ObjectIdentifier(record)] = record
    guard let values else {
      found = nil
      return
    }
    // A value that names no kept model changes nothing: adding it to them later does.
    for value in values {
      value.forEachUUID { if fragments[$0] != nil { found = nil } }
    }
  }

  /// Notes that a model leaves the tree.
  func drop(_ record: ModelRecord) {
    if carriers.removeValue(forKey: ObjectIdentifier(record)) != nil { found = nil }
  }

  /// Takes out a kept model that becomes an object; returns nil if there is none.
  func take(_ uuid: UUID) -> SyncFragment? {
    guard let kept = fragments[uuid] else { return nil }
    fragments[uuid] = nil
    return kept
  }

  /// Keeps the last shared state of a model, without the object.
  func keep(_ record: ModelRecord) {
    fragments[record.uuid] = SyncFragment(
      .add, uuid: record.uuid, className: record.wireClassName,
      properties: record.confirmedProperties())
  }

  /// Returns the UUIDs of the kept models that count. Cost: O(unknown values), once until a change of them.
  func live() -> Set<UUID> {
    if fragments.isEmpty { return [] }
    if let found { return found }
    let live = reachable(from: carriers.values.map { $0.unknown?.properties ?? JSONObject() })
    readCount += carriers.count + live.count
    found = live
    return live
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
      let kept = unknown.take(record.uuid)
      // The app attaches the model: its unknown properties have their last shared values.
      if !isWritingRemotely || record.isNew, let known = kept ?? knownModel(record.uuid) {
        var values = known.properties
        values.removeAll { key, _ in record.schema[wireName: key] != nil }
        record.keepUnknown(values)
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
