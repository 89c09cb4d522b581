import Foundation

/// The models that are not part of the visible tree while change sets are pending: they have left it, or arrived
/// with a value that a pending assignment hides. They are kept so that the same objects return when a change set is
/// rejected or the confirmed value becomes visible again.
///
/// Changes that the app makes to a model shortly before it leaves, or afterwards, are in no change set. So the
/// shared values are kept beside the model, in case remote changes bring it back.
struct Graveyard {
  private struct Entry {
    let model: ModelObject
    var values: JSONObject
  }

  private var entries: [UUID: Entry] = [:]
  /// The number of models below which none is dropped.
  private let limit: Int
  private var pruneAt: Int
  /// The values that other replicas have of models that the app has put back, until a change set adds these models.
  var putBack: [UUID: JSONObject] = [:]
  /// The models that remote changes have brought back, with their confirmed values, until they get these values.
  var revived: [UUID: JSONObject] = [:]

  init(limit: Int) { (self.limit, pruneAt) = (limit, limit) }

  var count: Int { entries.count }

  func find(_ uuid: UUID) -> ModelObject? { entries[uuid]?.model }

  /// Returns the model as an addition, including the changes of pending change sets.
  func fragment(_ uuid: UUID) -> SyncFragment? {
    entries[uuid].map { entry in
      SyncFragment(
        .add, uuid: uuid, className: entry.model.wireClassName, properties: entry.values)
    }
  }

  /// Returns the values that other replicas have of a model that has left.
  func values(of uuid: UUID) -> JSONObject? { entries[uuid]?.values }

  /// Keeps a model that has left, with the values that other replicas have of it: those after the last change set,
  /// unless others are given.
  mutating func insert(_ model: ModelObject, values: JSONObject? = nil) {
    let record = model.ensureRecord()
    entries[record.uuid] = Entry(model: model, values: values ?? record.confirmedProperties())
  }

  /// Replaces values of a model that has left.
  mutating func update(_ uuid: UUID, _ values: JSONObject) {
    guard let schema = entries[uuid]?.model.schema.data else { return }
    entries[uuid]!.values.assign(values, of: schema)
  }

  /// Applies a fragment to the values of a model that has left.
  mutating func update(_ fragment: SyncFragment) {
    update(fragment.uuid, fragment.properties)
    guard let schema = entries[fragment.uuid]?.model.schema else { return }
    if fragment.kind == .add, schema.data.hasDictionaries {
      // An addition has all entries that the model has.
      entries[fragment.uuid]!.values.removeAll { key, _ in
        fragment.properties[key] == nil && schema[wireName: key]?.entryKey != nil
      }
    }
    for entry in fragment.operations {
      let old = entries[fragment.uuid]!.values[entry.key]
      entries[fragment.uuid]!.values[entry.key] = PropertyOperation.apply(
        entry.operations, to: old, within: schema.counterRange(of: entry.key))
    }
  }

  /// Removes a model that returns, and returns its shared values.
  mutating func remove(_ uuid: UUID) -> JSONObject? {
    entries.removeValue(forKey: uuid)?.values
  }

  /// Replaces the root's UUID.
  mutating func rename(_ renaming: RootRenaming) {
    entries = entries.mapValues { entry in
      Entry(model: entry.model, values: renaming(entry.values, of: entry.model.schema))
    }
  }

  /// Drops all models that have left.
  mutating func removeAll() {
    if !entries.isEmpty { entries = [:] }
    pruneAt = limit
  }

  /// Calls `body` with the models that have left, and with every UUID in their values.
  func forEachName(_ body: (UUID) -> Void) {
    for (uuid, entry) in entries {
      body(uuid)
      for values in [entry.values, entry.model.record?.unknownProperties ?? [:]] {
        for (_, value) in values { value.forEachUUID(body) }
      }
    }
    for values in [putBack.values, revived.values].joined() {
      for (_, value) in values { value.forEachUUID(body) }
    }
  }

  /// Drops models that nothing refers to any more, once there are many: keeps the models that `references` names,
  /// and what they hold, here or at other replicas.
  ///
  /// A model that other replicas still hold has to stay: they may move it to where it stays, and need not add it for that.
  /// So does one that a pending change set changes: if it is added again, its addition does not name the entries that the
  /// change set has put into it.
  mutating func prune(references: () -> Set<UUID>) {
    guard entries.count > pruneAt else { return }
    var kept: [UUID: Entry] = [:]
    var open = Array(references())
    for values in [putBack.values, revived.values].joined() {
      for (_, value) in values { value.forEachUUID { open.append($0) } }
    }
    while let uuid = open.popLast() {
      guard let entry = entries[uuid], kept.updateValue(entry, forKey: uuid) == nil else {
        continue
      }
      entry.model.ensureRecord().forEachChild { child, _ in open.append(child.uuid) }
      // No change set has what the app took out of the model shortly before the model left.
      fragment(uuid)?.forEachModel(as: entry.model.schema.data) { open.append($0) }
    }
    entries = kept
    pruneAt = max(limit, kept.count * 2)
  }
}
