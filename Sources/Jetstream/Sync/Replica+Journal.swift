import Foundation

/// Recording the steps of a replica, so that another process can continue from there.
extension Replica {
  /// Hands a record to the log, if there is one. While restoring, only new records are handed over; the others are
  /// in the log already.
  func keep(_ record: @autoclosure () -> ReplicaRecord, isNew: Bool = false) {
    keepConfirmed()
    if let write = journal.writer(isNew: isNew) { write(record()) }
  }

  /// Hands the record of the batch's remote change sets to the log: before any other, and before the batch is visible.
  func keepConfirmed() {
    if let record = journal.takeConfirmed(), let write = journal.writer(isNew: false) {
      write(record)
    }
  }

  /// Notes that the first `count` records are durable: their change sets may be sent, and their decisions may be
  /// forgotten by the server.
  package func stored(_ count: Int) {
    journal.noteStored(count)
    delegate?.sendWaiting()
  }

  /// Notes that a change set is decided, and that its record has been handed over or is to be made here: the decisions on
  /// change sets whose sequences are not reached have one record for many, but a large one is recorded at once.
  func noteDecided(isLarge: @autoclosure () -> Bool) {
    let known = pending.knownNumber
    guard journal.isKept, !journal.isRestoring else { return journal.noteDecided(upTo: known) }
    if let next = unrecorded.first {
      guard isLarge() || known - journal.recorded >= journal.decisionsPerRecord else {
        return journal.noteDecided(upTo: next.number - 1)
      }
      keep(.known(unrecorded.compactMap(\.decision)))
    }
    journal.noteDecided(upTo: known)
  }

  /// Records the decisions that were left to a record of many, since the session has ended. Otherwise a server that keeps no
  /// more of them would end the next session, too: it tells the client the same ones there.
  func recordDecisions() {
    if journal.isKept, !unrecorded.isEmpty { noteDecided(isLarge: true) }
  }

  /// The change sets whose decisions are kept and have no record.
  private var unrecorded: PendingQueue.SubSequence {
    pending[min(pending.place(after: journal.recorded), pending.keptCount)..<pending.keptCount]
  }

  /// Keeps the decision about a change set whose sequence is not reached: if the session is lost, the replica still knows
  /// it, and the server need not.
  func keepDecision(at place: Int, _ decision: ScopeStanding.Decision) {
    var decision = decision
    decision.checksum = nil
    let isPlain = decision.fragmentReplies.allSatisfy(\.isPlain)
    if isPlain, decision.fragmentReplies.count == pending[place].set.fragments.count {
      decision.fragmentReplies = []
    }
    pending.decide(place, decision)
    pending.keep(place)
    noteDecided(isLarge: !isPlain || decision.outcome != nil)
  }

  /// Forgets the kept decisions about the change sets above a number, which the server does not know any more.
  func forgetDecisions(after number: Int) {
    guard pending.forgetDecisions(after: number) else { return }
    keep(.forgotten(after: number))
    journal.noteForgotten(after: max(number, pending.concludedNumber))
    sendBehindRecords()
  }

  /// Has what waits sent when all records until now are durable: another process must not take it for decided.
  func sendBehindRecords() {
    if pending.unsentCount > 0 { pending[pending.sentCount].record = journal.made }
  }

  /// The history from which another process could continue. Reading it seals the collected local changes. Nil before
  /// the first full state, and in the middle of a step, when the state is not what the records until now amount to.
  ///
  /// A record is handed over before its step is complete, and observers run within steps. So the moments at which
  /// nothing is half-done are found here, wherever the caller comes from:
  /// - a full state is being added to the batch, or a local change set becomes pending (`journal.isInStep`);
  /// - messages of a frame are in the batch but not written into the scope (`batch`), or written while the conflicts
  ///   that follow from them are not in the ledger (`losses`);
  /// - the scope applies remote changes, delivers a change set, or runs `modify` (`settle()`);
  /// - a server of version 1 has answered a part of a change set that was sent in several messages: that part counts
  ///   already, but there is no record of it.
  package var history: ReplicaHistory? {
    guard !isInStep, progress.hasBase, scope.settle(), !isInStep, let root = scope.root,
      let confirmed = confirmed()
    else { return nil }
    var history = ReplicaHistory(
      client: request.clientID, root: root.uuid, nextNumber: pending.lastNumber + 1,
      base: ReplicaBase(position: progress.position, root: root.uuid, fragments: confirmed.state),
      conflicts: scope.conflicts.items, writes: losses.ownWrites.remaining)
    history.pending = pending.enumerated().map { at, entry in
      // Those that have no record yet get one behind the snapshot.
      let isRecorded = at < pending.keptCount && entry.number <= journal.recorded
      return .init(
        number: entry.number, set: entry.set, basis: entry.basis, counters: counters(in: entry),
        decision: isRecorded ? entry.decision : nil)
    }
    history.departed = confirmed.departed
    history.authors = overlay.authors
    return history
  }

  /// Returns the values of the counters that a pending change set changes, if they do not follow from the confirmed
  /// state: a server of version 1 is sent values, so remote changes do not affect such a counter while the change
  /// set is pending.
  private func counters(in entry: PendingEntry) -> [PropertyKey: JSONValue] {
    guard progress.position == nil else { return [:] }
    var result: [PropertyKey: JSONValue] = [:]
    for fragment in entry.set.fragments {
      for step in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: step.key)
        result[name] = overlay.counted(by: entry.number, key: name)
      }
    }
    return result
  }

  /// True while the effect of a record that was handed over is not complete, and once the replica no longer follows
  /// the scope.
  private var isInStep: Bool {
    journal.isInStep || !batch.isEmpty || losses.openCount > 0 || !observation.isActive
      || pending.isPartlyDecided
  }

  /// Restores what another process has left, by applying its state and then its records in the same order.
  ///
  /// - Throws: ``ScopeError`` if a state does not belong to the scope.
  func restore(_ history: ReplicaHistory) throws(ScopeError) {
    journal.isRestoring = true
    // Observers may make change sets meanwhile.
    let last = history.records.reduce(history.nextNumber - 1) { last, record in
      if case .made(let number, _) = record { max(last, number) } else { last }
    }
    pending.lastNumber = last
    session.hasState = true
    defer {
      session.hasState = false
      journal.isRestoring = false
    }
    if let base = history.base {
      request.clientID = history.client
      try receive(base)
      finishBatch()
    } else {
      take(history.client, root: history.root)
      // The scope may show these change sets already, if it was synced before: made again, they would count twice. A state
      // among the records replaces what they are made on.
      if last > 0, !history.hasState { try scope.setToDefaults() }
    }
    if !history.departed.isEmpty {
      let models = scope.makeDeparted(history.departed) { [self] in graveyard.find($0) }
      for model in models { graveyard.insert(model) }
    }
    for entry in history.pending {
      // The ledger may have it from an earlier attempt to sync the scope.
      scope.conflicts.settle(by: entry.set)
      redo(entry.set, number: entry.number, basis: entry.basis, counters: entry.counters)
      if let decision = entry.decision { redo(decision) }
    }
    if !history.pending.isEmpty { showPending(Set(overlay.keys)) }
    overlay.authors = history.authors
    scope.conflicts.restore(history.conflicts)
    losses.ownWrites.restore(history.writes)
    for record in history.records { try redo(record) }
    finishBatch()
    journal.noteDecided(upTo: pending.knownNumber)
    // Changes that observers made while the log was read come after all of it.
    for entry in pending where entry.number > last { scope.conflicts.settle(by: entry.set) }
    let next = pending.lazy.map(\.shared).first { $0.isPending }
    for entry in pending where !entry.shared.isPending {
      entry.shared.claims += 1
      scope.pendingChangeSets.add(entry.shared, before: next)
    }
  }

  private func redo(_ record: ReplicaRecord) throws(ScopeError) {
    switch record {
    case .named(let client, let root): take(client, root: root)
    case .made(let number, let set):
      finishBatch()
      scope.conflicts.settle(by: set)
      redo(set, number: number, basis: progress.basis)
      if pending.last?.number != number { showPending(WrittenContent(of: set).properties) }
    case .confirmed(let fragments, let sequence, let origin):
      handle(.sync(fragments, sequence: sequence, origin: origin))
    case .together(let records): for record in records { try redo(record) }
    case .decided(let decided):
      progress.advance(to: decided.sequence)
      guard let at = pending.place(of: decided.number) else { return }
      beginBatch()
      conclude(
        at, decided.replies, effective: decided.effective, sequence: decided.sequence)
    case .known(let decisions): for decision in decisions { redo(decision) }
    case .forgotten(let number): _ = pending.forgetDecisions(after: number)
    case .base(let base): try receive(base)
    case .discarded(let names):
      finishBatch()
      scope.conflicts.remove(Set(names))
    }
  }

  /// Restores the decision about a change set whose sequence is not reached.
  private func redo(_ decision: ScopeStanding.Decision) {
    guard let at = pending.place(of: decision.number), at == pending.keptCount,
      progress.isBefore(decision.sequence)
    else { return }
    pending.noteSent(upTo: at)
    keepDecision(at: at, decision)
  }

  private func receive(_ base: ReplicaBase) throws(ScopeError) {
    progress.position = base.position
    // Only a server of version 1 reports no position.
    overlay.isOfValues = base.position == nil
    try receiveState(base.fragments, rootUUID: base.root)
  }

  /// Makes a restored change set pending again: covers the properties that it touches, and shows its changes.
  private func redo(
    _ set: ChangeSet, number: Int, basis: ScopePosition?, counters: [PropertyKey: JSONValue] = [:]
  ) {
    // Observers may write while the log is read. Their changes become a change set of their own: visible, but not
    // confirmed.
    scope.sealChanges()
    for fragment in set.fragments where fragment.kind == .change {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        overlay.add(
          set: number, key: name, assignment(of: value, to: key, by: fragment),
          base: .known(content(of: name)))
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        guard entry.operations.contains(where: { $0.model == nil }) else {
          overlay.add(
            set: number, key: name,
            .operations(entry.operations, value: nil, range: .unknown), base: base(of: name))
          continue
        }
        let (range, now) = (scope.counterRange(of: entry, in: fragment), content(of: name))
        let value = counters[name] ?? now.applying(entry.operations, within: range).json
        overlay.add(
          set: number, key: name, .operations(entry.operations, value: value, range: range),
          base: .known(now))
      }
    }
    overlay.noteAdditions(set.fragments, of: number) { knownProperty($0) }
    let entry = PendingEntry(
      number: number, PendingChangeSet(set), basis: basis, madeAt: scope.ticker.now)
    pending.insert(entry)
    for fragment in set.fragments { graveyard.update(fragment) }
    let report = scope.apply(
      set.fragments, keepingOrphans: true, alsoKnown: { [self] in graveyard.find($0) })
    for model in report.orphans { graveyard.insert(model) }
    restoreRevived()
  }

  /// Shows the result of the pending change sets for some properties. This can differ from what the change sets say:
  /// those of a snapshot were made on an earlier state, and observers may have made later ones while the log was
  /// read.
  private func showPending(_ names: Set<PropertyKey>) {
    beginBatch()
    for name in names.sorted(by: { ($0.uuid, $0.name) < ($1.uuid, $1.name) })
    where overlay.covers(name) {
      let model = knownModel(name.uuid)
      batch.appear(
        name.uuid, model?.wireClassName ?? scope.unknownModel(name.uuid)?.className ?? "")
      batch.seen[name] = content(of: name)
    }
    finishBatch()
  }

  /// Returns the current value of a property as the base of operations on a collection. Its elements are not looked at:
  /// a log may have thousands of change sets of one collection.
  private func base(of name: PropertyKey) -> PendingOverlay.Base {
    guard let model = knownModel(name.uuid), let property = model.schema[wireName: name.name],
      property.isCollection
    else { return .known(content(of: name)) }
    return .before(.list(now: model.list(of: property), steps: []))
  }

  /// Returns the current value of a property.
  private func content(of name: PropertyKey) -> PropertyContent {
    if let model = knownModel(name.uuid),
      let property = model.schema[wireName: name.name]
    {
      return PropertyContent(model.json(of: property))
    }
    return PropertyContent(scope.unknownValue(name) ?? .null)
  }
}
