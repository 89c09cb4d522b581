import Foundation

/// Taking in what the server says about a scope.
extension Replica {
  /// Takes message number `index` into the batch; while the scope is paused, it waits.
  func receive(_ message: Incoming, index: Int) {
    guard !scope.isIncomingPaused, held.isEmpty else { return held.append((index, message)) }
    handle(message)
  }

  /// Whether a message of this index carried a set that is not decided.
  func hasSent(_ messageIndex: Int) -> Bool {
    pending.contains { $0.messageIndex == messageIndex }
  }

  func resume() {
    // What was changed until now was changed without knowing what is taken in next.
    scope.sealChanges()
    let messages = held
    held = []
    for (_, message) in messages { handle(message) }
    finishBatch()
    onPending?()
  }

  func handle(_ message: Incoming) {
    switch message {
    case .sync(let fragments, let sequence, let number):
      guard hasState else { return }
      if let sequence {
        guard sequence > position?.sequence ?? 0 else { return }
        position?.sequence = sequence
      }
      beginBatch()
      if let at = pending.firstIndex(where: { $0.number == number }) {
        conclude(at, pending[at].decision ?? [], effective: fragments)
      } else {
        for fragment in fragments { note(fragment) }
      }
    case .reply(let messageIndex, let replies, let sequence, let effective):
      if let sequence { position?.sequence = sequence }
      receiveReply(to: messageIndex, replies, effective)
    case .standing(let standing): receive(standing)
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
  func receiveState(_ fragments: [SyncFragment], rootUUID: UUID) throws(ScopeError) {
    finishBatch()
    scope.sealChanges()
    finishStanding()
    if let old = scope.root?.uuid, old != rootUUID { renameRoot(from: old, to: rootUUID) }
    hasState = true
    var visible = fragments
    for (at, fragment) in fragments.enumerated() {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        coverIfAdded(name)
        guard overlay.covers(name) else { continue }
        overlay.confirm(name, value: value)
        visible[at].properties[key] = overlay.visible(name)?.json
      }
    }
    keepInFront(&visible)
    if !pending.isEmpty {
      for fragment in visible { graveyard.update(fragment) }
    }
    let report = try scope.applyFullState(
      visible, rootUUID: rootUUID, keepingOrphans: true, alsoKnown: { [self] in graveyard.find($0) }
    )
    revived = [:]
    updateBuried(visible)
    if !pending.isEmpty { for model in report.orphans { graveyard.insert(model) } }
  }

  /// A state leaves properties out that have their default; what is pending stands in front of that, too.
  private func keepInFront(_ state: inout [SyncFragment]) {
    guard !overlay.keys.isEmpty else { return }
    let places = Dictionary(
      state.enumerated().map { ($1.uuid, $0) }, uniquingKeysWith: { first, _ in first })
    for name in Array(overlay.keys) {
      guard let at = places[name.uuid], state[at].properties[name.name] == nil,
        let property = scope.schema(of: state[at])?[wireName: name.name]
      else { continue }
      if !property.makesModels { overlay.confirm(name, value: property.defaultValue) }
      state[at].properties[name.name] = overlay.visible(name)?.json
    }
  }

  /// A set is made between two messages of a batch: what was noted of a property that it touches stands
  /// behind it.
  func cover(_ name: PropertyKey, showing value: @autoclosure () -> PropertyContent) {
    guard let noted = batch.direct[name.uuid]?.take(name.name) else { return }
    batch.seen[name] = value()
    overlay.confirm(name, noted)
  }

  /// The root takes the server's UUID; what was changed of it before the first state came is meant
  /// for it.
  func renameRoot(from old: UUID, to new: UUID) {
    for at in pending.indices {
      pending[at].set = pending[at].set.renaming(old, to: new)
      if let handle = pending[at].handle { handle.set = handle.set.renaming(old, to: new) }
    }
    overlay.rename(old, to: new)
  }

  /// The server's decision about one of our sets.
  func receiveReply(
    to messageIndex: Int, _ replies: [FragmentReply], _ effective: [SyncFragment]? = nil
  ) {
    guard let at = pending.firstIndex(where: { $0.messageIndex == messageIndex }) else { return }
    beginBatch()
    conclude(at, replies, effective: effective)
  }

  /// A pending set is decided, and this is its place in the order.
  ///
  /// - Parameter effective: what the server has done instead of what was submitted; nil if that is the
  ///   same.
  func conclude(_ at: Int, _ replies: [FragmentReply], effective: [SyncFragment]?) {
    let entry = pending.remove(at: at)
    let fragments = entry.set.fragments
    let isCountRight = replies.count == fragments.count
    let mismatch = WireError(
      message: replies.count == 1
        ? replies[0].error?.message ?? "The reply does not fit"
        : "The server answered \(replies.count) of \(fragments.count) fragments")
    var outcomes: [ChangeSetHandle.Outcome] = []
    for (position, fragment) in fragments.enumerated() {
      let reply = isCountRight ? replies[position] : FragmentReply(error: mismatch)
      outcomes.append(ChangeSetHandle.Outcome(reply))
      if let error = reply.error { batch.rejected.append((fragment, error)) }
      let counts = reply.error == nil && effective == nil
      if fragment.kind == .change {
        for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          decide(name, className: fragment.className, by: entry.number, counts)
        }
      } else {
        decide(addition: fragment, of: entry.number, isAccepted: counts)
      }
      if let corrected = reply.modifications, reply.error == nil {
        note(
          SyncFragment(
            .change, uuid: fragment.uuid, className: fragment.className, properties: corrected))
      }
    }
    for fragment in effective ?? [] { note(fragment) }
    if let handle = entry.handle { batch.decided.append((handle, outcomes)) }
  }

  /// The server has decided what a set does to one property.
  private func decide(
    _ name: PropertyKey, className: String, by number: Int, _ isAccepted: Bool
  ) {
    if isAccepted, overlay.isFirst(number, of: name) {
      overlay.acceptFirst(of: name, keeping: batch.seen[name] != nil)
    } else {
      touch(name, className: className)
      overlay.decide(set: number, key: name, isAccepted: isAccepted)
    }
  }

  /// Before the first message of a batch, local changes become a set of their own: what is not in a
  /// set is not covered by the overlay. What observers change during the batch is handled by the
  /// scope, which keeps it in front of what is written under it.
  func beginBatch() {
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
        if let visible { done.additions[at].properties[key] = visible.json }
      }
    }
    var changes = done.direct
    for (name, before) in done.seen {
      let now = overlay.visible(name) ?? before
      overlay.dropIfSettled(name)
      if now != before, isKnown(name.uuid) {
        changes[name.uuid, default: Noted()].set(name.name, to: now.json)
      }
    }
    let fragments =
      done.additions
      + done.order.compactMap { uuid -> SyncFragment? in
        guard let noted = changes[uuid],
          !noted.properties.isEmpty || !noted.operations.isEmpty
        else { return nil }
        return SyncFragment(
          .change, uuid: uuid, className: done.classNames[uuid] ?? "",
          properties: noted.properties, operations: noted.operations)
      }
    if !fragments.isEmpty {
      for fragment in fragments { graveyard.update(fragment) }
      let report = scope.apply(
        fragments, keepingOrphans: true, alsoKnown: { [self] in graveyard.find($0) })
      updateBuried(fragments)
      for model in report.orphans { graveyard.insert(model) }
      restoreRevived()
    }
    // What observers have taken out meanwhile is not in a set yet, and comes back if that is rejected.
    if pending.isEmpty, !scope.hasCollectedChanges {
      graveyard.removeAll()
    } else {
      graveyard.prune { overlay.references }
    }
    for (handle, outcomes) in done.decided {
      scope.pendingChangeSets.finish(handle) { $0.decide(outcomes) }
    }
    for (fragment, error) in done.rejected { onRejected?(fragment, error) }
  }

  /// An observer may have taken models out while they were written.
  private func updateBuried(_ fragments: [SyncFragment]) {
    for fragment in fragments where graveyard.find(fragment.uuid) != nil {
      var values = JSONObject()
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        let visible = overlay.visible(PropertyKey(uuid: fragment.uuid, name: key))?.json
        values[key] = visible ?? fragment.properties[key]
      }
      graveyard.update(fragment.uuid, values)
    }
  }

  /// Gives models that others have brought back the values that the others see.
  func restoreRevived() {
    while !revived.isEmpty {
      let fragments = revived.compactMap { uuid, values -> SyncFragment? in
        guard let model = scope.model(uuid) else { return nil }
        var values = values
        // A listener may have made a set since.
        for (key, _) in values {
          let visible = overlay.visible(PropertyKey(uuid: uuid, name: key))
          if let visible { values[key] = visible.json }
        }
        return SyncFragment(
          .change, uuid: uuid, className: model.wireClassName, properties: values)
      }
      revived = [:]
      scope.apply(fragments, alsoKnown: { [self] in graveyard.find($0) })
    }
  }

  func isKnown(_ uuid: UUID) -> Bool {
    scope.model(uuid) != nil || graveyard.find(uuid) != nil || scope.unknownModel(uuid) != nil
  }

  /// Sorts one remote fragment into the batch.
  func note(_ fragment: SyncFragment) {
    let isKnown = scope.model(fragment.uuid) != nil || batch.additionIndex[fragment.uuid] != nil
    if fragment.kind == .add, !isKnown {
      batch.additionIndex[fragment.uuid] = batch.additions.count
      // What was done to it before it left and came back is in what it comes with.
      let before = batch.direct.removeValue(forKey: fragment.uuid)?.properties
      batch.additions.append(
        SyncFragment(
          .add, uuid: fragment.uuid, className: fragment.className,
          properties: before ?? JSONObject()))
    }
    if let at = batch.additionIndex[fragment.uuid] {
      for (key, value) in fragment.properties {
        overlay.confirm(PropertyKey(uuid: fragment.uuid, name: key), value: value)
        batch.additions[at].properties[key] = value
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        overlay.confirm(name, .operations(entry.operations, value: nil))
        batch.additions[at].properties[entry.key] = PropertyOperation.apply(
          entry.operations, to: batch.additions[at].properties[entry.key])
      }
      return
    }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      coverIfAdded(name)
      if overlay.covers(name) {
        touch(name, className: fragment.className)
        overlay.confirm(name, value: value)
      } else {
        appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: Noted()].set(key, to: value)
      }
    }
    for entry in fragment.operations {
      let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
      coverIfAdded(name)
      if overlay.covers(name) {
        touch(name, className: fragment.className)
        overlay.confirm(name, .operations(entry.operations, value: nil))
      } else {
        appear(fragment.uuid, fragment.className)
        batch.direct[fragment.uuid, default: Noted()].perform(entry.operations, on: entry.key)
      }
    }
  }

  /// Remembers what was visible of a covered property before the batch changed it.
  func touch(_ name: PropertyKey, className: String) {
    appear(name.uuid, className)
    if batch.seen[name] == nil, let visible = overlay.visible(name) { batch.seen[name] = visible }
  }

  func appear(_ uuid: UUID, _ className: String) {
    if batch.classNames.updateValue(className, forKey: uuid) == nil { batch.order.append(uuid) }
  }
}

extension ChangeSetHandle.Outcome {
  fileprivate init(_ reply: FragmentReply) {
    if let error = reply.error {
      self = .rejected(error)
    } else if let values = reply.modifications {
      self = .modified(values)
    } else {
      self = .accepted
    }
  }
}
