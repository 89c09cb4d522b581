import Foundation

/// The moves among changes that this replica takes back or makes again.
///
/// By then other replicas may have removed or moved the same models. As on the server, a move never deletes: it is
/// lost, and the model stays where it is, if the root would not lead to the model afterwards, for instance because the
/// receiving model is gone. Of two moves of one model the first counts: a move is lost, too, if the model is no longer
/// where it would be taken from.
extension Scope {
  /// Returns the models that the changes both take out of a collection and put into a property.
  func movedModels(in changes: [SyncFragment]) -> Set<UUID> {
    var removed: Set<UUID> = []
    for fragment in changes {
      for entry in fragment.operations {
        for case .remove(let uuid) in entry.operations { removed.insert(uuid) }
      }
    }
    if removed.isEmpty { return [] }
    var moved: Set<UUID> = []
    for fragment in changes {
      forEachModel(namedBy: fragment) { if removed.contains($0) { moved.insert($0) } }
    }
    return moved
  }

  /// Returns those of the models in `moved` whose moves would be lost if this replica made these changes. Cost: O(n) in
  /// the changes and in the models above the moved ones.
  func lostMoves(of moved: Set<UUID>, in changes: [SyncFragment]) -> Set<UUID> {
    if moved.isEmpty { return [] }
    var moves: [UUID: MoveReach.Move] = [:]
    for fragment in changes {
      for entry in fragment.operations {
        let property = PropertyKey(uuid: fragment.uuid, name: entry.key)
        for operation in entry.operations {
          switch operation {
          case .remove(let uuid): moves[uuid, default: .init()].sources.insert(property)
          case .insert(let uuid, _): moves[uuid, default: .init()].targets.insert(property)
          case .move, .add: break
          }
        }
      }
    }
    var reach = MoveReach(of: moves, root: root?.uuid) { [self] in model($0)?.holders ?? [] }
    for fragment in changes {
      let schema = schema(of: fragment)?.data
      for (key, value) in fragment.properties where schema?[wireName: key]?.kind != .plain {
        var models: [UUID] = []
        value.forEachUUID { models.append($0) }
        reach.assign(models, to: PropertyKey(uuid: fragment.uuid, name: key))
      }
    }
    var lost = moved.filter { uuid in
      guard let holders = model(uuid)?.holders, !holders.isEmpty, let move = moves[uuid],
        !move.targets.isEmpty
      else { return false }
      return !holders.contains { move.sources.contains($0) || move.targets.contains($0) }
    }
    reach.findLost(among: moved, &lost)
    return lost
  }

  /// Applies changes as local ones, like ``perform(_:alsoKnown:)``, without the lost moves among them, which are
  /// reported.
  ///
  /// - Parameter whole: the changes, with those that were left out of them before: a model that one of these would put
  ///   somewhere is moved, too.
  func perform(
    _ changes: [SyncFragment], of whole: [SyncFragment],
    alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> ApplyReport {
    let lost = lostMoves(of: movedModels(in: whole), in: changes)
    if lost.isEmpty { return perform(changes, alsoKnown: alsoKnown) }
    var left = changes
    var errors: [(fragment: Int, error: ScopeError)] = []
    for (position, fragment) in changes.enumerated() {
      for entry in fragment.operations {
        left[position].operations[entry.key] = entry.operations.filter { !$0.moves(among: lost) }
        let property = PropertyKey(uuid: fragment.uuid, name: entry.key)
        for case .remove(let uuid) in entry.operations where lost.contains(uuid) {
          errors.append((position, reason(ofLostMove: uuid, from: property, fragment.className)))
        }
      }
    }
    var report = perform(left, alsoKnown: alsoKnown)
    report.errors = errors + report.errors
    return report
  }

  private func reason(
    ofLostMove uuid: UUID, from property: PropertyKey, _ className: String
  ) -> ScopeError {
    if let model = model(uuid), model.holders.contains(property) {
      return .noParent(className: model.wireClassName, model: uuid)
    }
    return .unknownReference(
      className: className, model: property.uuid, property: property.name, missing: uuid.wireText)
  }
}

extension PropertyOperation {
  /// Returns true if the operation takes one of these models out of a collection or puts it into one.
  func moves(among models: Set<UUID>) -> Bool {
    switch self {
    case .remove(let uuid), .insert(let uuid, _): models.contains(uuid)
    case .move, .add: false
    }
  }
}
