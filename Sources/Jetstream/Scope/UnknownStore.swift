import Foundation

/// The part of a scope's content that its classes cannot hold: models of unknown classes, and models that only
/// unknown properties refer to. Made when the first unknown property or class arrives.
///
/// A kept model counts as content while something refers to it: an unknown property of a model in the tree, or
/// another kept model that counts. Jetstream cannot know whether a text is a reference, so it takes every UUID in a
/// kept value for one.
final class UnknownStore {
  /// The kept models as additions with all their values. None of them is in the tree.
  private(set) var fragments: [UUID: SyncFragment] = [:]
  /// The models in the tree with unknown properties.
  private var carriers: [ObjectIdentifier: ModelRecord] = [:]
  /// The schemas of the objects that stand in for models of unknown classes, by the name of the unknown class.
  var standIns: [String: ModelSchema] = [:]
  private var pruneAt = 1024
  /// The kept models that count; nil if they are to be looked for. What is kept, and what refers to it, changes all
  /// the time: the set is updated in place where that needs no other model.
  private var found: Set<UUID>?
  /// The UUIDs in the values of all carriers, and of the kept models that count, with some that are in none any more.
  /// A model that is kept from now on does not count unless its UUID is one of these. Of no use without ``found``.
  private var named: Set<UUID> = []
  /// The number of ``named`` above which the models are looked for again.
  private var mostNamed = 1024
  /// The number of models whose unknown values were read to find the kept models that count, for tests.
  private(set) var readCount = 0

  /// Notes that unknown values of a model in the tree have changed, or that it has come in with some.
  ///
  /// - Parameters:
  ///   - old: the values that it has no longer.
  ///   - new: the values that it has now, at least those that it did not have before.
  func carry(_ record: ModelRecord, from old: [JSONValue], to new: [JSONValue]) {
    carriers[ObjectIdentifier(record)] = record
    noteChange(from: old, to: new)
  }

  /// Notes that a model leaves the tree.
  func drop(_ record: ModelRecord) {
    guard carriers.removeValue(forKey: ObjectIdentifier(record)) != nil else { return }
    noteChange(from: record.unknown?.values ?? [], to: [])
  }

  /// Takes out a kept model that becomes an object; returns nil if there is none.
  @discardableResult
  func take(_ uuid: UUID) -> SyncFragment? {
    guard let kept = fragments.removeValue(forKey: uuid) else { return nil }
    if found?.remove(uuid) != nil { noteChange(from: kept.values, to: []) }
    return kept
  }

  /// Keeps the last shared state of a model, without the object.
  func keep(_ record: ModelRecord) {
    keep(
      SyncFragment(
        .add, uuid: record.uuid, className: record.wireClassName,
        properties: record.confirmedProperties()))
  }

  /// Keeps a model as an addition with all its values.
  func keep(_ model: SyncFragment) {
    let old = fragments.updateValue(model, forKey: model.uuid)
    if let old, found?.contains(model.uuid) == true {
      noteChange(from: old.values, to: model.values)
    } else if named.contains(model.uuid) {
      found = nil
    }
  }

  /// Drops all that is kept.
  func removeAll() { (fragments, found) = ([:], nil) }

  /// Notes that values of a model in the tree, or of a kept model that counts, have changed. Cost: O(values), and
  /// O(kept models that count from now on).
  private func noteChange(from old: [JSONValue], to new: [JSONValue]) {
    if found == nil { return }
    var come: Set<UUID> = []
    for value in new { value.forEachUUID { come.insert($0) } }
    var mayLose = false
    for value in old {
      value.forEachUUID { if !come.contains($0), found!.contains($0) { mayLose = true } }
    }
    // Others may refer to what is lost as well. The names that are in no value any more are dropped now and then.
    if mayLose || named.count > mostNamed {
      found = nil
    } else {
      follow(Array(come))
    }
  }

  /// Counts the kept models among `uuids`, and those that they refer to.
  private func follow(_ uuids: [UUID]) {
    var open = uuids
    while let uuid = open.popLast() {
      named.insert(uuid)
      guard let kept = fragments[uuid], found!.insert(uuid).inserted else { continue }
      for value in kept.values { value.forEachUUID { open.append($0) } }
    }
  }

  /// Returns the UUIDs of the kept models that count. Cost: O(unknown values), once until a value no longer refers to
  /// one of them, or one comes in to which a value may refer already.
  func live() -> Set<UUID> {
    if fragments.isEmpty { return [] }
    if let found { return found }
    (found, named) = ([], [])
    for record in carriers.values {
      for value in record.unknown?.values ?? [] {
        value.forEachUUID { if !named.contains($0) { follow([$0]) } }
      }
    }
    mostNamed = max(1024, named.count * 2)
    readCount += carriers.count + found!.count
    return found!
  }

  /// Returns the kept models that `values` refer to, directly or through other kept models.
  func reachable(from values: [JSONObject]) -> Set<UUID> {
    var names: Set<UUID> = []
    for object in values { for (_, value) in object { value.forEachUUID { names.insert($0) } } }
    return reachable(from: names)
  }

  /// Returns the kept models among `names`, and those that they refer to.
  private func reachable(from names: Set<UUID>) -> Set<UUID> {
    var result: Set<UUID> = []
    var open = Array(names)
    while let uuid = open.popLast() {
      guard let kept = fragments[uuid], result.insert(uuid).inserted else { continue }
      for value in kept.values { value.forEachUUID { open.append($0) } }
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
    keep(kept.updated(by: fragment, as: schema, resetsMissing: resetsMissing))
  }

  /// True once the number of kept models has doubled.
  var isPruneDue: Bool { fragments.count > pruneAt }

  /// Drops the kept models that no longer count, but for those among `returning` and what these refer to. Until then,
  /// new references can revive them.
  func prune(keeping returning: Set<UUID>) {
    let stay = live().union(reachable(from: returning))
    fragments = fragments.filter { stay.contains($0.key) }
    pruneAt = max(1024, fragments.count * 2)
  }
}

extension Scope {
  /// Drops the kept models that nothing refers to and that do not come back, once there are many.
  ///
  /// A model that has left comes back as an object, and its unknown properties then refer to kept models again: when a
  /// pending change set is rejected, when a change set is undone, when a call of `modify` is rolled back, and when other
  /// replicas, which do not know yet that it has left, put it elsewhere. Until the change set that removes it has been
  /// sealed, the interval has it; then the observers of the scope do, which hear of the change set once it is delivered.
  ///
  /// - Parameter orphans: models that have just arrived and are hidden, of which no observer knows yet.
  func pruneUnknownIfDue(besides orphans: [ModelObject] = []) {
    guard let unknown, unknown.isPruneDue, modification == nil, sealed.isEmpty, !isDelivering
    else { return }
    var returning: Set<UUID> = []
    for model in interval.departed.models { model.forEachName { returning.insert($0) } }
    for state in interval.departed.states.values {
      returning.insert(state.uuid)
      for value in state.values { value.forEachUUID { returning.insert($0) } }
    }
    for model in orphans { model.forEachName { returning.insert($0) } }
    tree.observers.forEach { $0.forEachReturning { returning.insert($0) } }
    unknown.prune(keeping: returning)
  }

  func ensureUnknown() -> UnknownStore {
    if let unknown { return unknown }
    let made = UnknownStore()
    unknown = made
    // The models that have left would have been kept if the store had existed then.
    for (uuid, known) in interval.departed.states where self.tree.record(of: uuid) == nil {
      made.keep(known)
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
    if let values = record.unknown?.values { ensureUnknown().carry(record, from: [], to: values) }
  }

  /// Called when a model leaves the scope. Keeps its last shared state, since an unknown property may still refer
  /// to it.
  func unknownLeaves(_ record: ModelRecord, from store: UnknownStore) {
    store.drop(record)
    if !record.isNew { store.keep(record) }
  }
}

extension SyncFragment {
  fileprivate var values: [JSONValue] { properties.map(\.value) }
}

extension UnknownValues {
  /// The values of the unknown properties, in any order.
  var values: [JSONValue] { properties.map(\.value) }
}
