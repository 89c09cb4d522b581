import Foundation
import Jetstream

/// The search for models that leave.
extension Differences {
  /// Returns the next model that leaves: one to which nothing leads any more, or one below such a model. Nil if there
  /// is none left.
  ///
  /// - Parameter isDecided: returns true for fragments that are rejected already, so that the models which they let go
  ///   of stay.
  mutating func nextDeparture(
    unless isDecided: (FragmentIndices) -> Bool = { _ in false }
  ) -> Difference? {
    while let (model, fragments) = below.popLast() ?? takeLost() {
      if !model.isShared || model.isLeaving { continue }
      if isDecided(fragments) {
        model.isReachable = true
        continue
      }
      if isReachable(model) { continue }
      model.isLeaving = true
      model.forEachNewChild { if let child = scope[$0] { below.append((child, fragments)) } }
      return Difference(kind: .deleted, model: model, fragments: fragments)
    }
    return nil
  }

  private mutating func takeLost() -> (model: TentativeModel, fragments: FragmentIndices)? {
    lost.popLast().map { ($0, FragmentIndices(joining: $0.lost.lazy.map(\.fragments))) }
  }

  /// Returns true if the root would lead to a model. Cost: O(n) in the models above it and their holders, for all calls
  /// together: what was found of the models on the way is remembered, since the same ones may be above a thousand models
  /// of which a change set lets go.
  func isReachable(_ model: TentativeModel) -> Bool {
    if let known = model.isReachable { return known }
    guard let root = scope.rootUUID else { return false }
    let above = model.uuid == root ? [root] : holders(above: model)
    // Mostly the model is held no longer, or by the root.
    let isFound =
      above.isEmpty ? false : above.contains(root) ? true : isReachable(model, above, root)
    model.isReachable = isFound
    return isFound
  }

  private func isReachable(_ model: TentativeModel, _ above: [UUID], _ root: UUID) -> Bool {
    var seen = [model]
    var isSeen: Set<UUID> = [model.uuid]
    // The models that were left behind may have led to one on the path, which is only known at the end.
    var below: [UUID: [TentativeModel]] = [:]
    var path = [(model: model, above: above)]
    var isFound = false
    while !isFound, let last = path.indices.last {
      guard let next = path[last].above.popLast() else {
        path.removeLast()
        continue
      }
      let holder = scope[next]
      isFound = next == root || holder?.isReachable == true
      below[next, default: []].append(path[last].model)
      guard let holder, !isFound, holder.isReachable == nil, isSeen.insert(next).inserted else {
        continue
      }
      seen.append(holder)
      path.append((holder, holders(above: holder)))
    }
    var open = isFound ? path.map(\.model) : []
    while let next = open.popLast() {
      if next.isReachable == true { continue }
      next.isReachable = true
      open += below[next.uuid] ?? []
    }
    for model in seen where model.isReachable == nil { model.isReachable = false }
    return isFound
  }

  /// Returns the models that would hold one.
  private func holders(above model: TentativeModel) -> [UUID] {
    var result = model.gained.map(\.holder.uuid)
    let holders = scope.holders(of: model)
    if model.lost.isEmpty {
      for holder in holders { result.append(holder.uuid) }
    } else if model.lost.count <= 4 {
      for holder in holders where !model.lost.contains(where: { $0.holder == holder }) {
        result.append(holder.uuid)
      }
    } else {
      let left = Set(model.lost.map(\.holder))
      for holder in holders where !left.contains(holder) { result.append(holder.uuid) }
    }
    return result
  }
}
