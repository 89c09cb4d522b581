import Foundation

/// Models that are not part of the visible tree while change sets are pending: they have left it, or
/// came with a value that a pending assignment hides. Kept so that they return as the same objects
/// when a set is rejected or the confirmed value shows again.
struct Graveyard {
  private var models: [UUID: ModelObject] = [:]
  private var pruneAt = 1024

  func find(_ uuid: UUID) -> ModelObject? { models[uuid] }

  mutating func insert(_ model: ModelObject, uuid: UUID) { models[uuid] = model }

  mutating func remove(_ uuid: UUID) { models[uuid] = nil }

  mutating func removeAll() {
    if !models.isEmpty { models = [:] }
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
    pruneAt = max(1024, kept.count * 2)
  }
}
