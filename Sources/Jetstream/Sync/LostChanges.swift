import Foundation

/// The changes of a replica that were rejected, modified or overwritten, on their way to the ledger of conflicts.
///
/// They go there once the values that replace them are visible. Observers run before that, and a change set that they
/// make may settle a conflict that is not in the ledger yet.
struct LostChanges {
  /// A part of a decided change set that was lost.
  struct Part {
    let set: ChangeSet
    let fragment: SyncFragment
    /// Nil for an addition as a whole.
    let property: String?
    let reason: Conflict.Reason
    /// The position of the fragment in the change set, and the position of the fragment whose rejection caused its
    /// own, if there is one.
    var position: Int?
    var cause: Int?
    /// The author of the value that counts instead, if known.
    var theirAuthor: String?

    var name: PropertyKey? {
      property.map { PropertyKey(uuid: fragment.uuid, name: $0) }
    }
  }

  /// The parts that were lost in the current batch.
  private var parts: [Part] = []
  /// The authors who have written a property after one of its values was lost; nil if the author is not known.
  private var authors: [PropertyKey: String?] = [:]
  /// The parts that were lost in each batch that is being written into the scope.
  private var written: [[Part]] = []
  /// The accepted writes of this replica, as long as other clients may not have seen them.
  var ownWrites: OwnWrites

  /// - Parameter limit: the minimum number of accepted change sets that are kept.
  init(ownWrites limit: Int) { ownWrites = OwnWrites(limit: limit) }

  /// The number of batches whose lost parts are not in the ledger.
  var openCount: Int { written.count }

  /// Adds parts that a decision of the server rejects or modifies.
  mutating func note(_ more: [Part]) { parts += more }

  /// Handles the end of a batch, which is about to be written into the scope.
  mutating func beginWriting() {
    for at in parts.indices where !authors.isEmpty {
      guard let name = parts[at].name, let author = authors[name] else { continue }
      parts[at].theirAuthor = author
    }
    written.append(parts)
    (parts, authors) = ([], [:])
  }

  /// Returns the parts that were lost in the batch that has been written into the scope, except those that were
  /// settled meanwhile.
  mutating func endWriting() -> [Part] { written.removeLast() }

  /// Removes the parts that a new change set settles by writing the same properties.
  mutating func settle(by set: ChangeSet) {
    if set.arguments != nil { return }
    guard !parts.isEmpty || written.contains(where: { !$0.isEmpty }) else { return }
    let content = WrittenContent(of: set)
    func isSettled(_ part: Part) -> Bool { content.contains(part.property, of: part.fragment.uuid) }
    parts.removeAll(where: isSettled)
    for at in written.indices { written[at].removeAll(where: isSettled) }
  }

  /// Notes which of the replica's writes another client's change set overwrites, before that is applied.
  ///
  /// - Parameter isPending: returns true for a property that a pending change set writes again, which is no conflict.
  mutating func noteOverwritten(
    by fragments: [SyncFragment], _ origin: ChangeOrigin, in scope: Scope,
    isPending: (PropertyKey) -> Bool
  ) {
    if !parts.isEmpty {
      for fragment in fragments {
        for (key, _) in fragment.properties {
          authors[PropertyKey(uuid: fragment.uuid, name: key)] = .some(origin.author)
        }
      }
    }
    for (name, mine, theirs) in ownWrites.overwrite(by: fragments, seen: origin.seen) {
      if !isPending(name) { note(mine, name.name, theirs, by: origin.author, in: scope) }
    }
  }

  /// Notes which of the replica's writes a full state overwrites, before that is applied. The state contains these
  /// change sets, as the server says, but may show other values.
  mutating func noteOverwritten(
    byState fragments: [SyncFragment], in scope: Scope, isPending: (PropertyKey) -> Bool
  ) {
    let unplaced = ownWrites.takeUnplaced()
    if unplaced.isEmpty { return }
    let state = Dictionary(fragments.map { ($0.uuid, $0) }, uniquingKeysWith: { first, _ in first })
    for (key, write) in unplaced {
      let name = PropertyKey(uuid: write.fragment.uuid, name: key)
      guard let fragment = state[name.uuid], !isPending(name) else { continue }
      // A property that has its default value is left out of the state.
      let value =
        fragment.properties[key] ?? scope.schema(of: fragment)?[wireName: key]?.defaultValue
      if let value { note(write, key, value, by: nil, in: scope) }
    }
  }

  /// Notes that a write is overwritten, unless with the same value.
  private mutating func note(
    _ write: OwnWrites.Write, _ key: String, _ theirs: JSONValue, by author: String?,
    in scope: Scope
  ) {
    let (set, fragment) = (write.set, write.fragment)
    if let mine = fragment.properties[key],
      theirs.isWritten(as: mine)
        || scope.schema(of: fragment)?[wireName: key]?.areSame(theirs, mine) == true
    {
      return
    }
    parts.append(
      Part(
        set: set, fragment: fragment, property: key, reason: .overwritten, theirAuthor: author))
  }
}
