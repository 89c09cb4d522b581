import Foundation

/// The changes that a scope has collected since its last change set, as a value: a scope that refuses the change set of a
/// call of `modify` puts the interval before it back.
struct Interval {
  /// New models, in the order in which they entered. Those that have left since are no longer new.
  var entered: ContiguousArray<ModelRecord> = []
  /// Models with changed properties, in the order in which they were first changed.
  var changed: ContiguousArray<ModelRecord> = []
  /// Models that are gone here, and that other replicas have until the next change set.
  var departed = DepartedModels()
  /// New models that only local properties hold: other replicas learn of them when a synced property does.
  var unshared: ContiguousArray<ModelRecord> = []
  /// Models that have lost a parent, so that possibly only local properties hold them now.
  var loosened: ContiguousArray<ModelRecord> = []
  /// True if fragments of other replicas were applied.
  var othersWrote = false
  /// The properties that change sets leave out for now.
  var throttle = SyncThrottle()

  /// True if there is something that may become a change set.
  var hasChanges: Bool { !entered.isEmpty || !changed.isEmpty || !departed.models.isEmpty }

  /// True if nothing was collected.
  var isEmpty: Bool {
    entered.isEmpty && changed.isEmpty && departed.isEmpty && unshared.isEmpty && loosened.isEmpty
  }
}

/// Models that are gone here, and that other replicas have until the next change set: as objects or, where these can no
/// longer be read, as their last shared states.
struct DepartedModels {
  /// The models that have left, kept alive, since fragments of other replicas may still name them. Those that have not
  /// returned are ``Scope/hasLeft(_:)``.
  private(set) var models: ContiguousArray<ModelObject> = []
  /// The last of these by UUID, for the first `indexed` models.
  private var byUUID: [UUID: ModelObject] = [:]
  private var indexed = 0
  /// The last shared states of models that have gone into another scope, that only local properties hold, or that
  /// another replica has put where nothing here shows them. They follow the changes of other replicas.
  var states: [UUID: SyncFragment] = [:]

  var isEmpty: Bool { models.isEmpty && states.isEmpty }

  /// Keeps a model, unless it is kept already.
  mutating func keep(_ model: ModelObject) {
    guard let record = model.record, !record.isKeptAsLeft else { return }
    record.isKeptAsLeft = true
    models.append(model)
  }

  /// Returns the kept model with this UUID. It may have returned.
  mutating func model(_ uuid: UUID) -> ModelObject? {
    for model in models[indexed...] { byUUID[model.uuid] = model }
    indexed = models.count
    return byUUID[uuid]
  }

  /// Lets go of the models, and returns them to be released when nothing else is running.
  mutating func takeModels() -> ContiguousArray<ModelObject> {
    for model in models { model.record?.isKeptAsLeft = false }
    defer { (models, byUUID, indexed) = ([], [:], 0) }
    return models
  }
}
