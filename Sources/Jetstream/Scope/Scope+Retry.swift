import Foundation

/// Making the changes of conflicts again.
extension Scope {
  /// Returns the conflicts, each once, followed by those of `known` without which they cannot be retried: the others of
  /// their atomic change sets, the other halves of their moves, and the additions of models that they name. An addition
  /// may be one half of further moves.
  func completing(_ conflicts: [Conflict], from known: [Conflict]) -> [Conflict] {
    let additions = Dictionary(
      known.filter { $0.property == nil }.map { ($0.model, $0) }, uniquingKeysWith: { $1 })
    var ids: Set<Conflict.ID> = []
    var result = conflicts.filter { ids.insert($0.id).inserted }
    while true {
      let count = result.count
      let atomic = Set(result.lazy.filter(\.isAtomic).map(\.changeSet))
      result += known.filter {
        $0.isAtomic && atomic.contains($0.changeSet) && ids.insert($0.id).inserted
      }
      addAdditions(additions, to: &result)
      result = completingMoves(of: result, from: known)
      if result.count == count { return result }
      ids.formUnion(result.lazy.map(\.id))
    }
  }

  /// Adds the additions of models that the conflicts name and that are not in the scope.
  private func addAdditions(_ additions: [UUID: Conflict], to conflicts: inout [Conflict]) {
    var added = Set(conflicts.lazy.filter { $0.property == nil }.map(\.model))
    var next = 0
    while next < conflicts.count {
      forEachModel(namedBy: conflicts[next].fragment) { uuid in
        guard model(uuid) == nil, let addition = additions[uuid], added.insert(uuid).inserted
        else { return }
        conflicts.append(addition)
      }
      next += 1
    }
  }

  /// Makes the changes of conflicts again, those of an atomic change set all or not at all. Other changes are made
  /// without those that cannot be made.
  ///
  /// - Precondition: this is called within `modify`.
  /// - Returns: the conflicts whose changes were made.
  func makeAgain(_ conflicts: [Conflict]) -> [Conflict] {
    var left = conflicts
    while true {
      var failed = partsOfLostMoves(in: left)
      func checkAtomic() throws(IncompleteChange) {
        if failed.contains(where: { left[$0].isAtomic }) { throw IncompleteChange() }
      }
      let made = try? modify {
        try checkAtomic()
        let possible = left.indices.filter { !failed.contains($0) }
        let report = perform(possible.map { left[$0].fragment })
        failed.formUnion(report.errors.map { possible[$0.fragment] })
        try checkAtomic()
      }
      if made != nil { return left.indices.filter { !failed.contains($0) }.map { left[$0] } }
      let sets = Set(failed.map { left[$0] }.filter(\.isAtomic).map(\.changeSet))
      left.removeAll { $0.isAtomic && sets.contains($0.changeSet) }
    }
  }
}

/// Thrown to roll back an atomic change of which a part cannot be made.
struct IncompleteChange: Error {}
