import Foundation

/// Keeps one scope in step with the server's: holds the change sets that are not confirmed yet and the confirmed
/// values beneath them, and combines both into what the app sees.
///
/// The order of the server's messages is the order in which changes count. Remote changes and the replies to the
/// replica's own change sets arrive in this order; an accepted change set counts at the place of its reply. So all
/// replicas that have received the same messages and have nothing pending are equal, whatever they showed meanwhile.
///
/// A pending change set first waits, and is then sent. The server may decide it before the replica has reached its
/// sequence, because earlier change sets of other clients are held back or have not arrived; then `decision` is set.
/// It is removed when the replica reaches its sequence or learns of its rejection (`conclude`). When the session is
/// lost, `sessionEnded()` returns all sets to waiting.
///
/// The messages of one frame are collected in a batch, and written into the scope at its end. `beginBatch()` first
/// seals all local changes, so that the overlay covers them. If a local change set is sealed while messages are in
/// the batch already, it comes after them: `cover(_:of:)` moves what the batch holds for its properties beneath
/// it. A full state takes the place of what the batch holds, and the messages behind it change it there: until the end
/// of the frame, the scope shows nothing of it.
///
/// Does no I/O: ``ClientEngine`` passes messages to it and sends what it returns.
package final class Replica {
  let scope: Scope
  /// The request with which the server is asked for the scope.
  package internal(set) var request: ScopeRequest
  /// The state that lasts as long as the session.
  var session = ReplicaSession()
  /// The progress in the server's order.
  var progress = ReplicaProgress()
  /// The times at which the scope is synced.
  var schedule: SyncSchedule
  /// The last sync state that was reported.
  var reportedState: SyncState?
  /// The protocol as the session's server speaks it.
  var dialect: ReplicaDialect {
    didSet { overlay.isOfValues = dialect.isOfValues }
  }
  var pending = PendingQueue()
  var overlay = PendingOverlay()
  var graveyard: Graveyard
  var batch = ReplicaBatch()
  /// The changes that were lost or may be, on their way to the ledger.
  var losses: LostChanges
  /// The observation of the scope.
  var observation = ScopeObservation()
  /// The records on their way to the log.
  var journal = ReplicaJournal()
  /// The client to which the replica belongs.
  weak var delegate: (any ReplicaDelegate)?

  /// True if the scope stays synced when the server refuses it for now: because the app has shown the server's
  /// state, or because changes are in a log.
  var mayReturn: Bool { progress.hasBase || journal.isKept }

  /// True if the scope has never had a state or a change set.
  var isUntouched: Bool { !progress.hasBase && pending.lastNumber == 0 }

  /// A message of the server for this scope.
  enum Incoming {
    case sync(
      [SyncFragment], sequence: Int? = nil, number: Int? = nil, origin: ChangeOrigin = .init())
    case reply(
      messageIndex: Int, [FragmentReply], sequence: Int? = nil, effective: [SyncFragment]? = nil,
      outcome: CallOutcome? = nil)
    case repair([SyncFragment], sequence: Int)
    case standing(ScopeStanding, ScopeFetch.Tell, since: Int)
    case state(
      [SyncFragment], rootUUID: UUID, more: Bool, then: (Result<Void, ScopeError>) -> Void)
  }

  init(
    scope: Scope, params: JSONValue, clientID: UUID, ownWrites limit: Int,
    departedModels: Int = 1024, mode: SyncMode = .realtime,
    _ dialect: ReplicaDialect = ReplicaDialect(version: 1, .init())
  ) {
    self.scope = scope
    request = ScopeRequest(clientID: clientID, params: params)
    schedule = SyncSchedule(mode)
    self.dialect = dialect
    overlay.isOfValues = dialect.isOfValues
    losses = LostChanges(ownWrites: limit)
    graveyard = Graveyard(limit: departedModels)
    observation.begin(for: self)
  }

  /// Stops following the scope, for the given reason. Pending change sets stay visible and are not sent any more.
  func end(_ reason: String) {
    // Applies what the server has decided already.
    finishBatch()
    leaveCounters()
    observation.end(for: self)
    session.held = HeldMessages()
    abandon(reason)
  }

  deinit {
    if observation.isActive { leaveCounters() }
    abandon("its client is gone")
  }

  /// Notes the counters beneath the pending change sets, for when the log is used again in this process: without a state,
  /// these are made again on what the scope shows.
  private func leaveCounters() {
    guard journal.isKept, !progress.hasBase, pending.count > 0 else { return }
    scope.countersBeneathPending = [:]
    for name in Array(overlay.keys) where knownProperty(name)?.options.isCounter == true {
      scope.countersBeneathPending[name] = overlay.confirmed(name)
    }
  }

  private func abandon(_ reason: String) {
    let undecided = pending.map(\.shared)
    pending.removeAll()
    for set in undecided {
      set.claims -= 1
      // Another client may still decide it.
      if set.claims > 0 { continue }
      scope.pendingChangeSets.finish(set) { $0.finish(.abandoned, .abandoned(reason: reason)) }
    }
  }

  // MARK: Local changes

  func localChange(_ sealed: SealedChanges) {
    journal.beginStep()
    let number = pending.takeNumber()
    var set = graveyard.notingKnownValues(in: sealed.set, of: scope)
    if set.date == nil, let now = delegate?.date { set.date = now }
    if set.isInitialContent { set = set.notingDefaults(in: scope) }
    var old = set.oldValues
    for fragment in set.fragments where fragment.kind == .change {
      var covered: [(key: String, value: () -> PropertyContent)] = []
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        let change = assignment(of: value, to: key, by: fragment)
        let before = old.next(key, of: fragment)
        let isNew = !batch.isEmpty && !overlay.covers(name)
        overlay.add(set: number, key: name, change, base: .known(PropertyContent(before)))
        if isNew { covered.append((key, { PropertyContent(value) })) }
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        guard let outcome = sealed.outcomes[name] else { continue }
        let range = scope.counterRange(of: entry, in: fragment)
        let isNew = !batch.isEmpty && !overlay.covers(name)
        overlay.add(
          set: number, key: name,
          .operations(entry.operations, value: outcome.number, range: range),
          base: .before(outcome))
        if isNew { covered.append((entry.key, { PropertyContent(outcome.now) })) }
      }
      cover(covered, of: fragment.uuid)
    }
    overlay.noteAdditions(set.fragments, of: number) { knownProperty($0) }
    if !batch.isEmpty {
      for fragment in set.fragments where fragment.kind == .add { cover(addition: fragment.uuid) }
    }
    scope.conflicts.settle(by: set)
    losses.settle(by: set)
    let shared = sealed.claim()
    shared.madeHandle?.changeSet = set
    var entry = PendingEntry(
      number: number, shared, basis: progress.basis,
      record: journal.next, madeAt: scope.ticker.now)
    entry.set = set
    entry.isUnknownToServer = true
    // The change set is pending before its record is handed over, so that a snapshot made meanwhile does not include
    // it in the confirmed state.
    pending.append(entry)
    keep(.made(number: number, set), isNew: true)
    journal.endStep()
    scope.pendingChangeSets.add(shared)
    delegate?.sendWaiting()
  }

  /// Returns the change that an assignment makes to a property: a merge, if the property has a merge rule.
  func assignment(
    of value: JSONValue, to key: String, by fragment: SyncFragment
  ) -> PendingChange {
    // Mostly there is no merge rule, and nothing is looked up.
    if !fragment.bases.isEmpty, let base = fragment.bases[key],
      let property = scope.schema(of: fragment)?[wireName: key], property.options.mergeRule != nil
    {
      return .merge(PropertyContent(value), base: PropertyContent(base), property)
    }
    return .assign(PropertyContent(value))
  }

  /// Sends the waiting change sets through `send`, which returns the message's index. Stops when `hasRoom` returns
  /// false for the number of those that are on their way, and of those whose decisions the server has to keep. `seen` is
  /// the index up to which the server's messages have been applied.
  ///
  /// - Returns: the size of the next change set, if it takes more than `limit` bytes and therefore was not sent.
  func sendWaiting(
    seen: Int, limit: Int, while hasRoom: (_ open: Int, _ unknown: Int) -> Bool,
    _ send: (PendingEntry, [SyncFragment]) -> Int
  ) -> UnsendableSet? {
    guard session.hasState else { return nil }
    // A frame that cannot be sent is reported, and a listener may do anything then. Changes that it makes are sent from
    // here, too. If it closes the client or leaves the scope, nothing is pending any more. So `send` may change the queue:
    // a change set is found again by its number.
    while session.hasState, pending.unsentCount > 0 {
      let at = pending.sentCount
      // Decisions that are held are not acknowledged, and count like those that have not come.
      let known = session.held.isEmpty ? pending.decidedCount : pending.keptCount
      let unknown = dialect.isOfValues ? 0 : pending[at].number - 1 - decided
      guard hasRoom(pending.sentCount - known, unknown) else { return nil }
      // Never send a change set before its record is durable.
      guard journal.hasStored(pending[at].record) else { return nil }
      if let unsendable = unsendable(pending[at], limit: limit) { return unsendable }
      pending.noteSent(upTo: at)
      pending[at].isUnknownToServer = false
      let number = pending[at].number
      if !dialect.isOfValues {
        let index = send(pending[at], pending[at].set.fragments)
        pending.noteMessage(index, of: number)
        continue
      }
      let fragments = pending[at].set.fragments.map { fragment in
        guard fragment.kind == .change else { return fragment }
        var fragment = fragment
        for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          if let value = overlay.submit(set: number, key: name) { fragment.properties[key] = value }
        }
        fragment.operations = [:]
        return fragment
      }
      pending[at].seen = seen
      sendParts(at, fragments, send)
    }
    return nil
  }

  /// The number of change sets that are on their way: sent in this session, without a decision.
  var sentCount: Int { pending.sentCount - pending.decidedCount }

  /// Returns the index up to which the server's messages had been applied when the message with a pending change set
  /// was sent; nil for any other message.
  func seen(whenSending messageIndex: Int) -> Int? {
    pending.place(sentIn: messageIndex).map { pending[$0].seen }
  }

  /// The index of the first message that is held until the scope resumes.
  var firstHeldIndex: Int? { session.held.firstIndex }

  /// Handles the loss of the session: all pending change sets have to be sent again in the next one, but for those whose
  /// decisions are kept.
  func sessionEnded() {
    recordDecisions()
    session = ReplicaSession()
    schedule.askAgain()
    pending.returnToWaiting()
  }

  /// The number up to which the replica durably knows the outcomes of its change sets.
  var decided: Int {
    journal.durablyDecided(upTo: pending.knownNumber)
  }
}
