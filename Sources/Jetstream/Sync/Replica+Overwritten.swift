import Foundation

/// Accepted changes that other clients have overwritten without having seen them.
extension Replica {
  /// Returns the origin that is sent with a change set.
  func origin(of entry: PendingEntry) -> ChangeOrigin {
    var origin = ChangeOrigin(of: entry.set)
    // The server uses the session's user as the author.
    origin.author = nil
    // The position matters only if the change set overwrites something.
    let assigns = entry.set.fragments.contains {
      $0.kind == .change ? !$0.properties.isEmpty : !$0.bases.isEmpty
    }
    if assigns, let basis = entry.basis { origin.seen = progress.seen(with: basis) }
    return origin
  }

  /// Notes which of the replica's writes another client's change set overwrites, before that is applied.
  func noteOverwritten(by fragments: [SyncFragment], _ origin: ChangeOrigin) {
    if !batch.lost.isEmpty {
      for fragment in fragments {
        for (key, _) in fragment.properties {
          batch.authors[PropertyKey(uuid: fragment.uuid, name: key)] = .some(origin.author)
        }
      }
    }
    for (name, mine, theirs) in ownWrites.overwrite(by: fragments, seen: origin.seen) {
      // A value that a pending change set writes again is not a conflict.
      if overlay.isPending(name) || isSame(theirs, in: mine.fragment, name.name) { continue }
      batch.lost.append(
        Lost(
          set: mine.set, fragment: mine.fragment, property: name.name, reason: .overwritten,
          theirAuthor: origin.author))
    }
  }

  /// Notes which of the replica's writes a full state overwrites, before that is applied. The state contains these
  /// change sets, as the server says, but may show other values.
  func noteOverwritten(inState fragments: [SyncFragment]) {
    let written = ownWrites.takeUnplaced()
    if written.isEmpty { return }
    let state = Dictionary(fragments.map { ($0.uuid, $0) }, uniquingKeysWith: { first, _ in first })
    for (key, write) in written {
      let name = PropertyKey(uuid: write.fragment.uuid, name: key)
      guard let fragment = state[name.uuid], !overlay.isPending(name) else { continue }
      // A property that has its default value is left out of the state.
      let value =
        fragment.properties[key] ?? scope.schema(of: fragment)?[wireName: key]?.defaultValue
      guard let value, !isSame(value, in: write.fragment, key) else { continue }
      batch.lost.append(
        Lost(set: write.set, fragment: write.fragment, property: key, reason: .overwritten))
    }
  }

  /// Returns true if a value equals the one that a fragment writes.
  private func isSame(_ theirs: JSONValue, in fragment: SyncFragment, _ key: String) -> Bool {
    guard let mine = fragment.properties[key] else { return false }
    return theirs == mine
      || scope.schema(of: fragment)?[wireName: key]?.areSame(theirs, mine) == true
  }

  /// Removes the conflicts that a new change set settles by writing the same properties, also those that are not in
  /// the ledger yet.
  func settleLost(by set: ChangeSet) {
    guard !batch.lost.isEmpty || unnoted.contains(where: { !$0.isEmpty }) else { return }
    let content = WrittenContent(of: set)
    batch.lost.removeAll { content.contains($0.property, of: $0.fragment.uuid) }
    for at in unnoted.indices {
      unnoted[at].removeAll { content.contains($0.property, of: $0.fragment.uuid) }
    }
  }
}
