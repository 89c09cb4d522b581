import Foundation

/// Models that are not part of the visible tree while change sets are pending: they have left it, or
/// came with a value that a pending assignment hides. Kept so that they return as the same objects
/// when a set is rejected or the confirmed value shows again.
struct Graveyard {
  private var models: [UUID: ModelObject] = [:]
  /// Values that the models had before changes that nobody was told of.
  private var lost: [UUID: JSONObject] = [:]
  private var pruneAt = 1024

  func find(_ uuid: UUID) -> ModelObject? { models[uuid] }

  mutating func insert(_ model: ModelObject, uuid: UUID) { models[uuid] = model }

  /// Lets go of a model that returns; gives what it has to show instead of changes that were lost.
  @discardableResult
  mutating func remove(_ uuid: UUID) -> JSONObject? {
    models[uuid] = nil
    return lost.isEmpty ? nil : lost.removeValue(forKey: uuid)
  }

  /// The model has left with changes that are in no change set.
  mutating func changesLost(of uuid: UUID, before: JSONObject) { lost[uuid] = before }

  /// The fragment's values are about to be written, over what was lost too.
  mutating func write(_ fragment: SyncFragment) {
    guard !lost.isEmpty, lost[fragment.uuid] != nil else { return }
    for (key, _) in fragment.properties { lost[fragment.uuid]![key] = nil }
  }

  mutating func removeAll() {
    if !models.isEmpty { models = [:] }
    if !lost.isEmpty { lost = [:] }
    pruneAt = 1024
  }

  /// Forgets, now and then, what nothing refers to any more: keeps the models that `references`
  /// names, and what they hold.
  mutating func prune(references: () -> Set<UUID>) {
    guard models.count > pruneAt else { return }
    var kept: [UUID: ModelObject] = [:]
    var open = references().compactMap { models[$0] }
    while let model = open.popLast() {
      guard models[model.uuid] != nil, kept.updateValue(model, forKey: model.uuid) == nil else {
        continue
      }
      model.ensureRecord().forEachChild { child, _ in open.append(child) }
    }
    models = kept
    lost = lost.filter { kept[$0.key] != nil }
    pruneAt = max(1024, kept.count * 2)
  }
}
