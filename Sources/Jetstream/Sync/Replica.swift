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
    /// Up to which of the server's messages we knew everything when it was sent.
    var seen = 0
  }

  let scope: Scope
  let params: JSONValue
  /// The scope's number in the session, once the server has given one.
  var scopeIndex: Int?
  /// Whether a state has arrived in this session. What arrives before it is contained in it.
  private(set) var hasState = false
  private(set) var pending: [Pending] = []
  private(set) var overlay = PendingOverlay()
  private var nextNumber = 1
  private var graveyard = Graveyard()
  /// Models that left the graveyard because of what others did, with the values that count.
  private var revived: [UUID: JSONObject] = [:]
  private var batch = Batch()
  private var token: ObservationToken?
  /// What has come while the scope is paused.
  private var held: [(index: Int, message: Incoming)] = []
  /// Called when a local change set waits to be sent, or held decisions were taken in.
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

  /// A message of the server for this scope.
  enum Incoming {
    case sync([SyncFragment])
    case reply(messageIndex: Int, [FragmentReply])
    case state([SyncFragment], rootUUID: UUID, then: (Result<Void, ScopeError>) -> Void)
  }

  init(scope: Scope, params: JSONValue) {
    self.scope = scope
    self.params = params
    scope.sealChanges()
    token = scope.onChanges.listen { [weak self] set in self?.localChange(set) }
    scope.membershipObserver = self
    scope.onIncomingResumed = { [weak self] in self?.resume() }
  }

  /// Stops following the scope. What is pending stays visible and is not sent any more.
  func end() {
    token?.cancel()
    scope.membershipObserver = nil
    scope.onIncomingResumed = nil
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
    pending.append(Pending(number: number, set: set, messageIndex: nil))
    onPending?()
  }

  /// Sends the sets that wait through `send`, which gives the message's index. `seen` is the number
  /// up to which the server's messages have been taken in.
  func sendWaiting(seen: Int, _ send: ([SyncFragment]) -> Int) {
    guard hasState else { return }
    for at in pending.indices where pending[at].messageIndex == nil {
      let number = pending[at].number
      let fragments = pending[at].set.fragments.map { fragment in
        guard fragment.kind == .change else { return fragment }
        var fragment = fragment
        for (key, _) in fragment.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          if let value = overlay.submit(set: number, key: name) { fragment.properties[key] = value }
        }
        return fragment
      }
      pending[at].seen = seen
      pending[at].messageIndex = send(fragments)
    }
  }

  /// What we had seen when we sent a set that is not decided; nil for any other message.
  func seen(whenSending messageIndex: Int) -> Int? {
    pending.first { $0.messageIndex == messageIndex }?.seen
  }

  /// The first of the server's messages that has come, but waits for the scope to be resumed.
  var firstHeldIndex: Int? { held.first?.index }

  /// The session is gone: what it carried has to be sent again in the next one.
  func sessionEnded() {
    scopeIndex = nil
    hasState = false
    held = []
    for at in pending.indices { pending[at].messageIndex = nil }
  }

  // MARK: The server's messages

  /// Takes message number `index` into the batch; while the scope is paused, it waits.
  func receive(_ message: Incoming, index: Int) {
    guard !scope.isIncomingPaused, held.isEmpty else { return held.append((index, message)) }
    handle(message)
  }

  /// Whether a message of this index carried a set that is not decided.
  func hasSent(_ messageIndex: Int) -> Bool {
    pending.contains { $0.messageIndex == messageIndex }
  }

  private func resume() {
    // What was changed until now was changed without knowing what is taken in next.
    scope.sealChanges()
    let messages = held
    held = []
    for (_, message) in messages { handle(message) }
    finishBatch()
    onPending?()
  }

  private func handle(_ message: Incoming) {
    switch message {
    case .sync(let fragments):
      guard hasState else { return }
      beginBatch()
      for fragment in fragments { note(fragment) }
    case .reply(let messageIndex, let replies):
      receiveReply(to: messageIndex, replies)
    case .state(let fragments, let rootUUID, let completion):
      do throws(ScopeError) {
        try receiveState(fragments, rootUUID: rootUUID)
        completion(.success(()))
      } catch {
        completion(.failure(error))
      }
    }
  }

  /// The whole state: what is covered by pending sets takes it as base, everything else as it is.
  private func receiveState(_ fragments: [SyncFragment], rootUUID: UUID) throws(ScopeError) {
    scope.sealChanges()
    if let old = scope.root?.uuid, old != rootUUID { renameRoot(from: old, to: rootUUID) }
    hasState = true
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
    try scope.applyFullState(
      visible, rootUUID: rootUUID, alsoKnown: { [self] in graveyard.find($0) })
    revived = [:]
  }

  /// The root takes the server's UUID; what was changed of it before the first state came is meant
  /// for it.
  private func renameRoot(from old: UUID, to new: UUID) {
    for at in pending.indices { pending[at].set = pending[at].set.renaming(old, to: new) }
    overlay.rename(old, to: new)
  }

  /// The server's decision about one of our sets.
  private func receiveReply(to messageIndex: Int, _ replies: [FragmentReply]) {
    guard let at = pending.firstIndex(where: { $0.messageIndex == messageIndex }) else { return }
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
  /// seen as one change.
  func finishBatch() {
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
    if !fragments.isEmpty {
      for fragment in fragments { graveyard.update(fragment.uuid, fragment.properties) }
      let report = scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
      for model in report.orphans { graveyard.insert(model) }
      restoreRevived()
    }
    if pending.isEmpty {
      graveyard.removeAll()
    } else {
      graveyard.prune { overlay.references }
    }
    for (fragment, error) in done.rejected { onRejected?(fragment, error) }
  }

  /// Gives models that others have brought back the values that the others see.
  private func restoreRevived() {
    while !revived.isEmpty {
      let fragments = revived.compactMap { uuid, values in
        scope.model(uuid).map {
          SyncFragment(.change, uuid: uuid, className: $0.schema.wireName, properties: values)
        }
      }
      revived = [:]
      scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
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
  /// A model that the app puts back itself is new to the others, as it is.
  package func modelEntered(_ model: ModelObject) {
    let values = graveyard.remove(model.uuid)
    if let values, scope.isWritingRemotely { revived[model.uuid] = values }
  }

  /// A set that is pending, or about to be made, may put the model back when it is rejected.
  package func modelLeft(_ model: ModelObject) { graveyard.insert(model) }
}

extension Scope {
  func isCollection(_ key: String, of className: String) -> Bool {
    schema(named: className)?[key]?.kind == .collection
  }
}
