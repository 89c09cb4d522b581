import Foundation
import Jetstream

/// The moves of a submission that have no effect, of those that several clients make at the same time.
///
/// Of two moves of one model the first counts: a move away from a collection that no longer holds the model has no
/// effect. A move never deletes: a move after which no synced property would lead from the root to the model has no
/// effect either, for instance because the receiving model is gone and its fragment is rejected, or because another
/// client has put it below the moved model. That holds for a model that becomes the value of a reference or an entry,
/// too. A model that is removed and not moved may come back later: an insertion revives it.
struct LostMoves {
  private typealias Move = MoveReach.Move

  private var moves: [UUID: Move] = [:]
  private var lost: Set<UUID> = []

  /// Finds the moves of a submission that have no effect.
  ///
  /// - Parameters:
  ///   - rejected: the fragments of the submission that are not among `fragments`.
  ///   - check: the validation of the submission, which knows the classes of all models.
  init(of fragments: [SyncFragment], rejected: [SyncFragment], in check: FragmentValidator) {
    guard Self.hasMoves(fragments, rejected: rejected, in: check) else { return }
    let content = check.content
    var edits = MoveReach.moves(in: fragments)
    var candidates: Set<UUID> = []
    if !rejected.isEmpty, !edits.isEmpty {
      for fragment in rejected {
        let inserted = fragment.operations.flatMap { FragmentValidator.inserted(by: $0.operations) }
        for uuid in inserted { edits[uuid]?.isTargetRejected = true }
        check.forEachHolding(in: fragment) { _, models in
          for uuid in models { edits[uuid]?.isTargetRejected = true }
        }
      }
    }
    let reach = MoveReach(of: edits, by: fragments, in: check)
    for (uuid, edit) in edits where !edit.sources.isEmpty {
      if !edit.targets.isEmpty || edit.isTargetRejected || reach.isAssigned(uuid) {
        candidates.insert(uuid)
      }
    }
    if candidates.isEmpty { return }
    for uuid in candidates {
      guard let model = content.sharedModel(uuid), let move = edits[uuid], !move.targets.isEmpty
      else {
        continue
      }
      if !content.holders(of: model).contains(where: move.sources.contains) { lost.insert(uuid) }
    }
    reach.findLost(among: candidates, &lost)
    moves = edits
  }

  /// Returns false if no model can be moved: nothing is taken out of a collection, or nothing is put anywhere.
  private static func hasMoves(
    _ fragments: [SyncFragment], rejected: [SyncFragment], in check: FragmentValidator
  ) -> Bool {
    var (removes, inserts) = (false, !rejected.isEmpty)
    for fragment in fragments {
      for entry in fragment.operations {
        for operation in entry.operations {
          switch operation {
          case .remove: removes = true
          case .insert: inserts = true
          case .move, .add: break
          }
          if removes, inserts { return true }
        }
      }
    }
    guard removes else { return false }
    // A closure would have a copy of the whole check.
    for fragment in fragments where check.assignsModels(fragment) { return true }
    return false
  }

  var isEmpty: Bool { lost.isEmpty }

  /// Returns true if the operation on a model in a collection is a part of a lost move.
  func isLost(_ model: UUID, in collection: PropertyKey) -> Bool {
    guard lost.contains(model), let move = moves[model] else { return false }
    return move.sources.contains(collection) || move.targets.contains(collection)
  }

  /// Returns the operations on one property without those of lost moves.
  private func left(_ entry: PropertyOperations.Entry, of uuid: UUID) -> [PropertyOperation] {
    let name = PropertyKey(uuid: uuid, name: entry.key)
    return entry.operations.filter { operation in
      operation.model.map { !isLost($0, in: name) } ?? true
    }
  }

  /// Returns the first property of a fragment that a lost move is about, with the model that it would move.
  func first(in fragment: SyncFragment) -> (key: String, model: UUID)? {
    for entry in fragment.operations
    where left(entry, of: fragment.uuid).count < entry.operations.count {
      let model = entry.operations.lazy.compactMap(\.model).first { lost.contains($0) }
      if let model { return (entry.key, model) }
    }
    return nil
  }

  /// Leaves lost moves out of the fragments that are to be applied.
  ///
  /// - Parameter note: called once for each fragment of which operations are dropped, with its position and the names of their
  ///   properties.
  /// - Returns: the positions of the fragments that remain.
  func drop(
    from fragments: inout [SyncFragment], _ positions: [Int], _ note: (Int, [String]) -> Void
  ) -> [Int] {
    if isEmpty { return positions }
    var kept: [Int] = []
    var result: [SyncFragment] = []
    for (var fragment, position) in zip(fragments, positions) {
      var dropped: [String] = []
      var operations = PropertyOperations()
      for entry in fragment.operations {
        let left = left(entry, of: fragment.uuid)
        if left.count < entry.operations.count { dropped.append(entry.key) }
        if !left.isEmpty { operations.append(newKey: entry.key, left) }
      }
      if !dropped.isEmpty {
        fragment.operations = operations
        note(position, dropped)
      }
      let isEmpty = fragment.properties.isEmpty && fragment.operations.isEmpty
      if isEmpty, fragment.kind == .change { continue }
      result.append(fragment)
      kept.append(position)
    }
    fragments = result
    return kept
  }
}
