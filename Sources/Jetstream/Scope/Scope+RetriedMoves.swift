import Foundation

/// The moves among conflicts that are retried.
///
/// A move between two properties is a conflict of each. The removal without the insertion would delete the model, and
/// the insertion without the removal would put it in two places, so both are made or neither.
extension Scope {
  /// Returns the conflicts, followed by those of `known` that are the other halves of their moves.
  func completingMoves(of conflicts: [Conflict], from known: [Conflict]) -> [Conflict] {
    var open: [MoveHalf] = []
    for conflict in conflicts { forEachMoveHalf(in: conflict) { open.append($0) } }
    if open.isEmpty { return conflicts }
    let (ids, sets) = (Set(conflicts.map(\.id)), Set(conflicts.map(\.changeSet)))
    let others = known.filter { sets.contains($0.changeSet) && !ids.contains($0.id) }
    var places: [MoveHalf: [Int]] = [:]
    for (place, other) in others.enumerated() {
      forEachMoveHalf(in: other) { places[$0, default: []].append(place) }
    }
    var result = conflicts
    var added: Set<Int> = []
    while let half = open.popLast() {
      for place in places.removeValue(forKey: half.opposite) ?? []
      where added.insert(place).inserted {
        result.append(others[place])
        forEachMoveHalf(in: others[place]) { open.append($0) }
      }
    }
    return result
  }

  /// Returns the indices of the conflicts that have a part in a move which would be lost if all others were retried.
  func partsOfLostMoves(in conflicts: [Conflict]) -> Set<Int> {
    let fragments = conflicts.map(\.fragment)
    var moved = movedModels(in: fragments)
    for conflict in conflicts where conflict.reason == .moveLost {
      // Other removals of the same change set count, so this one is one half of a move.
      forEachMoveHalf(in: conflict) { half in
        if half.isRemoval, model(half.model) != nil { moved.insert(half.model) }
      }
    }
    if moved.isEmpty { return [] }
    var parts: Set<Int> = []
    while true {
      let rest = conflicts.indices.filter { !parts.contains($0) }
      let lost = lostMoves(of: moved, in: rest.map { fragments[$0] })
      let found = rest.filter { leavingOut(lost, of: fragments[$0]) != fragments[$0] }
      if found.isEmpty { return parts }
      // A part of other moves as well makes these incomplete.
      parts.formUnion(found)
    }
  }

  private func forEachMoveHalf(in conflict: Conflict, _ body: (MoveHalf) -> Void) {
    let set = conflict.changeSet
    if case .operations(let operations) = conflict.mine {
      for case .remove(let uuid) in operations {
        body(MoveHalf(changeSet: set, model: uuid, isRemoval: true))
      }
    }
    forEachModel(namedBy: conflict.fragment) {
      body(MoveHalf(changeSet: set, model: $0, isRemoval: false))
    }
  }
}

/// The removal of a model from a collection by a change set, or its insertion into a property.
private struct MoveHalf: Hashable {
  let changeSet: UUID
  let model: UUID
  let isRemoval: Bool

  var opposite: MoveHalf { MoveHalf(changeSet: changeSet, model: model, isRemoval: !isRemoval) }
}
