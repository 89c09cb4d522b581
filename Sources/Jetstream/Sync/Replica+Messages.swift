import Foundation

/// Handling the server's messages about a scope.
extension Replica {
  /// Adds the message with this index to the batch; holds it while the scope is paused.
  func receive(_ message: Incoming, index: Int) {
    // The next session begins with what follows.
    if session.needsNewIdentity { return }
    let isFree =
      !scope.isIncomingPaused && !isHolding && session.held.isEmpty && !session.held.isDropping
    guard isFree || continuesUnseen(message) else {
      hold(message, index: index)
      // The server's decision about the replica's own change set is known, although its sequence is not reached.
      guard case .reply(let messageIndex, let replies, _, _, let outcome) = message else { return }
      if refusesNumber(replies, outcome) {
        // The session may be lost before the refusal is handled, and the server decides something under the number.
        noteRefusal(of: messageIndex)
        return
      }
      noteUnanswered(before: messageIndex)
      noteDecision(of: messageIndex, replies, outcome)
      return
    }
    handle(message)
  }

  /// Returns true for a resume point after which a paused scope can go on sending, since it shows nothing: the server
  /// continues the known history, and has decided no change set whose turn it is.
  private func continuesUnseen(_ message: Incoming) -> Bool {
    guard case .standing(let standing, _, _) = message, standing.resumes, !standing.isForgotten,
      session.held.isEmpty, !session.held.isDropping, let position = progress.position,
      standing.position.epoch == position.epoch, standing.position.sequence >= position.sequence
    else { return false }
    return decided(by: standing).allSatisfy { progress.isBefore($0.sequence) }
  }

  /// Holds a message until the scope resumes. If that becomes too much, the client asks for everything since
  /// its position then, and applies nothing that arrives before the answer.
  private func hold(_ message: Incoming, index: Int) {
    session.held.append(message, index: index)
    guard progress.canResume, dialect.drops(session.held) else { return }
    session.held.drop()
    session.hasMissed = true
  }

  /// Returns true if the message with this index carried a change set that is not decided.
  func hasSent(_ messageIndex: Int) -> Bool {
    pending.place(sentIn: messageIndex) != nil
      || session.procedures.isMarker(messageIndex) || session.partMessages[messageIndex] != nil
  }

  /// Returns the replies that accept the change set which the message with this index has carried.
  func repliesAccepting(_ messageIndex: Int) -> [FragmentReply] {
    pending.place(sentIn: messageIndex).map { pending[$0].replies() } ?? []
  }

  func resume() {
    if scope.isIncomingPaused { return }
    // The mode still holds back messages, but the app no longer pauses them.
    if isHolding {
      delegate?.sendWaiting()
      return
    }
    // The changes made until now were made without knowing the messages that are applied next.
    scope.sealChanges()
    let held = session.held
    session.held = HeldMessages()
    for (_, message) in held.messages where !session.needsNewIdentity { handle(message) }
    finishBatch()
    if session.needsNewIdentity {
      delegate?.takeNewIdentities()
      return
    }
    if held.isDropping { askForMissed() } else { noteTold(upTo: held.told) }
    delegate?.sendWaiting()
  }

  func handle(_ message: Incoming) {
    switch message {
    case .sync(let fragments, let sequence, let number, let origin):
      guard session.hasState else { return }
      if session.procedures.hold(message) { return }
      if let sequence {
        guard session.isTaking || journal.isRestoring, sequence > progress.sequence else { return }
        if progress.hasGap(before: sequence) || lacksDecision(of: number), !journal.isRestoring {
          return askForMissed()
        }
      }
      // The changes made until now were made without having seen this message.
      beginBatch()
      progress.advance(to: sequence)
      if let at = number.flatMap({ pending.place(of: $0) }) ?? pending.placeKept(at: sequence) {
        conclude(
          at, pending[at].repliesAtPlace, effective: fragments, sequence: sequence,
          pending[at].decision?.outcome)
      } else {
        journal.note(confirmed: .confirmed(fragments, sequence: sequence, origin: origin))
        noteOverwritten(by: fragments, origin)
        for fragment in fragments { note(fragment, by: origin.author) }
        // A server leaves out values that later change sets of the frame replace.
        if fragments.isEmpty { return }
        noteRemote(RemoteChanges(fragments, sequence: sequence, origin: origin))
      }
    case .reply(let messageIndex, let replies, let sequence, let effective, let outcome):
      if progress.hasGap(before: sequence) {
        return noteDecision(of: messageIndex, replies, outcome, at: sequence)
      }
      if refusesNumber(replies, outcome) {
        noteRefusal(of: messageIndex)
        return session.needsNewIdentity = true
      }
      if session.procedures.begin(at: messageIndex) { return }
      beginBatch()
      progress.advance(to: sequence)
      if receivePart(messageIndex, replies) { return }
      concludeUnanswered(before: messageIndex)
      if let at = pending.place(sentIn: messageIndex) {
        conclude(at, replies, effective: effective, sequence: sequence, outcome)
      }
      for message in session.procedures.end(at: messageIndex) { handle(message) }
    case .standing(let standing, let tell, let since):
      receive(standing, tell, since: since)
    case .state(let fragments, let rootUUID, let more, let completion):
      session.stateParts += fragments
      if more { return }
      let fragments = session.stateParts
      session.stateParts = []
      if holdsBackState { return dropState() }
      do throws(ScopeError) {
        try receiveState(fragments, rootUUID: rootUUID)
        batch.completions.append(completion)
      } catch {
        completion(.failure(error))
      }
    case .repair(let fragments, let sequence): repair(with: fragments, at: sequence)
    }
  }

  /// Returns true for the number of a pending change set whose decision has not come. The server tells it before it sends
  /// the change set: the message with the decision is lost.
  private func lacksDecision(of number: Int?) -> Bool {
    guard let number, let at = pending.place(of: number) else { return false }
    return !pending[at].isDecided
  }

  /// Adds a full state to the batch: it becomes the base of properties that pending change sets cover, and the value
  /// of all others.
  func receiveState(_ fragments: [SyncFragment], rootUUID: UUID) throws(ScopeError) {
    try scope.checkFullState(fragments, rootUUID: rootUUID)
    journal.beginStep()
    defer { journal.endStep() }
    session.procedures = OldProcedures()
    let old = scope.root?.uuid
    // The batch so far has the root by its old UUID.
    if old != rootUUID { finishBatch() }
    scope.sealChanges()
    // A server of version 1 does not say which change sets its state contains.
    if dialect.isOfValues, !journal.isRestoring { forgetDecisions(after: 0) }
    // Seals what observers have changed meanwhile, while the root has its old UUID: the log has that before the state.
    beginBatch()
    // Pending changes of the old root apply to the root with its new UUID.
    if let old, old != rootUUID { renameRoot(from: old, to: rootUUID) }
    finishStanding()
    if !progress.hasBase, let root = fragments.first { dropInitialContent(where: root) }
    let calls = pending.calls
    losses.noteOverwritten(byState: fragments, in: scope) {
      overlay.isPending($0, besides: calls)
    }
    if dialect.isOfValues, !journal.isRestoring { progress.position = nil }
    keep(.base(ReplicaBase(position: progress.position, root: rootUUID, fragments: fragments)))
    progress.hasBase = true
    session.hasState = true
    noteRemote(RemoteChanges(fragments, sequence: progress.position?.sequence, isFullState: true))
    batch.replaceContent(by: fragments, root: rootUUID) { scope.model($0) != nil }
    if overlay.keys.isEmpty, overlay.additions.isEmpty { return }
    for fragment in fragments {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        coverIfAdded(name)
        overlay.confirm(name, value: value)
      }
      for (key, _) in overlay.additions[fragment.uuid]?.properties ?? [:]
      where fragment.properties[key] == nil {
        coverIfAdded(PropertyKey(uuid: fragment.uuid, name: key))
      }
    }
    keepInFront()
  }

  /// Keeps pending changes in front of properties that a state leaves out because they have their default value.
  private func keepInFront() {
    for name in Array(overlay.keys) {
      guard let at = batch.place(of: name.uuid) else { continue }
      let fragment = batch.additions[at]
      guard fragment.properties[name.name] == nil,
        let property = scope.schema(of: fragment)?[wireName: name.name]
      else { continue }
      touch(name, className: fragment.className)
      overlay.confirm(name, value: property.defaultValue)
    }
  }

  /// Gives the root the server's UUID, also in what was changed before the first state arrived and in everything
  /// that refers to the root.
  func renameRoot(from old: UUID, to new: UUID) {
    let renaming = RootRenaming(from: old, to: new, in: scope)
    for at in pending.indices {
      pending[at].set = renaming(pending[at].set)
      if let handle = pending[at].shared.madeHandle {
        handle.changeSet = renaming(handle.changeSet)
      }
    }
    overlay.renameAdditions(renaming) { knownModel($0)?.schema }
    overlay.rename(renaming) { knownProperty($0)?.namesModels == false }
    graveyard.rename(renaming)
    losses.ownWrites.rename(renaming)
    scope.renameRoot(to: new)
  }

  /// Removes a pending change set that is decided and whose sequence is reached, and applies the decision.
  ///
  /// - Parameter effective: the changes that the server made instead of the submitted ones; nil if they are the
  ///   same.
  func conclude(
    _ at: Int, _ replies: [FragmentReply], effective: [SyncFragment]?, sequence: Int? = nil,
    _ outcome: CallOutcome? = nil
  ) {
    let entry = pending.remove(at: at)
    let split =
      pending.splits.isEmpty ? nil : pending.splits.removeValue(forKey: entry.number)
    keep(
      .decided(
        .init(
          number: entry.number, replies: replies,
          effective: effective ?? (split == nil ? submitted(entry, replies) : nil),
          sequence: sequence)))
    noteDecided(isLarge: outcome != nil || !replies.allSatisfy(\.isPlain))
    let set = entry.set
    let fragments = set.fragments
    let isCountRight = replies.count == fragments.count
    let mismatch = WireError(
      message: replies.count == 1
        ? replies[0].error?.message ?? "The reply does not fit"
        : "The server answered \(replies.count) of \(fragments.count) fragments")
    let replies = isCountRight ? replies : fragments.map { _ in FragmentReply(error: mismatch) }
    let outcome = isCountRight ? outcome : entry.failure(mismatch)
    batch.noteRejected(set, replies)
    for (position, fragment) in fragments.enumerated() {
      let reply = replies[position]
      // The changes of a call are a guess: its caller is told of its failure, and loses nothing else.
      if !reply.isPlain, set.arguments == nil {
        losses.note(lost(at: position, of: set, by: reply, cause: replies.cause(of: position)))
      }
      if split?.decided.contains(position) == true { continue }
      let counts = reply.error == nil && effective == nil
      if fragment.kind == .change {
        for member in fragment.properties.members {
          let name = PropertyKey(uuid: fragment.uuid, name: member.key)
          decide(name, className: fragment.className, by: entry.number, counts)
        }
        for step in fragment.operations {
          let name = PropertyKey(uuid: fragment.uuid, name: step.key)
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
    if split == nil { noteSentDates(of: fragments, replies) }
    // A server that reports no sequence, and so no position with its state, does not say what the maker of a change
    // set had seen. A change set of initial content does not say which part of it has an effect.
    let isKnown = progress.position != nil || !progress.hasBase
    // A procedure makes other changes than its caller.
    if isKnown, !set.isInitialContent, set.arguments == nil, sequence != nil || effective != nil {
      let exceptions = replies.indices.filter { !replies[$0].accepts }
      if exceptions.count < fragments.count {
        losses.ownWrites.accept(set, number: entry.number, except: exceptions, at: sequence)
      }
    }
    batch.decided.append((entry.shared, replies, outcome))
  }

  /// Returns the values that a server of version 1 was sent in place of operations and of values that a rule merges.
  /// They follow from what was pending and confirmed then. Nil if the record of the change set says the same.
  private func submitted(_ entry: PendingEntry, _ replies: [FragmentReply]) -> [SyncFragment]? {
    let fragments = entry.set.fragments
    guard dialect.isOfValues, !journal.isRestoring, journal.isKept,
      replies.count == fragments.count,
      fragments.contains(where: {
        $0.kind == .change && !($0.operations.isEmpty && $0.bases.isEmpty)
      })
    else { return nil }
    return zip(fragments, replies).compactMap { fragment, reply in
      guard reply.error == nil else { return nil }
      var result = fragment
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        if fragment.kind == .change, let value = overlay.submitted(set: entry.number, key: name) {
          result.properties[key] = value
        }
      }
      result.operations = [:]
      for (key, value) in reply.modifications ?? [:] { result.properties[key] = value }
      return result
    }
  }

  /// Applies the server's decision about the change that a set makes to one property.
  func decide(
    _ name: PropertyKey, className: String, by number: Int, _ isAccepted: Bool
  ) {
    // The values of a model that is added in this batch are taken from the overlay at the end of the batch.
    let isAdded = batch.place(of: name.uuid) != nil
    if isAccepted, !isAdded,
      overlay.acceptIfFirst(number, of: name, keeping: batch.seen[name] != nil)
    {
      return
    }
    touch(name, className: className)
    overlay.decide(set: number, key: name, isAccepted: isAccepted)
  }
}

extension FragmentReply {
  /// True if the fragment was accepted with the submitted values.
  var accepts: Bool { error == nil && modifications == nil }
}
