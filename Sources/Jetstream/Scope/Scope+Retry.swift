import Foundation

/// Making the changes of conflicts again.
extension Scope {
  /// Makes the changes of conflicts again, those of an atomic change set all or not at all. Other changes are made without
  /// those that cannot be made.
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
