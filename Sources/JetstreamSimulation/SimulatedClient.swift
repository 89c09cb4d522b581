import Foundation
import Jetstream

/// A real client engine with its scope, between one crash and the next.
final class SimulatedClient {
  let number: Int
  /// The version of the protocol that it speaks.
  let version: Int
  /// What it calls itself towards the server.
  private(set) var id: UUID
  let ticker = Ticker.manual()
  let app: SimulatedApp
  let scope: Scope
  /// Compares what observers are told with what they show, if it is watched.
  let watch: NotificationWatch?
  /// How many of its own change sets it has to remember, to notice that they were overwritten.
  let rememberedWrites: Int
  /// The root's name before the server has given it its own.
  let ownRoot: String
  private(set) var engine: ClientEngine!
  /// What was made here and is not decided, in order.
  private(set) var sets: [SubmittedSet] = []
  /// Every set that was made here.
  private(set) var allSets: [(set: SubmittedSet, handle: ChangeSetHandle)] = []
  /// True after an observer has made a set while this process read its log.
  private(set) var hasWrittenInRestart = false
  /// What does not count, and was neither settled nor discarded.
  var losses: [KnownLoss] = []
  /// What does not count of each set, as this client has learned, also before a crash.
  private var learned: [UUID: [SubmittedSet.Loss]]
  /// Sets that it has taken back because the server has lost its history.
  private var takenBack: Set<UUID> = []
  private(set) var hasFetched = false
  /// What the engine has told of its state last.
  private(set) var toldState: SyncState?
  private var now: Duration = .zero
  private(set) var fetchError: SyncError?
  var mode = SimulatedMode.realtime
  var isPermitted = true
  /// The part of the server's order that was taken in when the app paused what the server sends.
  var pausedAt: ScopePosition?
  /// How many exchanges were asked for and are not over.
  var openSyncs = 0
  /// What the mode, or the app, does not let it do.
  var modeProblems: [String] = []
  private var tokens: [ObservationToken] = []
  /// Its disk, if it promises to be durable.
  private let outbox: SimulatedOutbox?
  private var replica: Replica?
  /// How many sets it has made, with those before a crash.
  private var madeSets: Int
  /// Sets that were made before a crash, by their ids.
  private let inherited: [UUID: SubmittedSet]
  /// How often it has found the server's history lost since the last comparison.
  private var noticedLosses = 0
  /// How often it was found not to be what the server has.
  private(set) var differences = 0
  /// The place among the server's histories of the one that it knew then, or may have come to know since.
  private var known: (place: Int, isSure: Bool) = (0, false)

  /// - Parameters:
  ///   - predecessor: the client that this one goes on from, if it has a disk.
  ///   - policy: what becomes of what is pending when the server has lost its history.
  ///   - connect: a connection is wanted, with this number of the engine's.
  ///   - send: a frame for the connection.
  ///   - disconnect: the connection is left.
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
    configuration.acknowledgeAfter.messages = limits.acknowledgeAfter
    configuration.sendWindow.messages = limits.sendWindow
    configuration.ownWrites = limits.ownWrites
    configuration.pausedLimit.messages = limits.pausedMessages
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
        let known = known(handle.set)
        let set = known ?? made(handle.set)
        set.madeAt = ticker.now
        if known == nil {
          set.basis = position
          // An observer that writes while the log is read has seen what was read until then.
          set.isMadeInRestart = replica == nil && self.outbox != nil
          if set.isMadeInRestart { hasWrittenInRestart = true }
        }
        // What is written anew is settled.
        if known == nil { losses.settle(by: set, root: root) }
        // An observer may make one while those of before a crash come back.
        sets.append(set)
        sets.sort { $0.place < $1.place }
        allSets.append((set, handle))
      })
    tokens.append(
      self.scope.pendingChangeSets.onRemove.listen { [unowned self] handle in
        guard let at = allSets.lastIndex(where: { $0.handle === handle }) else { return }
        let set = allSets[at].set
        sets.removeAll { $0 === set }
        let isTakenBack = handle.outcomes.contains { $0.errorType == "history-lost" }
        if isTakenBack { noteTakenBack(set, policy) }
        learned[set.id] = isTakenBack ? set.allLosses : set.losses
        losses += (learned[set.id] ?? []).map { KnownLoss(set: set, loss: $0, ownRoot: ownRoot) }
      })
  }

  /// What the root is called.
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
      fragments: set.fragments)
  }

  /// Every set that was made here, also before a crash.
  var setsByID: [UUID: SubmittedSet] {
    inherited.merging(allSets.map { ($0.set.id, $0.set) }) { $1 }
  }

  // What is abandoned with the engine is nobody's business any more.
  deinit { for token in tokens { token.cancel() } }

  /// - Parameter epochs: what the server's histories until now were called.
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
      id = replica?.clientID ?? id
      engine.connect(params: .object([:]), now: now)
    } else {
      engine.connect(params: .object([:]), now: now)
      engine.fetch(scope, params: .object([:]), mode: mode.mode, now: now, completion: done)
    }
  }

  func opened(_ connection: Int, now: Duration) { engine.opened(connection, now: now) }

  func received(_ connection: Int, _ frame: [UInt8], now: Duration) {
    takeIn { engine.received(connection, Message.frame(frame), size: frame.count, now: now) }
  }

  /// Has the engine do something that the server's messages may bring.
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

  /// When the engine, or the disk, has something to do next.
  var nextDeadline: Duration? {
    [engine.nextDeadline, outbox?.deadline].lazy.compactMap { $0 }.min()
  }

  /// Which part of the server's order is taken in.
  var position: ScopePosition? { engine.positions.first }

  /// The session that frames belong to.
  var session: String? { engine.token }

  /// Whether nothing is waited for.
  var isAtRest: Bool { restlessness == nil }

  /// What is waited for, in words.
  var restlessness: String? {
    if engine.pendingCount > 0 { return "has \(engine.pendingCount) undecided change sets" }
    if openSyncs > 0 { return "waits for \(openSyncs) exchanges" }
    if engine.status != .online { return "is \(engine.status)" }
    if case .refused(let reason)? = engine.state(of: scope)?.stall {
      return "is refused: \(reason)"
    }
    if !hasFetched { return "has not got the scope" }
    // The server goes on telling when it knows that there is room.
    return engine.state(of: scope)?.isUpToDate == true
      ? nil : "has not taken in all that it has missed"
  }

  var brokenInvariants: [String] { engine.brokenInvariants() }

  /// Where it has not noticed that the server has another history than the one that it knew, or has seen
  /// losses where there were none; at a time when it is in step with the server.
  ///
  /// - Parameters:
  ///   - epochs: what the server's histories were called, the present one last.
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

  /// Where what became of a set is not what the server has said.
  func wrongHandles() -> [String] {
    allSets.compactMap { set, handle in
      guard handle.state.isFinal else { return "\(set) is not decided" }
      if takenBack.contains(set.id) { return nil }
      let isUnanswered = handle.outcomes.allSatisfy { $0.errorType == "not-answered" }
      if set.isDropped, isUnanswered { return nil }
      guard let verdicts = set.verdicts else {
        return "\(set) is \(handle.state), but was never sent"
      }
      let rejected = handle.outcomes.map { outcome in
        if case .rejected = outcome { true } else { false }
      }
      return rejected == verdicts.map { !$0 }
        ? nil : "\(set) is \(handle.state), but the server has accepted \(verdicts)"
    }
  }
}
