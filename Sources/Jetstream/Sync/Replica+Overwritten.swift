import Foundation

/// What others have overwritten without having seen it: it was taken, and yet it is lost.
extension Replica {
  /// Which part of the server's order a set is made on; the beginning, as long as nothing is known of it.
  var basis: ScopePosition? {
    hasBase ? position : ScopePosition(epoch: "", sequence: 0)
  }

  /// What is said of a set when it is sent.
  func origin(of entry: Pending) -> ChangeOrigin {
    var origin = ChangeOrigin(of: entry.set)
    // A server goes by the session's user.
    origin.author = nil
    // Nobody asks unless it overwrites something.
    let assigns = entry.set.fragments.contains {
      $0.kind == .change ? !$0.properties.isEmpty : !$0.bases.isEmpty
    }
    guard assigns, let basis = entry.basis else { return origin }
    if basis.epoch.isEmpty || basis.epoch == position?.epoch { origin.seen = basis.sequence }
    return origin
  }

  /// Somebody else's set has come, and has not been taken in yet.
  func noteOverwritten(by fragments: [SyncFragment], _ origin: ChangeOrigin) {
    if !batch.lost.isEmpty {
      for fragment in fragments {
        for (key, _) in fragment.properties {
          batch.authors[PropertyKey(uuid: fragment.uuid, name: key)] = .some(origin.author)
        }
      }
    }
    for (name, mine, theirs) in ownWrites.overwrite(by: fragments, seen: origin.seen) {
      // What is written anew settles it.
      if isPending(name) || isSame(theirs, in: mine.fragment, name.name) { continue }
      batch.lost.append(
        Lost(
          set: mine.set, fragment: mine.fragment, property: name.name, reason: .overwritten,
          theirAuthor: origin.author))
    }
  }

  /// The whole state has come, and has not been taken in yet. Sets that are in it, as the server says, may not
  /// be what it shows.
  func noteOverwritten(inState fragments: [SyncFragment]) {
    let written = ownWrites.takeUnplaced()
    if written.isEmpty { return }
    let state = Dictionary(fragments.map { ($0.uuid, $0) }, uniquingKeysWith: { first, _ in first })
    for (key, write) in written {
      let name = PropertyKey(uuid: write.fragment.uuid, name: key)
      guard let fragment = state[name.uuid], !isPending(name) else { continue }
      // What has its default is left out.
      let value =
        fragment.properties[key] ?? scope.schema(of: fragment)?[wireName: key]?.defaultValue
      guard let value, !isSame(value, in: write.fragment, key) else { continue }
      batch.lost.append(
        Lost(set: write.set, fragment: write.fragment, property: key, reason: .overwritten))
    }
  }

  /// Whether a set that is not decided writes a property.
  private func isPending(_ name: PropertyKey) -> Bool {
    overlay.covers(name) && !overlay.isSettled(name)
      || additions[name.uuid]?.properties[name.name] != nil
  }

  /// Whether a value is the one that a fragment writes.
  private func isSame(_ theirs: JSONValue, in fragment: SyncFragment, _ key: String) -> Bool {
    guard let mine = fragment.properties[key] else { return false }
    return theirs == mine
      || scope.schema(of: fragment)?[wireName: key]?.areSame(theirs, mine) == true
  }

  /// A set was made: what it writes is no conflict, also where the ledger does not know of it yet.
  func settleLost(by set: ChangeSet) {
    guard !batch.lost.isEmpty || unnoted.contains(where: { !$0.isEmpty }) else { return }
    let content = WrittenContent(of: set)
    batch.lost.removeAll { content.contains($0.property, of: $0.fragment.uuid) }
    for at in unnoted.indices {
      unnoted[at].removeAll { content.contains($0.property, of: $0.fragment.uuid) }
    }
  }
}
