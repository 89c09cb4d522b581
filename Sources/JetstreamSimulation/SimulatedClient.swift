import Foundation
import Jetstream

/// A real client engine with its scope, in one process: from its start to the next crash.
final class SimulatedClient {
  let number: Int
  /// The version of the protocol that it speaks.
  let version: Int
  /// The client id, by which the server knows it.
  private(set) var id: UUID
  let ticker = Ticker.manual()
  let app: SimulatedApp
  let scope: Scope
  /// Checks the notifications of observers; nil if the client is not watched.
  let watch: NotificationWatch?
  /// The number of its own change sets that it has to remember, to notice when others overwrite them.
  let rememberedWrites: Int
  /// True if the server may have forgotten its decisions by the time that it is asked for them.
  private let mayBeForgotten: Bool
  /// The UUID of the root before the server has given it another one.
  let ownRoot: String
  private(set) var engine: ClientEngine!
  /// The change sets that were made here and are not decided, in order.
  private(set) var sets: [SubmittedSet] = []
  /// All change sets that were pending in this process, with their handles.
  private(set) var allSets: [(set: SubmittedSet, handle: ChangeSetHandle)] = []
  /// True after an observer has made a change set while this process read its log.
  private(set) var hasWrittenInRestart = false
  /// The losses that the ledger should have: those that are neither settled nor discarded.
  var losses: [KnownLoss] = []
  /// The losses of each decided change set, as this client has learned them, including before a crash.
  private var learned: [UUID: [SubmittedSet.Loss]]
  /// The change sets that it has taken back because the server has lost its history.
  private var takenBack: Set<UUID> = []
  private(set) var hasFetched = false
  /// The sync state that the engine has reported last.
  private(set) var toldState: SyncState?
  private var now: Duration = .zero
  private(set) var fetchError: SyncError?
  var mode = SimulatedMode.realtime
  var isPermitted = true
  /// The epoch and sequence that had been applied when the app paused incoming changes.
  var pausedAt: ScopePosition?
  /// The number of syncs that were requested and have not ended.
  var openSyncs = 0
  /// Descriptions of what it did although its mode or its app forbids it.
  var modeProblems: [String] = []
  private var tokens: [ObservationToken] = []
  /// The client's disk; nil if it does not promise to be durable.
  private let outbox: SimulatedOutbox?
  private var replica: Replica?
  /// The number of change sets that it has made, including those before a crash.
  private var madeSets: Int
  /// The change sets that were made before a crash, by id.
  private let inherited: [UUID: SubmittedSet]
  /// The number of history losses that it has reported since the last comparison.
  private var noticedLosses = 0
  /// The number of times that it has reported a difference from the server.
  private(set) var differences = 0
  /// The index of the server's epoch that it knew at the last comparison, or at its start. If `isSure` is
  /// false, its disk named no epoch at its start, and it need not report a loss.
  private var known: (place: Int, isSure: Bool) = (0, false)

  /// Creates the engine, which does nothing before ``join(now:epochs:)``.
  ///
  /// - Parameters:
  ///   - predecessor: the process that this one continues, if the client has a disk.
  ///   - policy: what happens to pending change sets when the server has lost its history.
  ///   - connect: opens a connection, with the engine's number for it.
  ///   - send: sends a frame on the connection.
  ///   - disconnect: leaves the connection.
  init(
    number: Int, version: Int, handshake: Int, outbox: SimulatedOutbox?,
    predecessor: SimulatedClient?,
    app: (Ticker) -> SimulatedApp, policy: HistoryLoss, limits: SimulationConfiguration.Limits,
    isWatched: Bool, random: SimulationRandom,
    connect: @escaping (_ connection: Int, _ token: String?) -> Void,
    send: @escaping (SimulatedClient, [UInt8]) -> Void, disconnect: @escaping () -> Void
  ) {
    self.number = number
    self.version = version
    self.app = app(ticker)
    scope = self.app.scope
    rememberedWrites = limits.ownWrites
    mayBeForgotten = limits.mayForget
    watch = isWatched ? NotificationWatch(scope) : nil
    self.outbox = outbox
    ownRoot = outbox?.ownRoot ?? self.scope.root?.uuid.uuidString.lowercased() ?? ""
    madeSets = outbox?.lastNumber ?? 0
    mode = predecessor?.mode ?? .realtime
    inherited = outbox == nil ? [:] : predecessor?.setsByID ?? [:]
    learned = outbox == nil ? [:] : predecessor?.learned ?? [:]
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = policy
    configuration.highestVersion = version
    configuration.limits.acknowledgeAfter.messages = limits.acknowledgeAfter
    configuration.limits.sendWindow.messages = limits.sendWindow
    configuration.limits.decisionsPerRecord = limits.decisionsPerRecord
    configuration.limits.unknownDecisions = limits.unknownDecisions
    configuration.limits.ownWrites = limits.ownWrites
    configuration.limits.departedModels = limits.departedModels
    configuration.limits.pausedLimit.messages = limits.pausedMessages
    configuration.pingInterval = .milliseconds(Simulation.Times.ping)
    configuration.handshakeTimeout = .milliseconds(handshake)
    configuration.silenceLimit = .milliseconds(Simulation.Times.silence)
    configuration.backoff = Backoff(first: .milliseconds(200), limit: .seconds(2))
    var random = random
    id = random.uuid()
    configuration.clientID = id
    configuration.permission = { [unowned self] _ in isPermitted ? .granted : .denied }
    configuration.makeClientID = { random.uuid() }
    engine = ClientEngine(
      configuration: configuration, random: { random.unit() },
      perform: { [unowned self] action in
        switch action {
        case .connect(let number, let token): connect(number, token)
        case .send(let frame): send(self, frame)
        case .disconnect: disconnect()
        }
      },
      report: { [unowned self] event in
        switch event {
        case .stateChanged: toldState = engine.state(of: self.scope)
        case .historyLost: noticedLosses += 1
        case .differs: differences += 1
        default: break
        }
      })
    tokens.append(
      self.scope.pendingChangeSets.onAdd.listen { [unowned self] handle in
        let known = known(handle.changeSet)
        let set = known ?? made(handle.changeSet)
        set.madeAt = ticker.now
        if known == nil {
          set.basis = position
          // An observer that writes while the log is read has seen what was read until then.
          set.isMadeInRestart = replica == nil && self.outbox != nil
          if set.isMadeInRestart { hasWrittenInRestart = true }
        }
        // A property that is written again is settled.
        if known == nil { losses.settle(by: set, root: root) }
        // An observer may make one while those from before a crash are brought back.
        sets.append(set)
        sets.sort { $0.place < $1.place }
        allSets.append((set, handle))
      })
    tokens.append(
      self.scope.pendingChangeSets.onRemove.listen { [unowned self] handle in
        guard let at = allSets.lastIndex(where: { $0.handle === handle }) else { return }
        let set = allSets[at].set
        sets.removeAll { $0 === set }
        let isTakenBack =
          handle.outcome?.error?.type == "history-lost"
          || handle.outcomes.contains { $0.errorType == "history-lost" }
        if isTakenBack { noteTakenBack(set, policy) }
        learned[set.id] = isTakenBack ? set.allLosses : set.losses
        losses += (learned[set.id] ?? []).map { KnownLoss(set: set, loss: $0, ownRoot: ownRoot) }
      })
  }

  /// The UUID of the root, in lower case.
  var root: String { scope.root?.uuid.uuidString.lowercased() ?? "" }

  private func noteTakenBack(_ set: SubmittedSet, _ policy: HistoryLoss) {
    takenBack.insert(set.id)
    if policy == .discard, noticedLosses > 0 { return }
    modeProblems.append("it takes \(set) back, and should not")
  }

  private func known(_ set: ChangeSet) -> SubmittedSet? {
    replica == nil ? inherited[set.id] : nil
  }

  private func made(_ set: ChangeSet) -> SubmittedSet {
    madeSets += 1
    return SubmittedSet(
      client: number, place: madeSets - 1, id: set.id, isAtomic: set.isAtomic,
      isCall: set.arguments != nil, fragments: set.fragments)
  }

  /// All change sets that this client has made, including before a crash, by id.
  var setsByID: [UUID: SubmittedSet] {
    inherited.merging(allSets.map { ($0.set.id, $0.set) }) { $1 }
  }

  // Change sets that are abandoned with the engine are not followed any more.
  deinit { for token in tokens { token.cancel() } }

  /// Connects, and fetches the scope, beginning with the history on the client's disk if it has one.
  ///
  /// - Parameter epochs: the epochs of the server until now.
  func join(now: Duration, epochs: [String]) {
    self.now = now
    let place = outbox?.epoch.flatMap { epochs.firstIndex(of: $0) }
    known = (place ?? epochs.count - 1, place != nil)
    let done = { [weak self] (result: Result<Void, SyncError>) -> Void in
      switch result {
      case .success: self?.hasFetched = true
      case .failure(let error): self?.fetchError = error
      }
    }
    if let outbox {
      do {
        let history = outbox.history()
        outbox.setTime(now)
        let keeper = outbox.begin(ticker: ticker) { [weak self] in self?.replica }
        replica = try engine.fetch(
          scope, params: .object([:]), mode: mode.mode, history: history, now: now,
          store: { keeper.keep($0) }, completion: done)
        keeper.begin()
        losses = outbox.losses(root: root) { name in
          setsByID[name].map { ($0, learned[name] ?? []) }
        }
      } catch {
        preconditionFailure("What was on a client's disk does not fit its scope: \(error)")
      }
      id = replica?.request.clientID ?? id
      engine.connect(params: .object([:]), now: now)
    } else {
      engine.connect(params: .object([:]), now: now)
      engine.fetch(scope, params: .object([:]), mode: mode.mode, now: now, completion: done)
    }
  }

  func opened(_ connection: Int, now: Duration) { engine.opened(connection, now: now) }

  func received(_ connection: Int, _ frame: [UInt8], now: Duration) {
    let read = MessageFrame(frame, limits: .trusted)
    takeIn {
      engine.received(
        connection, read.messages, channel: read.channel, size: frame.count, now: now)
    }
  }

  /// Has the engine do something that may apply messages of the server.
  func takeIn(_ body: () -> Void) {
    if let watch { watch.takeIn(body) } else { body() }
  }

  func closed(_ connection: Int, code: Int, reason: String, now: Duration) {
    engine.closed(connection, code: code, reason: reason, now: now)
  }

  func advance(by duration: Duration, to now: Duration) {
    self.now = now
    outbox?.settle(now: now)
    ticker.advance(by: duration)
    engine.advance(to: now)
  }

  /// The time at which the engine or the disk has something to do next; nil if neither has.
  var nextDeadline: Duration? {
    [engine.nextDeadline, outbox?.deadline].lazy.compactMap { $0 }.min()
  }

  /// The epoch and sequence up to which it has applied the server's changes; nil if it has no state.
  var position: ScopePosition? { engine.positions.first }

  /// The token of the session that its frames belong to; nil if it has none.
  var session: String? { engine.session.token }

  /// Returns the index up to which the client has received the server's messages in a channel of its session.
  func highestReceived(in channel: Int) -> Int { engine.highestReceived(in: channel) }

  /// The number of its change sets that it knows no decision of.
  var undecidedCount: Int { engine.pendingCount }

  /// True if it waits for nothing.
  var isAtRest: Bool { restlessness == nil }

  /// A description of what it waits for; nil if it waits for nothing.
  var restlessness: String? {
    if undecidedCount > 0 { return "has \(undecidedCount) undecided change sets" }
    if openSyncs > 0 { return "waits for \(openSyncs) exchanges" }
    if engine.status != .online { return "is \(engine.status)" }
    if case .refused(let reason)? = engine.state(of: scope)?.stall {
      return "is refused: \(reason)"
    }
    if !hasFetched { return "has not got the scope" }
    // The server sends more when it knows that there is room.
    return engine.state(of: scope)?.isUpToDate == true
      ? nil : "has not taken in all that it has missed"
  }

  func checkInvariants() -> [String] { engine.checkInvariants() }

  /// Returns where it has not noticed that the server has an epoch other than the one that it knew, or has
  /// reported losses that did not happen. Called when it is in step with the server.
  ///
  /// - Parameters:
  ///   - epochs: the epochs of the server, the present one last.
  ///   - mayBeForgotten: whether the server may have forgotten the client, which counts as a loss.
  func wrongHistory(_ epochs: [String], mayBeForgotten: Bool) -> [String] {
    defer { (known, noticedLosses) = ((epochs.count - 1, true), 0) }
    // Version 1 knows no histories.
    if version == 1 { return [] }
    var found: [String] = []
    let lost = epochs.count - 1 - known.place
    if known.isSure, lost > 0, noticedLosses == 0 {
      found.append("Client \(number) has not noticed that the server has lost its history")
    }
    if noticedLosses > lost, !mayBeForgotten {
      found.append("Client \(number) has found \(noticedLosses) histories lost, but \(lost) were")
    }
    if let outbox, outbox.epoch != epochs.last {
      found.append(
        "Client \(number) has written that it is of \(outbox.epoch ?? "no history"), "
          + "which is now \(epochs.last ?? "")")
    }
    return found
  }

  /// Returns where the outcome in a handle is not the one that the server has sent.
  func wrongHandles() -> [String] {
    allSets.compactMap { set, handle in
      guard handle.state.isFinal else { return "\(set) is not decided" }
      if takenBack.contains(set.id) { return nil }
      let isUnanswered = handle.outcomes.allSatisfy { $0.errorType == "not-answered" }
      if set.isDropped, isUnanswered { return nil }
      if set.isCall, mayBeForgotten, handle.outcome?.error == .outcomeForgotten { return nil }
      guard let verdicts = set.verdicts else {
        return "\(set) is \(handle.state), but was never sent"
      }
      // A server that has forgotten the client knows only that nothing of the change set was applied.
      let isForgotten = handle.outcome.map {
        $0.error == .reasonForgotten && set.outcome?.error != nil
      }
      if set.isCall, handle.outcome != set.outcome, !mayBeForgotten || isForgotten == false {
        let told = handle.outcome?.json.text ?? "nothing"
        return
          "\(set) has come to \(told), but the server has said \(set.outcome?.json.text ?? "nothing")"
      }
      let rejected = handle.outcomes.map { outcome in
        if case .rejected = outcome { true } else { false }
      }
      return rejected == verdicts.map { !$0 }
        ? nil : "\(set) is \(handle.state), but the server has accepted \(verdicts)"
    }
  }
}
