import Foundation
import Jetstream
import JetstreamServer

/// A real server engine with its scope, in one process: from its start to the next crash.
///
/// Only this class and ``SimulatedClient`` use the engines.
final class SimulatedServer {
  let ticker = Ticker.manual()
  private(set) var app: SimulatedApp
  private(set) var scope: Scope
  /// The engine that has the scope.
  private(set) var engine: ServerEngine!
  /// The engine that creates the sessions, if that is another one; then the scope is in channel 1.
  private var front: ServerEngine?
  private var tokens: [ObservationToken] = []
  private let rules: ScopeRules?
  /// The changes that clients have made although the rules deny them, in words.
  private(set) var violations: [String] = []
  private let journal: SimulatedJournal?
  private let events: Events
  private var ownSets: [SubmittedSet] = []
  private let opening = Opening()
  private var openings: SimulatedOpenings
  private let procedure: SimulatedProcedure?
  private var requests: SimulatedRequests
  private var keeper: RecordKeeper<ScopeRecord, StorageError>?
  /// Returns the time that it takes to encode a part of a state, or to come back to a large change set.
  var encodingTime: () -> Duration = { .zero }
  /// The parts of states that are being encoded.
  private var encodings: [(scope: Int, fragments: [SyncFragment], readyAt: Duration)] = []
  /// The times at which the next slices of large change sets are judged.
  private var judgements: [Duration] = []
  /// The fetches that are answered once the front knows that the session has joined the engine of the scope.
  private var joins: [(join: ServerEngine.Join, readyAt: Duration)] = []

  /// The functions that the run provides.
  struct Events {
    let now: () -> Duration
    /// Makes the app, with a new scope.
    let app: (Ticker) -> SimulatedApp
    /// Called with a change set of the server's own, before clients are told of it.
    let changed: (ChangeSet) -> Void
    /// Called with a record that has become durable, before clients are told of it.
    let isSafe: (SimulatedJournal.Content) -> Void
    /// Called when the scope was opened again: the observer has to fetch it.
    let opened: () -> Void
    /// Called when the scope was closed and no client has fetched it for a while: the observer has to.
    let awaited: () -> Void
  }

  /// The time from which the scope can be fetched, and the answer to clients that fetch it earlier.
  private final class Opening {
    var time: Duration = .zero
    /// Returns true if clients that are refused are told when to ask again.
    var saysWhen: () -> Bool = { true }

    func fetch(_ scope: Scope, _ name: String, now: Duration) -> Result<Scope, WireError> {
      guard name == scope.name else { return .failure(.rejected("There is no scope \(name)")) }
      if now >= time { return .success(scope) }
      return .failure(
        WireError(
          message: "The scope \(name) is not open yet", type: "not-open",
          retryAfter: saysWhen() ? time - now : nil))
    }
  }

  /// Refuses the scope to all clients that fetch it before `time`.
  func open(at time: Duration, saysWhen: @escaping () -> Bool) {
    (opening.time, opening.saysWhen) = (time, saysWhen)
  }

  /// Creates the engine, which hosts the scope at once, with the history in the journal if there is one.
  ///
  /// - Parameters:
  ///   - isSpread: true to have the scope in another channel than the sessions.
  ///   - send: sends a frame on a connection.
  ///   - close: closes a connection.
  init(
    version: Int, isSpread: Bool, opensScope: Bool, openings: SimulationRandom, handshake: Int,
    limits: SimulationConfiguration.Limits, events: Events, procedure: SimulatedProcedure?,
    requests: SimulationRandom, journal: SimulatedJournal?, rules: ScopeRules?,
    access: ((_ token: String) -> Result<ScopeAccess, WireError>)?,
    makeToken: @escaping () -> String,
    send: @escaping (Int, [UInt8]) -> Void, probe: @escaping (Int) -> Void,
    close: @escaping (Int, _ code: Int, _ reason: String) -> Void
  ) {
    (self.events, self.rules, self.procedure) = (events, rules, procedure)
    self.requests = SimulatedRequests(random: requests)
    self.journal = journal
    self.openings = SimulatedOpenings(random: openings)
    app = events.app(ticker)
    scope = app.scope
    let (scope, now) = (scope, events.now)
    scope.flush()
    // The jitter must not depend on the order in which the engine goes through its sessions.
    var hooks = ServerEngine.Hooks(
      fetch: { [opening] _, name, _ in opening.fetch(scope, name, now: now()).map { $0 } },
      makeToken: makeToken, makeEpoch: makeToken, random: { 0.5 })
    hooks.opens = { _ in opensScope }
    hooks.procedure = { [unowned self] in $0 == procedure?.name ? served : nil }
    var ids = requests
    hooks.makeCallID = { ids.uuid() }
    if let access { hooks.access = { session, _, _ in .decided(access(session.token)) } }
    var configuration = ServerEngine.Configuration()
    configuration.highestVersion = version
    configuration.acknowledgeAfter.messages = limits.acknowledgeAfter
    configuration.keptLimit.messages = limits.keptMessages
    configuration.window.sets = limits.streamWindow
    // A few models in each message, so that states come in many parts.
    configuration.stateBytes = limits.stateBytes
    configuration.frameBytes = limits.frameBytes
    configuration.sliceSize = limits.sliceSize
    configuration.streamLimit.sets = limits.streamLength
    configuration.streamLimit.leastBytes = limits.streamBytes
    configuration.streamLimit.states = limits.streamStates
    configuration.rememberedClients = limits.rememberedClients
    configuration.limits.unknownDecisionBytes = limits.unknownDecisionBytes
    configuration.absentDecisionBytes = limits.absentDecisionBytes
    configuration.pingInterval = .milliseconds(Simulation.Times.ping)
    configuration.readingTime = .milliseconds(Simulation.Times.reading)
    configuration.handshakeTimeout = .milliseconds(handshake)
    configuration.expiry = .milliseconds(Simulation.Times.expiry)
    configuration.procedureTime = .milliseconds(Simulation.Times.procedure)
    configuration.rules = { _ in rules }
    let perform = { [unowned self] (action: ServerEngine.Action) in
      switch action {
      case .send(let ids, let frame): for id in ids { send(id, frame) }
      case .close(let id, let code, let reason): close(id, code, reason)
      case .probe(let id): probe(id)
      case .admit: break
      case .scope(let step): take(step)
      case .encode(let scope, let fragments):
        encodings.append((scope, fragments, now() + encodingTime()))
      case .judge: judgements.append(now() + encodingTime())
      case .join(let join):
        engine.join(join, now: now())
        joins.append((join, now() + encodingTime()))
      }
    }
    if isSpread {
      configuration.channel = ServerEngine.Channel(of: 2)
      hooks.channel = { _ in 1 }
      hooks.sessionEnded = { [unowned self] in engine.endSession($0.token, now: now()) }
      front = ServerEngine(configuration: configuration, hooks: hooks, perform: perform)
      configuration.channel = ServerEngine.Channel(number: 1, of: 2)
      hooks.access = { _, _, _ in .unguarded }
      hooks.channel = { _ in nil }
      hooks.sessionEnded = { [unowned self] in front?.endSession($0.token, now: now()) }
    }
    engine = ServerEngine(configuration: configuration, hooks: hooks, perform: perform)
    host()
  }

  /// Hosts the scope, with the history in the journal if there is one.
  private func host() {
    let scope = scope
    tokens = [scope.onChanges.listen { [events] in events.changed($0) }]
    if rules != nil {
      tokens.append(
        scope.onRemoteChanges.listen { [unowned self] in
          violations += SimulatedRules.violations(in: $0)
        })
    }
    defer { engine.compareWithRows(scope) }
    guard let journal else { return engine.host(scope) }
    do {
      let history = journal.history()
      let keeper = journal.begin(
        history, ticker: ticker, isSafe: events.isSafe,
        stored: { [unowned self] in engine.stored($0, of: scope) },
        prepare: { [weak self] in
          guard let self else { return }
          engine.prepareHistory(of: scope, then: $0)
        }, stalled: { [unowned self] in engine.stalled(scope) },
        current: { [unowned self] in engine.history(of: scope) })
      let new = try engine.host(scope, history: history) { [unowned self] in
        // The app makes the changes of a procedure, but their record is that of a client's change set.
        let id = $0.id
        let at = ownSets.firstIndex { $0.id == id }
        let own = at.map { ownSets.remove(at: $0) }
        journal.note(own: $0.decision == nil ? own : nil)
        keeper.keep($0)
      }
      journal.begin(with: new, now: events.now())
      keeper.begin()
      self.keeper = keeper
    } catch {
      preconditionFailure("The journal does not fit the scope: \(error)")
    }
  }

  /// Gives a session other rights in the scope.
  func changeAccess(of token: String, to answer: Result<ScopeAccess, WireError>) {
    front?.changeAccess(token, scope.name, answer, now: events.now())
    engine.changeAccess(token, scope.name, answer, now: events.now())
  }

  /// The procedure of the world.
  private var served: ServedProcedure {
    ServedProcedure(takesArguments: true) { [unowned self] request in
      if requests.takesAtOnce(request, now: events.now()) { procedure?.commit(request, engine) }
    }
  }

  private func settleRequests(now: Duration) {
    while let request = requests.take(now: now) { procedure?.commit(request, engine) }
  }

  // MARK: Opening and closing

  /// True if the scope is open.
  var isOpen: Bool { openings.isOpen }

  /// Closes the scope for all sessions, which may fetch it again.
  func closeScope() { engine.closeScope(scope.name) }

  private func take(_ step: ServerEngine.ScopeStep) {
    switch step {
    case .open: openings.beginOpening(now: events.now())
    case .giveUp: openings.giveUp(now: events.now())
    case .close:
      openings.beginClosing()
      keeper?.finish { _ in }
    }
  }

  /// Ends the closing of the scope once its log is written, and its opening when it is time for that.
  private func settleOpenings(now: Duration) {
    if openings.isClosing, journal?.isBusy != true {
      openings.endClosing(now: now)
      engine.closed(scope.name, now: now)
    }
    if let outcome = openings.takeOutcome(now: now) {
      if outcome.fails {
        let error = WireError.notNow("The scope cannot be opened", retryAfter: .milliseconds(100))
        engine.opened(scope.name, .failure(error), now: now)
      } else {
        open(outcome, now: now)
      }
    }
    if openings.takeWish(now: now) { events.awaited() }
  }

  /// Opens the scope. The observer has to know all that it contains before anything happens.
  private func open(_ outcome: SimulatedOpenings.Outcome, now: Duration) {
    if !outcome.isFirst { makeAgain() }
    let usual = encodingTime
    encodingTime = { .zero }
    engine.opened(scope.name, .success(scope), now: now)
    if !outcome.observerWaits { events.opened() }
    settleEncodings(now: now)
    encodingTime = usual
  }

  /// Makes the app with its scope anew, from the journal.
  private func makeAgain() {
    app = events.app(ticker)
    scope = app.scope
    scope.flush()
    host()
  }

  /// The epoch that the server must have.
  var epoch: String { journal?.epoch ?? engine.positions.first?.epoch ?? "" }

  /// The differences between the server's models and the rows that are hosted beside them.
  var differencesFromRows: [String] { engine.differencesFromRows }

  /// Describes what must not be the case on the server.
  func checkInvariants() -> [String] {
    engine.checkInvariants() + (front?.checkInvariants() ?? [])
  }

  /// Notes a change set of the server's own, whose record is about to be written.
  func noteOwn(_ set: SubmittedSet) { if journal != nil { ownSets.append(set) } }

  /// Lets the disk and the encoders work until `now`, and lets everything go on that waits for them.
  func settle(now: Duration) {
    journal?.settle(now: now)
    settleOpenings(now: now)
    settleEncodings(now: now)
    settleJudgements(now: now)
    settleRequests(now: now)
    while let at = joins.firstIndex(where: { $0.readyAt <= now }) {
      let (join, _) = joins.remove(at: at)
      front?.joined(join, now: now)
    }
  }

  private func settleEncodings(now: Duration) {
    while let at = encodings.firstIndex(where: { $0.readyAt <= now }) {
      let (scope, fragments, _) = encodings.remove(at: at)
      engine.encoded(FragmentsText(fragments), of: scope, now: now)
    }
  }

  private func settleJudgements(now: Duration) {
    while let at = judgements.firstIndex(where: { $0 <= now }) {
      judgements.remove(at: at)
      engine.judge(now: now)
    }
  }

  /// Judges all slices of large change sets, although their time has not come.
  func judgeAll(now: Duration) {
    while !judgements.isEmpty {
      judgements.removeFirst()
      engine.judge(now: now)
    }
  }

  /// The epoch and sequence of the scope.
  var position: ScopePosition? { engine.positions.first }

  /// The time at which the disk, an encoder or a judgement has done its next piece of work; nil if all are idle.
  var nextDeadline: Duration? {
    (encodings.map(\.readyAt) + joins.map(\.readyAt) + judgements
      + [journal?.deadline, openings.deadline, requests.deadline].compactMap { $0 }).min()
  }

  /// Takes a new connection. The observer speaks with the engine of the scope at once.
  func opened(_ id: Int, token: String?, now: Duration) {
    let params = token.map { ["sessiontoken": $0] } ?? [:]
    guard let front, id != RawObserver.connection else {
      return engine.opened(id, params: params, now: now)
    }
    front.opened(id, params: params, now: now)
    let (principal, channels) = front.identity(on: id)
    if channels.contains(1) { engine.opened(id, params: params, as: principal, now: now) }
  }

  /// Takes the frames that have arrived at the same time on a connection.
  ///
  /// - Parameter endsTurn: false if those of others may follow; ``endTurn()`` has to be called then.
  func received(_ id: Int, _ frames: [[UInt8]], now: Duration, endsTurn: Bool = true) {
    var (ofFront, ofScope): ([ServerEngine.Input], [ServerEngine.Input]) = ([], [])
    for frame in frames {
      let read = MessageFrame(frame)
      let input = ServerEngine.Input.frame(
        .init(
          messages: read.messages, isArray: Message.isArrayFrame(frame), size: frame.count))
      let isForFront = front != nil && read.channel == 0 && id != RawObserver.connection
      if isForFront { ofFront.append(input) } else { ofScope.append(input) }
    }
    if !ofFront.isEmpty { front?.received(ofFront, on: id, now: now, endsTurn: false) }
    if !ofScope.isEmpty { engine.received(ofScope, on: id, now: now, endsTurn: false) }
    if endsTurn { endTurn() }
  }

  /// Has the server send what the frames of a turn have led to.
  func endTurn() {
    front?.endTurn()
    engine.endTurn()
  }

  func probed(_ id: Int, now: Duration) { engine.received([.probed], on: id, now: now) }

  func closed(_ id: Int, now: Duration) {
    front?.closed(id, now: now)
    engine.closed(id, now: now)
  }

  func advance(by duration: Duration, to now: Duration) {
    ticker.advance(by: duration)
    front?.advance(to: now)
    engine.advance(to: now)
  }

  /// Returns the kinds of the synced properties of a class, by wire name.
  func kinds(of className: String) -> [String: PropertyKind] {
    var kinds: [String: PropertyKind] = [:]
    for property in scope.schema(named: className)?.properties ?? [] where property.isSynced {
      kinds[property.wireName] = PropertyKind(property)
    }
    return kinds
  }

  /// Returns the value of a property that a full state leaves out.
  func defaultValue(of property: String, in className: String) -> PlainJSON? {
    let value = scope.schema(named: className)?[wireName: property]?.defaultValue
    return value.flatMap { PlainJSON($0.text.utf8) }
  }
}

/// The kind of a property, as far as code needs it that only sees JSON.
enum PropertyKind: Hashable {
  case plain
  /// A counter: each step is added, and the sum is kept within the range of its type.
  case counter(ClosedRange<Int>)
  /// A value. Concurrent changes are merged by the rule of this name.
  case merged(String)
  /// A reference, which holds one model.
  case reference
  /// A collection of models.
  case collection
  /// A dictionary of models. Each entry is a property of its own, whose name begins with that of the dictionary.
  case entries

  init(_ property: ModelSchema.Property) {
    switch property.type {
    case .collection: self = .collection
    case .dictionary(.reference): self = .entries
    case .reference, .optional(.reference): self = .reference
    default:
      self =
        property.options.mergeRule.map { .merged($0.name) }
        ?? (property.options.isCounter ? .counter(Self.range(of: property)) : .plain)
    }
  }

  /// Returns true if a name is that of an entry of the dictionary `property`.
  static func isEntry(_ name: String, of property: String) -> Bool {
    name.hasPrefix(property + "/")
  }

  private static func range(of property: ModelSchema.Property) -> ClosedRange<Int> {
    guard let range = property.counterRange else { return .min ... .max }
    return Int(range.lowest)...Int(clamping: range.highest)
  }
}
