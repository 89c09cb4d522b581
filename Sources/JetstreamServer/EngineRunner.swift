import Foundation
import Jetstream
import JetstreamWebSocket

/// Runs an engine on an actor: hands it what its connections receive, the time, and what it waits for, and carries out its
/// actions.
///
/// A server has one on its own actor, for the sessions and for most scopes, and one on each event loop over which it
/// spreads scopes; see ``ServerShard``.
final class EngineRunner {
  /// The functions that the owner provides.
  struct Owner {
    /// Takes a diagnostic that is about a connection or a log.
    let report: (Diagnostic) -> Void
    /// Has a session join the engine of another channel.
    var join: (ServerEngine.Join) -> Void = { _ in }
    /// Opens or closes a scope.
    var scope: (ServerEngine.ScopeStep) -> Void = { _ in }
    /// Takes note that a scope of the app is not served any more, since its history cannot be written.
    var lost: (any Hostable) -> Void = { _ in }
  }

  private(set) var engine: ServerEngine!
  let actor: WeakActor
  let ticker: Ticker
  let owner: Owner
  /// The histories of hosted scopes.
  var histories: [ObjectIdentifier: HostedHistory] = [:]
  /// The logs that are being read, whose content is hosted afterwards.
  var readings: [HistoryReading] = []
  /// The procedures that the app serves, by name.
  var procedures: [String: ServedProcedure] = [:]
  /// The questions to the app that it has not answered.
  let questions = OpenQuestions()
  /// The connections of which nothing is read until the app has said who it is that resumes a session there.
  private var admissions: [Int: AsyncStream<Never>.Continuation] = [:]
  /// Those who wait until more large change sets may be taken.
  private var waitingForRoom: [CheckedContinuation<Void, Never>] = []
  private let limits: WebSocketLimits
  // No access to this is open while other code runs: a connection is looked up, put in or taken out in a single step.
  @exclusivity(unchecked) private var connections: [Int: any ServerConnection] = [:]
  /// True from ``begin()`` until ``stop()``.
  private(set) var isRunning = false
  private var isTicking = false
  private var memory = MemoryWatch()
  /// True while the end of a turn is due.
  private var isTurning = false
  private lazy var home = HomeReference(self, on: actor)

  init(
    _ configuration: Server.Configuration, channel: ServerEngine.Channel = .init(),
    on actor: any Actor, hooks: ServerEngine.Hooks, hits: LimitHits, owner: Owner
  ) {
    self.actor = WeakActor(actor)
    ticker = Ticker.on(actor)
    self.owner = owner
    limits = configuration.socketLimits
    var hooks = hooks
    hooks.limitReached = { hits.note($0) }
    var settings = configuration.engine
    settings.channel = channel
    hooks.procedure = { [unowned self] in procedures[$0] }
    engine = ServerEngine(configuration: settings, hooks: hooks) { [unowned self] in perform($0) }
  }

  deinit {
    questions.giveUp()
    for connection in connections.values { connection.abort() }
    for waiting in admissions.values { waiting.finish() }
    for waiting in waitingForRoom { waiting.resume() }
  }

  /// Advances the engine once a second from now on. Does nothing if that is done already.
  func begin() {
    if isRunning { return }
    isRunning = true
    noteMemory()
    tickSoon()
  }

  /// Ends all sessions and closes all connections.
  func stop() {
    isRunning = false
    withdrawReadings()
    engine.stop()
    connections = [:]
    questions.giveUp()
    for id in Array(admissions.keys) { decideAdmission(of: id) }
    makeRoom()
  }

  private func tickSoon() {
    guard !isTicking, isRunning else { return }
    isTicking = true
    ticker.perform(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      isTicking = false
      guard isRunning else { return }
      noteMemory()
      engine.advance(to: ticker.now)
      questions.giveUp { [engine] in !engine.isAsking($0, of: $1) }
      questions.giveUpLate(at: ticker.now)
      dropUnread()
      tickSoon()
    }
  }

  /// Tells the engine how much memory the process has, if there is a limit on that.
  private func noteMemory() {
    guard engine.configuration.limits.residentBytes != nil else { return }
    switch memory.look() {
    case .bytes(let bytes):
      if engine.noteMemory(bytes) { memory.trim() }
    case .unknown(let isNew):
      guard isNew, engine.configuration.channel.number == 0 else { return }
      owner.report(
        Diagnostic(
          .error, .session,
          "the limit 'residentBytes' does not hold: the system does not tell how much memory the process has"
        ))
    }
  }

  /// Drops the connections for which the most bytes wait, in either direction, if too many wait on all of them.
  ///
  /// Connections are read and written on other threads, so that a running total would cost each of them at every step.
  /// Once a second it costs O(number of connections); in between, each connection has limits of its own.
  func dropUnread() {
    let configuration = engine.configuration
    // The connections of other channels are among these.
    guard let most = configuration.limits.unreadBytes, configuration.channel.number == 0 else {
      return
    }
    var sizes = connections.map { (id: $0.key, bytes: $0.value.heldBytes) }
    var total = sizes.reduce(0) { $0 + $1.bytes }
    guard total > most else { return }
    sizes.sort { ($0.bytes, $0.id) < ($1.bytes, $1.id) }
    while total > most, let (id, bytes) = sizes.popLast() {
      total -= bytes
      engine.hooks.limitReached(.unreadBytes)
      connections.removeValue(forKey: id)?.abort()
      owner.report(
        Diagnostic(.warning, .connection, connection: id, "dropped: \(bytes) bytes are held for it")
      )
    }
  }

  // MARK: Inputs

  /// The beginning of a connection that may be read: the principal and the other channels of the session that it resumes,
  /// and the time for which nothing is to be read from it.
  typealias Admission = (principal: Principal?, channels: Set<Int>, pause: Duration)

  /// Takes a new connection. Returns nil if nothing may be read from it yet; see ``admission(of:)``.
  ///
  /// - Parameter principal: in another channel than 0, the principal that the app has named for the client.
  func opened(
    _ connection: any ServerConnection, _ id: Int, _ request: HTTPRequest,
    as principal: Principal? = nil
  ) -> Admission? {
    connections[id] = connection
    engine.opened(
      id, params: ConnectionParams.read(from: request), request: request, as: principal,
      now: ticker.now)
    return engine.isWaiting(id) ? nil : beginning(of: id)
  }

  /// Returns the beginning of a connection once the app has said who its client is.
  func beginning(of id: Int) -> Admission {
    let (principal, channels) = engine.identity(on: id)
    return (principal, channels, engine.pause(on: id))
  }

  /// Returns a sequence without elements, which ends once the app has said who it is that resumes a session on a new
  /// connection, or is not waited for any more. Waiting for its end keeps nothing of the server.
  func admission(of id: Int) -> AsyncStream<Never> {
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    if engine.isWaiting(id) { admissions[id] = continuation } else { continuation.finish() }
    return stream
  }

  private func decideAdmission(of id: Int) { admissions.removeValue(forKey: id)?.finish() }

  /// Takes a session that has fetched one of the scopes in channel 0.
  func join(_ join: ServerEngine.Join, _ connection: any ServerConnection) {
    connections[join.connection] = connection
    engine.join(join, now: ticker.now)
  }

  /// Takes what a connection has received. On an event loop, what all connections have received in one turn is answered
  /// together.
  ///
  /// - Returns: the time for which nothing more is to be read from the connection; nil if there is no such connection.
  func received(_ inputs: [ServerEngine.Input], on id: Int) -> Duration? {
    guard connections[id] != nil else { return nil }
    let isOnLoop = actor.value.map { EventLoop.isHome(of: $0) } ?? false
    let pause = engine.received(inputs, on: id, now: ticker.now, endsTurn: !isOnLoop)
    guard isOnLoop, !isTurning else { return pause }
    isTurning = true
    // Behind the jobs of this turn, and before the sockets are written.
    home.performLater { runner in
      runner.isTurning = false
      runner.engine.endTurn()
    }
    return pause
  }

  /// Takes the app's answer about the client of a connection.
  func authenticated(_ id: Int, _ answer: Result<Principal?, WireError>) {
    engine.authenticated(id, answer, now: ticker.now)
    if !engine.isWaiting(id) { decideAdmission(of: id) }
  }

  /// Takes the app's answer about the rights of a session in a scope.
  func decided(
    _ token: String, _ name: String, _ question: Int, _ answer: Result<ScopeAccess, WireError>
  ) {
    engine.decided(token, name, question, answer, now: ticker.now)
  }

  /// Takes the rights that a session has in a scope from now on.
  func changeAccess(_ token: String, _ name: String, _ answer: Result<ScopeAccess, WireError>) {
    engine.changeAccess(token, name, answer, now: ticker.now)
  }

  /// Takes note that a session has joined the engine of another channel.
  func joined(_ join: ServerEngine.Join) { engine.joined(join, now: ticker.now) }

  /// Takes note that a session cannot join the engine of another channel.
  func declined(_ join: ServerEngine.Join) { engine.declined(join, now: ticker.now) }

  /// Ends a session that has ended in another channel.
  func endSession(_ token: String, isTakenAway: Bool = false) {
    engine.endSession(token, isTakenAway: isTakenAway, now: ticker.now)
  }

  /// Takes the outcome of opening a scope.
  func opened(_ name: String, _ outcome: Result<any Hostable, WireError>) {
    engine.opened(name, outcome, now: ticker.now)
  }

  /// Takes the end of closing a scope.
  func closed(_ name: String) { engine.closed(name, now: ticker.now) }

  func closed(_ id: Int) {
    connections[id] = nil
    decideAdmission(of: id)
    questions.giveUp(about: id)
    engine.closed(id, now: ticker.now)
  }

  /// Takes note that a connection is left unread on purpose.
  ///
  /// - Parameter isOver: true if the time for that is over.
  /// - Returns: the time for which it is to be left unread on; nil if it is not open any more.
  func rests(on id: Int, isOver: Bool) -> Duration? {
    let more = engine.rests(on: id, isOver: isOver, now: ticker.now)
    return connections[id] == nil ? nil : more
  }

  /// Returns the connection with a number, if it is open.
  func connection(_ id: Int) -> (any ServerConnection)? { connections[id] }

  // MARK: Actions

  private func perform(_ action: ServerEngine.Action) {
    switch action {
    case .send(let ids, let frame): send(ServerText(frame), on: ids)
    case .close(let id, let code, let reason):
      questions.giveUp(about: id)
      connections.removeValue(forKey: id)?.beginClose(code: code, reason: reason)
      decideAdmission(of: id)
    case .admit(let id): connections[id]?.setLimits(limits)
    case .probe(let id): connections[id]?.probe()
    case .encode(let scope, let fragments): encode(fragments, of: scope)
    case .judge: judge()
    case .join(let join): owner.join(join)
    case .scope(let step): owner.scope(step)
    }
  }

  private func send(_ text: ServerText, on ids: [Int]) {
    for id in ids {
      guard let connection = connections[id] else { continue }
      do {
        try connection.send(text)
      } catch {
        connections[id] = nil
        connection.abort()
        // A client may close its connection at any time, and what is sent to it then is nothing to warn of.
        let level: Diagnostic.Level = error as? WebSocketError == .closed ? .info : .warning
        owner.report(Diagnostic(level, .connection, connection: id, "dropped: \(error)"))
      }
    }
  }

  /// Makes the text of a part of a state where that holds up no connection.
  private func encode(_ fragments: [SyncFragment], of scope: Int) {
    let home = home
    Task.detached {
      let text = FragmentsText(fragments)
      await home.perform { $0.engine.encoded(text, of: scope, now: $0.ticker.now) }
    }
  }

  /// Has the next slice of a large change set judged once others have had their turn.
  private func judge() {
    let home = home
    // From another thread: what has come in meanwhile is handed to the actor first.
    Task.detached {
      await home.perform { runner in
        runner.engine.judge(now: runner.ticker.now)
        if !runner.waitingForRoom.isEmpty, runner.engine.hasRoomForLargeSets { runner.makeRoom() }
      }
    }
  }

  /// Waits until the large change sets that are being judged have fewer bytes than the largest one may have.
  func waitForRoom() async {
    if engine.hasRoomForLargeSets { return }
    await withCheckedContinuation { waitingForRoom.append($0) }
  }

  private func makeRoom() {
    let waiting = waitingForRoom
    waitingForRoom = []
    for next in waiting { next.resume() }
  }
}
