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
    /// The place of the change set among all that were added.
    fileprivate let place: Int
    /// True for an undo that cannot be redone any more, because its author has changed something new since.
    fileprivate var isObsolete = false

    /// Returns true for a change of `author`. One of this replica that names no author is one of all `defaults`.
    fileprivate func isBy(
      _ author: String?, isRemote: Bool = false, defaults: [String]
    ) -> Bool {
      if self.author == author { return true }
      // Two that are named are two, also if both are defaults.
      guard !self.isRemote, !isRemote, self.author == nil || author == nil else { return false }
      return defaults.contains(self.author ?? author ?? "")
    }

    /// Returns the change set with the author of the one that it undoes or redoes, if that is known.
    fileprivate func replacing(_ old: Entry?) -> Entry {
      old.map { Entry(set: set, author: $0.author, isRemote: $0.isRemote, place: place) } ?? self
    }
  }

  /// The change sets that can be undone, the oldest first.
  private(set) var done: [Entry] = []
  /// The change sets that can be redone, the next one last.
  private(set) var undone: [Entry] = []
  /// The change sets that are being undone or redone, by id. The one that does it may come out later, if a listener of
  /// `onChanges` asks for it.
  private var taken: [UUID: Entry] = [:]
  /// The change sets whose places undos and redos have taken that the server has not decided, by the ids of these.
  private var replaced: [UUID: Entry] = [:]
  private var lastPlace = 0
  /// The authors of the replica's own change sets that name none, in the logs that record the scope.
  var defaultAuthors: [String] = []
  /// The maximum number of change sets in ``done``, and in ``undone``; the oldest are dropped.
  let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Adds a change set. One that is a change of its own removes what its author can redo; one that undoes or redoes
  /// another takes that one's place, and its author.
  mutating func add(_ set: ChangeSet, isRemote: Bool = false) {
    lastPlace += 1
    let entry = Entry(set: set, author: set.author, isRemote: isRemote, place: lastPlace)
    switch set.purpose {
    case .edit:
      done.append(entry)
      let isOfAuthor = { [defaultAuthors] (old: Entry) in
        old.isBy(set.author, isRemote: isRemote, defaults: defaultAuthors)
      }
      undone.removeAll(where: isOfAuthor)
      for (id, old) in replaced where old.set.isUndo && isOfAuthor(old) {
        replaced[id]!.isObsolete = true
      }
    case .undo(let id): undone.append(replacing(id, from: \.done, by: entry))
    case .redo(let id): done.append(replacing(id, from: \.undone, by: entry))
    }
    trim()
  }

  /// Calls `body` with the models of all change sets, and with every UUID in the values before and after them.
  func forEachName(_ body: (UUID) -> Void) {
    for entries in [done, undone, Array(taken.values), Array(replaced.values)] {
      for entry in entries { entry.set.forEachName(body) }
    }
  }

  private mutating func trim() {
    if done.count > limit { done.removeFirst(done.count - limit) }
    if undone.count > limit { undone.removeFirst(undone.count - limit) }
    if replaced.count > limit, let first = replaced.min(by: { $0.value.place < $1.value.place }) {
      replaced[first.key] = nil
    }
  }

  private mutating func replacing(
    _ id: UUID, from stack: WritableKeyPath<UndoStacks, [Entry]>, by entry: Entry
  ) -> Entry {
    let old = take(id, from: stack)
    // Those of others are decided.
    if !entry.isRemote { replaced[entry.set.id] = old }
    return entry.replacing(old)
  }

  /// Forgets the change set whose place an undo or a redo has taken, because the server will not reject that.
  mutating func settle(_ id: UUID) { if !replaced.isEmpty { replaced[id] = nil } }

  /// Forgets all of these change sets: no server decides about what the log of an app or a server has.
  mutating func settleAll() { replaced = [:] }

  /// Puts a change set back whose undo or redo was rejected: behind those that were added before it.
  private mutating func restore(_ entry: Entry) {
    let stack = entry.set.isUndo ? \UndoStacks.undone : \.done
    let later = self[keyPath: stack].firstIndex { $0.place > entry.place }
    self[keyPath: stack].insert(entry, at: later ?? self[keyPath: stack].endIndex)
    trim()
  }

  /// Takes the change set that is to be undone next, of all or of one author.
  mutating func takeDone(by author: String?) -> Entry? { take(by: author, from: \.done) }

  /// Takes the change set that is to be redone next, of all or of one author.
  mutating func takeUndone(by author: String?) -> Entry? { take(by: author, from: \.undone) }

  private mutating func take(
    by author: String?, from stack: WritableKeyPath<UndoStacks, [Entry]>
  ) -> Entry? {
    let next = self[keyPath: stack].lastIndex {
      author == nil || $0.isBy(author, defaults: defaultAuthors)
    }
    guard let next else { return nil }
    let entry = self[keyPath: stack].remove(at: next)
    taken[entry.set.id] = entry
    return entry
  }

  /// Takes the change set with an id, which is about to be replaced by the one that undoes or redoes it.
  private mutating func take(
    _ id: UUID, from stack: WritableKeyPath<UndoStacks, [Entry]>
  ) -> Entry? {
    if let entry = taken.removeValue(forKey: id) { return entry }
    let place = self[keyPath: stack].lastIndex { $0.set.id == id }
    return place.map { self[keyPath: stack].remove(at: $0) }
  }

  /// Forgets a change set that was taken, and whose undoing or redoing has had no effect.
  mutating func forgetTaken(_ id: UUID) { taken[id] = nil }

  /// Removes rejected fragments: the rejection has undone them. If all of an undo or a redo was rejected, the change set
  /// whose place it has taken comes back, unless the rejected one has been redone or undone since: then there is one in
  /// that place already, and if that is rejected, too, the first one comes back.
  ///
  /// - Returns: true if the stacks have changed.
  mutating func reject(_ rejected: [SyncFragment], of id: UUID, isWhole: Bool) -> Bool {
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
    let old = replaced.removeValue(forKey: id)
    // The change set that has taken the place of this one meanwhile: a redo of an undo, or an undo of a redo.
    let next = replaced.first { $0.value.set.id == id }?.key
    if !replaced.isEmpty { replaced = replaced.compactMapValues(rest) }
    let isKnown = [done, undone].joined().contains { $0.set.id == id }
    if isKnown { (done, undone) = (done.compactMap(rest), undone.compactMap(rest)) }
    guard let old, isWhole else { return isKnown }
    if let next {
      replaced[next] = old
      return isKnown
    }
    if old.isObsolete { return isKnown }
    restore(old)
    return true
  }

  /// Replaces the UUID of the root in all change sets.
  mutating func rename(_ renaming: RootRenaming) {
    for at in done.indices { done[at].set = renaming(done[at].set) }
    for at in undone.indices { undone[at].set = renaming(undone[at].set) }
    for id in replaced.keys { replaced[id]!.set = renaming(replaced[id]!.set) }
  }

  /// A fragment, as far as it is told from the others of its change set.
  private struct Name: Hashable {
    let uuid: UUID
    let kind: SyncFragment.Kind

    init(_ fragment: SyncFragment) { (uuid, kind) = (fragment.uuid, fragment.kind) }
  }
}

extension ChangeSet {
  /// True if the change set undoes another one.
  fileprivate var isUndo: Bool { if case .undo = purpose { true } else { false } }
}
