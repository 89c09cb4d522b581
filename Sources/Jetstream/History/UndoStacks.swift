import Foundation

/// The change sets that can be undone, and those that can be redone, as a state machine: each change set goes to one of
/// the two, according to its purpose.
struct UndoStacks {
  /// A change set that can be undone or redone.
  struct Entry {
    var set: ChangeSet
    /// The author whose change it is: of an undo, the one who had made what it undoes.
    let author: String?
    /// True if another replica has made the change, or what this undoes.
    let isRemote: Bool
  }

  /// The change sets that can be undone, the oldest first.
  private(set) var done: [Entry] = []
  /// The change sets that can be redone, the next one last.
  private(set) var undone: [Entry] = []
  /// The maximum number of change sets in ``done``; the oldest are dropped.
  let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Adds a change set. One that is a change of its own removes what its author can redo; one that undoes or redoes
  /// another takes that one's place, and its author.
  mutating func add(_ set: ChangeSet, isRemote: Bool = false) {
    let entry = Entry(set: set, author: set.author, isRemote: isRemote)
    switch set.purpose {
    case .edit:
      done.append(entry)
      undone.removeAll { $0.author == set.author }
    case .undo(let id): undone.append(Self.replace(id, in: &done, by: entry))
    case .redo(let id): done.append(Self.replace(id, in: &undone, by: entry))
    }
    if done.count > limit { done.removeFirst(done.count - limit) }
  }

  private static func replace(_ id: UUID, in entries: inout [Entry], by new: Entry) -> Entry {
    guard let at = entries.lastIndex(where: { $0.set.id == id }) else { return new }
    let old = entries.remove(at: at)
    return Entry(set: new.set, author: old.author, isRemote: old.isRemote)
  }

  /// The change set that is to be undone next, of all or of one author.
  func nextToUndo(by author: String?) -> Entry? {
    done.last { author == nil || $0.author == author }
  }

  /// The change set that is to be redone next, of all or of one author.
  func nextToRedo(by author: String?) -> Entry? {
    undone.last { author == nil || $0.author == author }
  }

  /// Drops a change set whose undoing or redoing has had no effect.
  mutating func drop(_ id: UUID) {
    done.removeAll { $0.set.id == id }
    undone.removeAll { $0.set.id == id }
  }

  /// Removes rejected fragments: the rejection has undone them. Returns true if the change set was there.
  mutating func reject(_ rejected: [SyncFragment], of id: UUID) -> Bool {
    let names = Set(rejected.map(Name.init))
    func rest(_ entry: Entry) -> Entry? {
      guard entry.set.id == id else { return entry }
      let fragments = entry.set.fragments.filter { !names.contains(Name($0)) }
      if fragments.isEmpty { return nil }
      var entry = entry
      entry.set = entry.set.with(
        fragments, undo: entry.set.undo.filter { !names.contains(Name($0)) })
      return entry
    }
    guard (done + undone).contains(where: { $0.set.id == id }) else { return false }
    (done, undone) = (done.compactMap(rest), undone.compactMap(rest))
    return true
  }

  /// Replaces the UUID of the root in all change sets.
  mutating func rename(_ renaming: RootRenaming) {
    for at in done.indices { done[at].set = renaming(done[at].set) }
    for at in undone.indices { undone[at].set = renaming(undone[at].set) }
  }

  /// A fragment, as far as it is told from the others of its change set.
  private struct Name: Hashable {
    let uuid: UUID
    let kind: SyncFragment.Kind

    init(_ fragment: SyncFragment) { (uuid, kind) = (fragment.uuid, fragment.kind) }
  }
}
