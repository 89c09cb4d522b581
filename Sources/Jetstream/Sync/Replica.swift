import Foundation

/// Keeps one scope in step with the server's: the change sets that are not confirmed yet, the
/// confirmed values underneath, and the rule by which both become what the app sees.
///
/// The order of the server's messages is the order of the world. Others' changes and the replies to
/// our own come in it; an accepted set counts at the place of its reply. So every replica that has
/// seen the same messages and has nothing pending is equal, whatever it showed meanwhile.
///
/// Does no I/O: ``ClientEngine`` feeds it and takes what it has to send.
package final class Replica {
  /// A change set that the server has not decided.
  struct Pending {
    let number: Int
    var set: ChangeSet
    /// The index of the message that carried it in this session; nil while it waits to be sent.
    var messageIndex: Int?
    /// The index of the last message that the scope showed when the set was made.
    var seen: Int
  }

  let scope: Scope
  let params: JSONValue
  /// The scope's number in the session, once the server has given one.
  var scopeIndex: Int?
  /// Whether a state has arrived in this session. What arrives before it is contained in it.
  var hasState = false
  var pending: [Pending] = []
  private(set) var overlay = PendingOverlay()
  private var nextNumber = 1
  /// The index of the last message of this session that the scope shows.
  var seen = 0
  private var graveyard = Graveyard()
  /// What models that the others have put back must show instead of changes that were lost.
  private var revived: [SyncFragment] = []
  private var batch = Batch()
  private var token: ObservationToken?
  /// Called when a local change set waits to be sent.
  var onPending: (() -> Void)?
  /// Called with each fragment that the server rejected.
  var onRejected: ((SyncFragment, WireError) -> Void)?

  /// What one frame of messages has brought so far.
  private struct Batch {
    var additions: [SyncFragment] = []
    var additionIndex: [UUID: Int] = [:]
    var direct: [UUID: JSONObject] = [:]
    var classNames: [UUID: String] = [:]
    var order: [UUID] = []
    /// What was visible of the touched covered properties before the batch.
    var seen: [PropertyKey: JSONValue] = [:]
    var rejected: [(SyncFragment, WireError)] = []
    var isEmpty = true
  }

  init(scope: Scope, params: JSONValue) {
    self.scope = scope
    self.params = params
    scope.sealChanges()
    token = scope.onChanges.listen { [weak self] set in self?.localChange(set) }
    scope.membershipObserver = self
  }

  /// Stops following the scope. What is pending stays visible and is not sent any more.
  func end() {
    token?.cancel()
    scope.membershipObserver = nil
  }

  // MARK: Local changes

  private func localChange(_ set: ChangeSet) {
    let number = nextNumber
    nextNumber += 1
    for fragment in set.fragments where fragment.kind == .change {
      guard let before = set.bases[fragment.uuid] else { continue }
      for (key, value) in fragment.properties {
        overlay.add(
          set: number, key: PropertyKey(uuid: fragment.uuid, name: key), value: value,
          before: before[key] ?? .null,
          isCollection: scope.isCollection(key, of: fragment.className))
      }
    }
    pending.append(Pending(number: number, set: set, messageIndex: nil, seen: seen))
    onPending?()
  }

  // MARK: The server's messages

  /// Others' changes.
  func receive(_ fragments: [SyncFragment]) {
    guard hasState else { return }
    beginBatch()
    for fragment in fragments { note(fragment) }
  }

  /// The whole state: what is covered by pending sets takes it as base, everything else as it is.
  func receiveState(
    _ fragments: [SyncFragment], rootUUID: UUID, index: Int
  ) throws(ScopeError) {
    scope.sealChanges()
    if let old = scope.root?.uuid, old != rootUUID { renameRoot(from: old, to: rootUUID) }
    let isFirst = !hasState
    hasState = true
    seen = index
    batch = Batch()
    var visible = fragments
    for (at, fragment) in fragments.enumerated() {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        guard overlay.covers(name) else { continue }
        overlay.confirm(name, value: value)
        visible[at].properties[key] = overlay.visible(name)
      }
    }
    if isFirst { renewPending() }
    // Names every value, so that nothing is left to restore.
    defer { revived = [] }
    try scope.applyFullState(
      visible, rootUUID: rootUUID, alsoKnown: { [self] in graveyard.find($0) })
  }

  /// Sets that were made before a session's state are sent as if they had been made after it:
  /// collections are sent whole, and what others have inserted meanwhile would count as removed.
  private func renewPending() {
    overlay.rebaseCollections()
    for at in pending.indices {
      let number = pending[at].number
      pending[at].set = pending[at].set.replacing { overlay.collection($0, afterSet: number) }
      pending[at].seen = seen
    }
  }

  /// The root takes the server's UUID; what was changed of it before the first state came is meant
  /// for it.
  private func renameRoot(from old: UUID, to new: UUID) {
    for at in pending.indices { pending[at].set = pending[at].set.renaming(old, to: new) }
    overlay.rename(old, to: new)
  }

  /// The server's decision about one of our sets. False if no set has this message.
  func receiveReply(to messageIndex: Int, _ replies: [FragmentReply]) -> Bool {
    guard let at = pending.firstIndex(where: { $0.messageIndex == messageIndex }) else {
      return false
    }
    beginBatch()
    let entry = pending.remove(at: at)
    let fragments = entry.set.fragments
    let isCountRight = replies.count == fragments.count
    let mismatch = WireError(
      message: replies.count == 1
        ? replies[0].error?.message ?? "The reply does not fit"
        : "The server answered \(replies.count) of \(fragments.count) fragments")
    for (position, fragment) in fragments.enumerated() {
      let reply = isCountRight ? replies[position] : FragmentReply(error: mismatch)
      if let error = reply.error { batch.rejected.append((fragment, error)) }
      if fragment.kind == .change {
        for (key, _) in fragment.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          touch(name, className: fragment.className)
          overlay.decide(set: entry.number, key: name, isAccepted: reply.error == nil)
        }
      }
      if let corrected = reply.modifications, reply.error == nil {
        note(
          SyncFragment(
            .change, uuid: fragment.uuid, className: fragment.className, properties: corrected))
      }
    }
    return true
  }

  /// Before the first message of a batch, local changes become a set of their own: what is not in a
  /// set is not covered by the overlay. What observers change during the batch is handled by the
  /// scope, which keeps it in front of what is written under it.
  private func beginBatch() {
    guard batch.isEmpty else { return }
    scope.sealChanges()
    batch.isEmpty = false
  }

  /// Ends a batch: writes what is visibly different into the scope.
  ///
  /// All messages of one frame make one batch, so that a reply and the correction that follows it are
  /// seen as one change. `index` is that of the last message.
  func finishBatch(upTo index: Int) {
    defer { if hasState { seen = index } }
    guard !batch.isEmpty else { return }
    var done = batch
    batch = Batch()
    for (at, addition) in done.additions.enumerated() {
      for (key, _) in addition.properties {
        let visible = overlay.visible(PropertyKey(uuid: addition.uuid, name: key))
        if let visible { done.additions[at].properties[key] = visible }
      }
    }
    var changes = done.direct
    for (name, before) in done.seen {
      let now = overlay.visible(name) ?? before
      _ = overlay.dropIfSettled(name)
      if now != before, isKnown(name.uuid) {
        changes[name.uuid, default: JSONObject()][name.name] = now
      }
    }
    let fragments =
      done.additions
      + done.order.compactMap { uuid -> SyncFragment? in
        guard let properties = changes[uuid], !properties.isEmpty else { return nil }
        return SyncFragment(
          .change, uuid: uuid, className: done.classNames[uuid] ?? "", properties: properties)
      }
    if !fragments.isEmpty { apply(fragments) }
    if pending.isEmpty {
      graveyard.removeAll()
    } else {
      graveyard.prune { overlay.references }
    }
    for (fragment, error) in done.rejected { onRejected?(fragment, error) }
  }

  private func apply(_ fragments: [SyncFragment]) {
    var fragments = fragments
    while !fragments.isEmpty {
      for fragment in fragments { graveyard.write(fragment) }
      let report = scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
      for model in report.orphans { graveyard.insert(model, uuid: model.uuid) }
      fragments = revived
      revived = []
      for (at, fragment) in fragments.enumerated() {
        for (key, _) in fragment.properties {
          guard let visible = overlay.visible(PropertyKey(uuid: fragment.uuid, name: key)) else {
            continue
          }
          fragments[at].properties[key] = visible
        }
      }
    }
  }

  private func isKnown(_ uuid: UUID) -> Bool {
    scope.model(uuid) != nil || graveyard.find(uuid) != nil
  }

  /// Sorts one remote fragment into the batch.
  private func note(_ fragment: SyncFragment) {
    let isKnown = scope.model(fragment.uuid) != nil || batch.additionIndex[fragment.uuid] != nil
    if fragment.kind == .add, !isKnown {
      batch.additionIndex[fragment.uuid] = batch.additions.count
      batch.additions.append(
        SyncFragment(
          .add, uuid: fragment.uuid, className: fragment.className, properties: JSONObject()))
    }
    if let at = batch.additionIndex[fragment.uuid] {
      for (key, value) in fragment.properties {
        overlay.confirm(PropertyKey(uuid: fragment.uuid, name: key), value: value)
        batch.additions[at].properties[key] = value
      }
      return
    }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      if overlay.covers(name) {
        touch(name, className: fragment.className)
        overlay.confirm(name, value: value)
      } else {
        appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: JSONObject()][key] = value
      }
    }
  }

  /// Remembers what was visible of a covered property before the batch changed it.
  private func touch(_ name: PropertyKey, className: String) {
    appear(name.uuid, className)
    if batch.seen[name] == nil, let visible = overlay.visible(name) { batch.seen[name] = visible }
  }

  private func appear(_ uuid: UUID, _ className: String) {
    if batch.classNames.updateValue(className, forKey: uuid) == nil { batch.order.append(uuid) }
  }
}

extension Replica: MembershipObserver {
  package func modelEntered(_ model: ModelObject) {
    guard let before = graveyard.remove(model.uuid), scope.isWritingRemotely, !before.isEmpty else {
      return
    }
    revived.append(
      SyncFragment(
        .change, uuid: model.uuid, className: model.schema.wireName, properties: before))
  }

  /// A set that is pending, or about to be made, may put the model back when it is rejected.
  package func modelLeft(_ model: ModelObject) { graveyard.insert(model, uuid: model.uuid) }

  package func changesLost(of model: ModelObject, before: JSONObject) {
    graveyard.changesLost(of: model.uuid, before: before)
  }
}

extension Scope {
  func isCollection(_ key: String, of className: String) -> Bool {
    schema(named: className)?[key]?.kind == .collection
  }
}
