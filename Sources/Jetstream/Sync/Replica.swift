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
    /// What the app sees of it.
    var handle: ChangeSetHandle?
    /// The index of the message that carried it in this session; nil while it waits to be sent.
    var messageIndex: Int?
    /// Up to which of the server's messages we knew everything when it was sent.
    var seen = 0
    /// Which part of the server's order was taken in when it was made.
    var basis: ScopePosition?
    /// It may be sent when as many records are stored as this.
    var record = 0
    /// When it was made, or restored.
    var madeAt: Duration
    /// What the server has said of it, while the place of the set in the order has not come yet.
    var decision: [FragmentReply]?

    /// What the server has said when the set comes in the order. One that has forgotten it says nothing, but
    /// that it comes means that it was accepted.
    var repliesAtPlace: [FragmentReply] {
      guard let decision, !decision.isEmpty else {
        return set.fragments.map { _ in FragmentReply() }
      }
      return decision
    }
  }

  let scope: Scope
  let params: JSONValue
  /// The name under which the sets are numbered.
  package internal(set) var clientID: UUID
  /// The scope's number in the session, once the server has given one.
  var scopeIndex: Int?
  /// Whether a state has arrived in this session. What arrives before it is contained in it.
  var hasState = false
  /// Which part of the server's order is taken in; nil for one that does not tell.
  var position: ScopePosition?
  /// When what happens is sent and taken in.
  var mode = SyncMode.realtime
  /// The server's refusal of the scope, while it has said "not now" to the last fetch.
  var refusal: ClientEngine.Refusal?
  /// True from when other credentials were asked for because the server has refused the scope, until it grants it.
  var hasAskedForCredentials = false
  /// What the server was asked for last in this session.
  var asked: ScopeFetch.Tell?
  /// Whether the server tells everything behind ``position``. What it tells otherwise is left out: it is asked
  /// for again.
  var isTaking = false
  /// Whether something may have been left out, and was not asked for again.
  var hasMissed = false
  /// Whether the server has turned out not to be where it was, so that nothing is safe before its state has come.
  var needsState = false
  /// Whether it was found to be of another past, and its state has not been taken in since.
  var isElsewhere = false
  /// The exchange that was asked for and is not over.
  var round: SyncRound?
  /// When the next one is due.
  var pollDue: Duration?
  /// Which place the server had when it was asked for what we missed.
  var target = 0
  /// What was told of the state last.
  var reportedState: SyncState?
  /// Why the records cannot be kept.
  package var storageProblem: String?
  /// What the server has said of the state that it is about to send.
  var stateStanding: ScopeStanding?
  /// The parts of a state that have come, while there are more.
  var stateParts: [SyncFragment] = []
  /// Whether a state is on its way, or was taken in in part.
  var isTakingState: Bool { stateStanding != nil || !stateParts.isEmpty }
  /// The version of the protocol that the session speaks. In the second one, sets are sent as they were
  /// made.
  var version = 1 {
    didSet { overlay.isOfValues = version == 1 }
  }
  /// The form in which dates are sent in the session.
  var dateForm = DateForm.seconds
  /// What becomes of pending sets when the server has lost the history that they belong to.
  var historyLoss: () -> HistoryLoss = { .recover }
  var pending = PendingQueue()
  /// How many of them, the first ones, were sent in this session or are decided.
  var sentCount = 0
  /// How many of these the server has decided, whose place in the order has not come.
  var decidedCount = 0
  /// Whether a server of version 1 answers the sets in their order.
  var answersAreOrdered = true
  /// The procedures that a server of version 1 was sent sets for.
  var procedures = OldProcedures()
  /// The sets that such a server is sent in several messages, by number, and those messages that it has not answered.
  var splits: [Int: SplitSet] = [:]
  var partMessages: [Int: (number: Int, part: Int)] = [:]
  /// How many fragments such a server is sent in one message, unless they have to stay together.
  var fragmentLimit = 100
  var overlay = PendingOverlay()
  /// What pending sets add, by UUID.
  var additions: [UUID: Addition] = [:]
  var nextNumber = 1
  var graveyard = Graveyard()
  /// The values that other replicas have of models that the app has put back, until a change set adds them.
  var putBack: [UUID: JSONObject] = [:]
  /// Models that left the graveyard because of what others did, with the values that count.
  var revived: [UUID: JSONObject] = [:]
  var batch = Batch()
  /// Changes that do not count, of which the ledger will know when what counts is visible.
  var unnoted: [[Lost]] = []
  /// What counts of our own sets, as long as others may not have seen it.
  var ownWrites: OwnWrites
  var token: ObservationToken?
  private var discardToken: ObservationToken?
  /// Keeps what it is given, and says so through ``stored(_:)``; without it nothing is kept.
  var store: ((ReplicaRecord) -> Void)?
  var isRestoring = false
  /// How many steps are under way whose record was handed over before the state has become what it says.
  var openSteps = 0
  /// Whether a set is taken back here that could not be sent.
  var isRejecting = false
  /// Whether a state was ever taken in.
  var hasBase = false
  /// Whether the app goes on with the scope when the server refuses it for now: it has shown the server's state, or
  /// what is changed is in a log.
  var mayReturn: Bool { hasBase || store != nil }
  /// Whether there was never anything of the scope: no state, and no change set.
  var isUntouched: Bool { !hasBase && nextNumber == 1 }
  /// How many records were made, and how many of them are kept.
  var madeRecords = 0
  var storedRecords = 0
  /// Up to which number what became of our sets is kept; and what is not kept yet, with its record.
  var safelyDecided = 0
  var unsafeDecisions: [(record: Int, decided: Int)] = []
  /// What has come while the scope is paused.
  var held: [(index: Int, message: Incoming)] = []
  /// About how many bytes it takes, and how much of it is kept.
  var heldBytes = 0
  var heldLimit = ReliableChannel.Limit(messages: 1000, bytes: 8 << 20)
  /// True from when too much has come while the scope is paused until it goes on: others' changes are dropped,
  /// and asked for again then.
  var dropsHeld = false
  /// What the scope comes to, once the server has said what it should.
  var digest: ScopeDigest?
  /// How often the server has sent what was wrong without that all was right then.
  var vainRepairs = 0
  /// Tells what time it is, for change sets that have no date.
  var date: () -> Date? = { nil }
  /// Called when a local change set waits to be sent, when held decisions were taken in, and when the
  /// state of the replica may be another one.
  var onPending: (() -> Void)?
  /// Called with each fragment that the server has rejected for itself.
  var onRejected: ((Rejected) -> Void)?
  /// Called when the server turns out to have another history than the one that we know.
  var onHistoryLost: (() -> Void)?
  /// Called with the models that were not what the server has, once they are.
  var onRepaired: (([UUID]) -> Void)?

  /// A message of the server for this scope.
  enum Incoming {
    case sync(
      [SyncFragment], sequence: Int? = nil, number: Int? = nil, origin: ChangeOrigin = .init())
    case reply(
      messageIndex: Int, [FragmentReply], sequence: Int? = nil, effective: [SyncFragment]? = nil)
    case repair([SyncFragment], sequence: Int)
    case standing(ScopeStanding, ScopeFetch.Tell)
    case state(
      [SyncFragment], rootUUID: UUID, more: Bool, then: (Result<Void, ScopeError>) -> Void)
  }

  init(scope: Scope, params: JSONValue, clientID: UUID, ownWrites limit: Int) {
    self.scope = scope
    self.params = params
    self.clientID = clientID
    ownWrites = OwnWrites(limit: limit)
    scope.sealChanges()
    token = scope.onSealedChanges.listen { [weak self] in self?.localChange($0) }
    discardToken = scope.conflicts.onDiscard.listen { [weak self] conflicts in
      self?.keep(.discarded(conflicts.map(ConflictName.init)), isNew: true)
    }
    scope.addMembershipObserver(self)
    scope.onIncomingResumed = { [weak self] in self?.resume() }
    scope.onIncomingPaused = { [weak self] in self?.onPending?() }
  }

  /// Stops following the scope, for the given reason. What is pending stays visible and is not sent any
  /// more.
  func end(_ reason: String) {
    // What the server has decided already counts.
    finishBatch()
    token?.cancel()
    token = nil
    discardToken?.cancel()
    scope.removeMembershipObserver(self)
    digest = nil
    scope.onIncomingResumed = nil
    scope.onIncomingPaused = nil
    abandon(reason)
  }

  deinit { abandon("its client is gone") }

  private func abandon(_ reason: String) {
    let undecided = pending.compactMap(\.handle)
    pending.removeAll()
    sentCount = 0
    decidedCount = 0
    for handle in undecided {
      handle.claims -= 1
      // Another client may still decide it.
      if handle.claims > 0 { continue }
      scope.pendingChangeSets.finish(handle) { $0.finish(.abandoned, .abandoned(reason: reason)) }
    }
  }

  // MARK: Local changes

  func localChange(_ sealed: SealedChanges) {
    openSteps += 1
    let number = nextNumber
    nextNumber += 1
    var set = notingKnownValues(in: sealed.set)
    if set.date == nil, let now = date() { set.date = now }
    let bases = set.bases
    for fragment in set.fragments where fragment.kind == .change {
      let before = bases[fragment.uuid] ?? [:]
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        let change = assignment(of: value, to: key, by: fragment)
        overlay.add(
          set: number, key: name, change, base: .known(PropertyContent(before[key] ?? .null)))
        if !batch.isEmpty { cover(name, showing: PropertyContent(value)) }
      }
      for entry in fragment.operations {
        let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
        guard let outcome = sealed.outcomes[name] else { continue }
        let range = scope.counterRange(of: entry, in: fragment)
        overlay.add(
          set: number, key: name,
          .operations(entry.operations, value: outcome.number, range: range),
          base: .before(outcome))
        if !batch.isEmpty { cover(name, showing: PropertyContent(outcome.now)) }
      }
    }
    noteAdditions(set.fragments, of: number)
    scope.conflicts.settle(by: set)
    settleLost(by: set)
    let handle = scope.claimDelivered()
    handle?.set = set
    // Pending before it is handed over: whoever takes a snapshot then must not take the set for confirmed.
    pending.append(
      Pending(
        number: number, set: set, handle: handle, messageIndex: nil, basis: basis,
        record: store == nil ? 0 : madeRecords + 1, madeAt: scope.ticker.now))
    keep(.made(number: number, set), isNew: true)
    openSteps -= 1
    if let handle { scope.pendingChangeSets.add(handle) }
    onPending?()
  }

  /// What a change of ours makes of a property.
  func assignment(
    of value: JSONValue, to key: String, by fragment: SyncFragment
  ) -> PendingChange {
    // Mostly there is no rule, and nothing is looked for.
    if !fragment.bases.isEmpty, let base = fragment.bases[key],
      let property = scope.schema(of: fragment)?[wireName: key], property.options.mergeRule != nil
    {
      return .merge(PropertyContent(value), base: PropertyContent(base), property)
    }
    return .assign(PropertyContent(value))
  }

  /// Sends the sets that wait through `send`, which gives the message's index, while `hasRoom` says of the
  /// number of those that are on their way that there may be more. `seen` is the number up to which the
  /// server's messages have been taken in.
  ///
  /// - Returns: how large the set is in front of which it has stopped, because it takes more than `limit` bytes.
  func sendWaiting(
    seen: Int, limit: Int, while hasRoom: (Int) -> Bool, _ send: (Pending, [SyncFragment]) -> Int
  ) -> Oversize? {
    guard hasState else { return nil }
    for at in sentCount..<pending.count {
      // What waits to be taken in is not acknowledged.
      guard hasRoom(held.isEmpty ? sentCount - decidedCount : sentCount) else { return nil }
      // What might be forgotten here must not be known elsewhere.
      guard pending[at].record <= storedRecords else { return nil }
      if let oversize = Oversize(of: pending[at].set, limit: limit) { return oversize }
      sentCount = at + 1
      let number = pending[at].number
      if version > 1 {
        pending[at].messageIndex = send(pending[at], pending[at].set.fragments)
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

  /// What we had seen when we sent a set that is not decided; nil for any other message.
  func seen(whenSending messageIndex: Int) -> Int? {
    pending.place(sentIn: messageIndex, among: sentCount).map { pending[$0].seen }
  }

  /// The first of the server's messages that has come, but waits for the scope to be resumed.
  var firstHeldIndex: Int? { held.first?.index }

  /// The session is gone: what it carried has to be sent again in the next one.
  func sessionEnded() {
    scopeIndex = nil
    hasState = false
    forgetHeld()
    stateStanding = nil
    stateParts = []
    asked = nil
    isTaking = false
    hasMissed = false
    needsState = false
    vainRepairs = 0
    procedures = OldProcedures()
    partMessages = [:]
    splits = splits.filter { !$0.value.decided.isEmpty }
    for number in splits.keys { splits[number]!.sessionEnded() }
    round?.isAsked = false
    sentCount = 0
    decidedCount = 0
    for at in pending.indices {
      pending[at].messageIndex = nil
      pending[at].decision = nil
    }
  }

  /// Up to which number we know what became of our sets, and will not forget it.
  var decided: Int {
    store == nil ? (pending.first?.number ?? nextNumber) - 1 : safelyDecided
  }
}

extension Replica: MembershipObserver {
  /// A model has come back. If other replicas have brought it back, it takes their values; if the app has, their
  /// values are what it departs from. No change set adds a model that was away for less
  /// than an interval.
  package func modelEntered(_ model: ModelObject) {
    let values = graveyard.remove(model.uuid)
    // One that is back because a call of `modify` has thrown is as it was.
    guard let values, !scope.isRollingBack else { return }
    if scope.isWritingRemotely {
      revived[model.uuid] = values
    } else if let record = model.record, record.isNew || record.captureScope !== scope {
      putBack[model.uuid] = values
    }
  }

  /// A set that is pending, or about to be made, may put the model back when it is rejected. A model that has come
  /// back only for a moment leaves with the values that it had when it came: those are what other replicas have. The
  /// same goes for a model that only local properties have held until now, and that was changed meanwhile.
  package func modelLeft(_ model: ModelObject) {
    let known =
      putBack.removeValue(forKey: model.uuid) ?? revived.removeValue(forKey: model.uuid)
      ?? graveyard.values(of: model.uuid)
    graveyard.insert(model, values: known)
  }

  /// What a local property still holds counts as gone, and as back, like what is in no tree.
  package func modelWithdrawn(_ model: ModelObject) { modelLeft(model) }

  package func modelShared(_ model: ModelObject) { modelEntered(model) }
}
