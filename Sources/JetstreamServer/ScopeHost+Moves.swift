import Foundation
import Jetstream

/// What becomes of moves that several clients make at the same time.
extension ScopeHost {
  /// A model that a submission takes out of some properties and puts into others.
  private struct Move {
    var sources: Set<PropertyKey> = []
    var targets: Set<PropertyKey> = []
  }

  /// Of two moves of one model the first one counts: a move away from where the model is not any more has
  /// no effect. And a move never deletes: one that would leave the model where nothing leads to has no
  /// effect either. What is removed, and not moved, may come back: putting it somewhere revives it.
  ///
  /// - Parameter note: is told of each property of which something is dropped, with the fragment's position.
  /// - Returns: the positions of the fragments that are left.
  func dropLostMoves(
    _ fragments: inout [SyncFragment], _ positions: [Int], _ note: (Int, String) -> Void
  ) -> [Int] {
    var moves: [UUID: Move] = [:]
    for fragment in fragments {
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        for operation in entry.operations {
          switch operation {
          case .remove(let uuid): moves[uuid, default: Move()].sources.insert(name)
          case .insert(let uuid, _): moves[uuid, default: Move()].targets.insert(name)
          case .move, .add: break
          }
        }
      }
    }
    moves = moves.filter { !$0.value.sources.isEmpty && !$0.value.targets.isEmpty }
    guard !moves.isEmpty else { return positions }
    var lost: Set<UUID> = []
    for (uuid, move) in moves {
      guard let model = scope.model(uuid) else { continue }
      if !model.holders.contains(where: move.sources.contains) { lost.insert(uuid) }
    }
    let holders = holdersOfNewModels(in: fragments)
    for uuid in moves.keys.sorted(by: { $0.wireText < $1.wireText }) where !lost.contains(uuid) {
      if !isReachable(uuid, after: moves, without: lost, holders) { lost.insert(uuid) }
    }
    guard !lost.isEmpty else { return positions }
    var kept: [Int] = []
    var result: [SyncFragment] = []
    for (var fragment, position) in zip(fragments, positions) {
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        let left = entry.operations.filter { operation in
          guard let uuid = operation.model, lost.contains(uuid), let move = moves[uuid] else {
            return true
          }
          return !move.sources.contains(name) && !move.targets.contains(name)
        }
        if left.count < entry.operations.count { note(position, entry.key) }
        fragment.operations[entry.key] = left
      }
      let isEmpty = fragment.properties.isEmpty && fragment.operations.isEmpty
      if isEmpty, fragment.kind == .change { continue }
      result.append(fragment)
      kept.append(position)
    }
    fragments = result
    return kept
  }

  /// What holds the models that the scope does not have yet.
  private func holdersOfNewModels(in fragments: [SyncFragment]) -> [UUID: [UUID]] {
    var result: [UUID: [UUID]] = [:]
    guard fragments.contains(where: { $0.kind == .add }) else { return result }
    for fragment in fragments {
      var held = fragment.operations.flatMap { FragmentValidator.inserted(by: $0.operations) }
      for (_, value) in fragment.properties { held += FragmentValidator.uuids(in: value) }
      for uuid in held where scope.model(uuid) == nil {
        result[uuid, default: []].append(fragment.uuid)
      }
    }
    return result
  }

  /// Whether the root leads to a model once everything is moved that is not lost. Cost: O(n) in the
  /// models above it.
  private func isReachable(
    _ uuid: UUID, after moves: [UUID: Move], without lost: Set<UUID>, _ holders: [UUID: [UUID]]
  ) -> Bool {
    guard let root = scope.root?.uuid else { return false }
    var seen: Set<UUID> = [uuid]
    var open = [uuid]
    while let next = open.popLast() {
      if next == root { return true }
      let move = lost.contains(next) ? nil : moves[next]
      var above: [UUID] = holders[next] ?? []
      above += move?.targets.map(\.uuid) ?? []
      for link in scope.model(next)?.holders ?? [] {
        if move?.sources.contains(link) != true { above.append(link.uuid) }
      }
      for parent in above where seen.insert(parent).inserted { open.append(parent) }
    }
    return false
  }
}
