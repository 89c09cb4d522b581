import Foundation

/// A change of a dictionary: the keys that it assigns, each with its new model, or with none.
///
/// In fragments each assignment is a value of a reference of its own; see ``EntryName``. Of two edits, the one that the
/// server puts last wins, key by key.
package struct DictionaryEdit: Sendable, Hashable {
  /// The new model of each key that is assigned; nil where the entry is removed.
  package private(set) var assignments: [String: UUID?]

  /// Makes an edit of assignments.
  package init(_ assignments: [String: UUID?] = [:]) { self.assignments = assignments }

  /// The assignment to a key: nil for none, and `.some(nil)` for a removal.
  package subscript(key: String) -> UUID?? {
    get { assignments[key] }
    set {
      if let newValue {
        assignments.updateValue(newValue, forKey: key)
      } else {
        assignments.removeValue(forKey: key)
      }
    }
  }

  /// True if nothing is assigned.
  package var isEmpty: Bool { assignments.isEmpty }

  /// Returns the edit that does what this one does, and then `next`.
  package func followed(by next: DictionaryEdit) -> DictionaryEdit {
    DictionaryEdit(assignments.merging(next.assignments) { _, last in last })
  }

  /// Returns the part of this edit that is visible behind `pending`. A pending edit stays in front of those of other
  /// replicas until the server has decided on it, so that its keys hide theirs.
  package func behind(_ pending: DictionaryEdit) -> DictionaryEdit {
    DictionaryEdit(assignments.filter { pending.assignments[$0.key] == nil })
  }

  /// Returns this edit, which takes a pending one back, after `remote` has been applied beneath that one: it leads to
  /// what `remote` has assigned.
  package func rebased(onto remote: DictionaryEdit) -> DictionaryEdit {
    DictionaryEdit(
      assignments.merging(remote.assignments.filter { assignments[$0.key] != nil }) { $1 })
  }
}
