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
  ///
  /// - Parameter past: the changes that these take back: a model is also taken from where its values have put it.
  func lostMoves(
    of moved: Set<UUID>, in changes: [SyncFragment], takingBack past: [SyncFragment] = []
  ) -> Set<UUID> {
    if moved.isEmpty { return [] }
    var moves = MoveReach.moves(in: changes)
    for fragment in changes where fragment.kind == .add {
      forEachValue(in: fragment) { property, models, isKnown in
        for uuid in models where isKnown && moved.contains(uuid) {
          moves[uuid, default: .init()].targets.insert(property)
        }
      }
    }
    for fragment in past {
      forEachValue(in: fragment) { property, models, _ in
        for uuid in models where moved.contains(uuid) {
          moves[uuid, default: .init()].sources.insert(property)
        }
      }
    }
    var reach = MoveReach(of: moves, root: root?.uuid) { [self] in model($0)?.holders ?? [] }
    for fragment in changes {
      forEachValue(in: fragment) { property, models, _ in
        reach.assign(models.filter { moves[$0]?.targets.contains(property) != true }, to: property)
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

  /// Calls `body` for each value that a fragment gives to a property which may hold models, with the models in it, and
  /// true if the class of the fragment has the property.
  private func forEachValue(
    in fragment: SyncFragment, _ body: (PropertyKey, [UUID], Bool) -> Void
  ) {
    let schema = schema(of: fragment)?.data
    for (key, value) in fragment.properties {
      let property = schema?[wireName: key]
      if property?.kind == .plain { continue }
      var models: [UUID] = []
      value.forEachUUID { models.append($0) }
      body(PropertyKey(uuid: fragment.uuid, name: key), models, property != nil)
    }
  }

  /// Returns a fragment without its parts of the moves of these models: operations on them, and the places that the
  /// values of an addition give them.
  func leavingOut(_ models: Set<UUID>, of fragment: SyncFragment) -> SyncFragment {
    var left = fragment
    for entry in fragment.operations {
      left.operations[entry.key] = entry.operations.filter { !$0.moves(among: models) }
    }
    if fragment.kind == .change { return left }
    forEachValue(in: fragment) { property, held, isKnown in
      guard isKnown, !models.isDisjoint(with: held) else { return }
      guard case .array(let elements)? = fragment.properties[property.name] else {
        left.properties[property.name] = .null
        return
      }
      let rest = elements.filter { !$0.names(oneOf: models) }
      left.properties[property.name] = .array(rest)
    }
    return left
  }

  /// Applies changes as local ones, like ``perform(_:alsoKnown:)``, without the lost moves among them, which are
  /// reported.
  ///
  /// - Parameters:
  ///   - whole: the changes, with those that were left out of them before: a model that one of these would put
  ///     somewhere is moved, too.
  ///   - past: the changes that these take back. The models that they have moved are moved back.
  func perform(
    _ changes: [SyncFragment], of whole: [SyncFragment], takingBack past: [SyncFragment],
    alsoKnown: @escaping (UUID) -> ModelObject?
  ) -> ApplyReport {
    let moved = movedModels(in: whole).union(movedModels(in: past))
    let lost = lostMoves(of: moved, in: changes, takingBack: past)
    if lost.isEmpty { return perform(changes, alsoKnown: alsoKnown) }
    var errors: [(fragment: Int, error: ScopeError)] = []
    var unreported = lost
    for (position, fragment) in changes.enumerated() {
      for entry in fragment.operations {
        let property = PropertyKey(uuid: fragment.uuid, name: entry.key)
        for case .remove(let uuid) in entry.operations where lost.contains(uuid) {
          unreported.remove(uuid)
          errors.append((position, reason(ofLostMove: uuid, from: property, fragment.className)))
        }
      }
    }
    // The others would be taken out of a model that leaves, or are in the values of an addition only.
    for (position, fragment) in changes.enumerated() where !unreported.isEmpty {
      forEachModel(namedBy: fragment) { uuid in
        guard unreported.remove(uuid) != nil else { return }
        errors.append((position, reason(ofLostMove: uuid, takingBack: past, fragment.className)))
      }
    }
    var report = perform(changes.map { leavingOut(lost, of: $0) }, alsoKnown: alsoKnown)
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

  private func reason(
    ofLostMove uuid: UUID, takingBack past: [SyncFragment], _ className: String
  ) -> ScopeError {
    var result = ScopeError.noParent(
      className: model(uuid)?.wireClassName ?? className, model: uuid)
    for fragment in past {
      forEachValue(in: fragment) { property, models, _ in
        guard models.contains(uuid) else { return }
        result = reason(ofLostMove: uuid, from: property, fragment.className)
      }
    }
    return result
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

extension JSONValue {
  /// Returns true if the value is one of these models.
  fileprivate func names(oneOf models: Set<UUID>) -> Bool {
    guard case .string(let text) = self, let uuid = UUID(wireText: text) else { return false }
    return models.contains(uuid)
  }
}
