import Foundation

/// The change sets that can be undone, and those that can be redone, as a state machine: each change set goes to one of
/// the two, according to its purpose.
struct UndoStacks {
  /// The change sets that can be undone, the oldest first.
  private(set) var done: [ChangeSet] = []
  /// The change sets that can be redone, the next one last.
  private(set) var undone: [ChangeSet] = []
  /// The maximum number of change sets in ``done``; the oldest are dropped.
  let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Adds a change set. One that is a change of its own removes what its author can redo.
  mutating func add(_ set: ChangeSet) {
    switch set.purpose {
    case .edit:
      done.append(set)
      undone.removeAll { $0.author == set.author }
    case .undo(let id):
      done.removeAll { $0.id == id }
      undone.append(set)
    case .redo(let id):
      undone.removeAll { $0.id == id }
      done.append(set)
    }
    if done.count > limit { done.removeFirst(done.count - limit) }
  }

  /// Takes the change set that is to be undone next, of all or of one author.
  mutating func takeDone(by author: String?) -> ChangeSet? { Self.take(author, from: &done) }

  /// Takes the change set that is to be redone next, of all or of one author.
  mutating func takeUndone(by author: String?) -> ChangeSet? { Self.take(author, from: &undone) }

  private static func take(_ author: String?, from sets: inout [ChangeSet]) -> ChangeSet? {
    sets.lastIndex { author == nil || $0.author == author }.map { sets.remove(at: $0) }
  }

  /// Removes rejected fragments: the rejection has undone them. Returns true if the change set was there.
  mutating func reject(_ rejected: [SyncFragment], of id: UUID) -> Bool {
    let names = Set(rejected.map(Name.init))
    func rest(_ set: ChangeSet) -> ChangeSet? {
      guard set.id == id else { return set }
      let fragments = set.fragments.filter { !names.contains(Name($0)) }
      if fragments.isEmpty { return nil }
      return set.with(fragments, undo: set.undo.filter { !names.contains(Name($0)) })
    }
    guard (done + undone).contains(where: { $0.id == id }) else { return false }
    (done, undone) = (done.compactMap(rest), undone.compactMap(rest))
    return true
  }

  /// Replaces the UUID of the root in all change sets.
  mutating func rename(_ renaming: RootRenaming) {
    (done, undone) = (done.map { renaming($0) }, undone.map { renaming($0) })
  }

  /// A fragment, as far as it is told from the others of its change set.
  private struct Name: Hashable {
    let uuid: UUID
    let kind: SyncFragment.Kind

    init(_ fragment: SyncFragment) { (uuid, kind) = (fragment.uuid, fragment.kind) }
  }
}
