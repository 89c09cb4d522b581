import Foundation
import Observation

/// Syncs scopes with a server.
///
/// ```swift
/// let client = Client(url: "ws://localhost:8080")
/// try await client.connect()
/// try await client.fetch(scope)
/// ```
///
/// From then on the client sends local changes, and remote changes appear in the scope and fire its observers. The
/// client reopens a lost connection, with growing delays. Nothing is lost meanwhile: change sets that the server has
/// not decided stay visible, and the client sends them again until it has.
///
/// A client and its scopes belong to the actor on which the client is made. A client is not Sendable. It reads and
/// decodes frames outside its actor; only applying them happens on it. Releasing the client closes its connection.
public final class Client: Observable {
  /// Fires when ``status`` has changed.
  public let onStatusChange = Signal<ClientStatus>()
  /// Fires when the server has denied a session, or has ended it for good.
  public let onSessionDenied = Signal<SyncError>()
  /// Fires when ``syncState(of:)`` has changed, except for the passing of time.
  public let onSyncStateChange = Signal<Scope>()
  /// Fires with a scope when its server reports another history than the one that the client knows: the server was
  /// restored from an old copy, or has begun anew. ``historyLoss`` decides what happens to the pending change sets.
  public let onHistoryLoss = Signal<Scope>()
  /// Fires with a description of each event that an app may want in its log: a message that was skipped, a connection or a
  /// session that failed, a scope that was refused, repaired or is no longer synced, a log that cannot be written.
  public let onDiagnostic = Signal<Diagnostic>()

  /// True while there is a session, also while its connection is lost.
  package var hasSession: Bool { engine.session.token != nil }

  private let transport: any Transport
  private(set) lazy var tracking = ClientTracking(self)
  let actor: WeakActor
  let ticker: Ticker
  private(set) var engine: ClientEngine!
  private var link = ClientLink()
  private(set) lazy var timer = ClientTimer(on: ticker) { [weak self] in
    guard let self else { return }
    engine.advance(to: ticker.now, arrived: link.receivedBytes)
    scheduleTimer()
  }
  private var connecting: [SyncOutcome] = []
  /// The logs of the scopes that are synced with one.
  var logs: [ObjectIdentifier: KeptLog] = [:]
  /// The logs of scopes that are no longer synced, until all of their records are durable, each under its keeper.
  var leftLogs: [ObjectIdentifier: KeptLog] = [:]
  /// Provides the credentials with which the client asks for a session; see ``Credentials``.
  ///
  /// ```swift
  /// client.credentials = { reason in
  ///   if case .refused = reason { try await tokens.refresh() }
  ///   return Credentials(headers: [("Authorization", "Bearer \(await tokens.current)")])
  /// }
  /// ```
  ///
  /// The client calls it for each new session, and once more when the server has refused the credentials: with the
  /// status 401 or 403, or with ``WireError/notYou(_:)``. If the server refuses the second ones, too, the client
  /// stops connecting, as ``connect(params:)`` describes. When a server refuses a scope with
  /// ``WireError/notYou(_:)``, the client presents other credentials in another session, once until the server
  /// grants the scope. If the function throws, the client tries again later. The client calls it outside its actor.
  public var credentials: (@Sendable (Credentials.Reason) async throws -> Credentials)? {
    didSet {
      engine.configuration.hasCredentials = credentials != nil
      if credentials == nil { engine.credentials.presented = nil }
    }
  }

  /// Makes a client of the server at `url`, such as `ws://localhost:8080`, or `wss://` on Apple platforms.
  /// It does nothing until ``connect(params:)`` is called.
  ///
  /// A client lives on the actor on which it is made.
  ///
  /// - Parameters:
  ///   - url: the server's address.
  ///   - headers: are sent with each request to connect.
  ///   - backoff: how long the client waits between attempts to connect.
  ///   - isolation: the caller's actor.
  public convenience init(
    url: String, headers: [(String, String)] = [], backoff: Backoff = Backoff(),
    isolation: isolated (any Actor) = #isolation
  ) {
    self.init(
      transport: WebSocketTransport(url: url, headers: headers), backoff: backoff,
      isolation: isolation)
  }

  /// Makes a client that connects through `transport`.
  public convenience init(
    transport: any Transport, backoff: Backoff = Backoff(),
    isolation: isolated (any Actor) = #isolation
  ) {
    self.init(transport: transport, backoff: backoff, dateForm: nil, isolation: isolation)
  }

  /// Makes a client that sends dates in a certain form; nil for the form that fits the version of the protocol that the
  /// server speaks.
  package init(
    transport: any Transport, backoff: Backoff = Backoff(), dateForm: DateForm?,
    isolation: isolated (any Actor) = #isolation
  ) {
    self.transport = transport
    actor = WeakActor(isolation)
    ticker = Ticker.on(isolation)
    var configuration = ClientEngine.Configuration()
    configuration.backoff = backoff
    configuration.dateForm = dateForm
    configuration.date = { Date() }
    configuration.time = { [ticker] in ticker.now }
    engine = ClientEngine(
      configuration: configuration, random: { Double.random(in: 0..<1) },
      perform: { [weak self] in self?.perform($0) }, report: { [weak self] in self?.note($0) })
  }

  deinit {
    for kept in logs.values { kept.keeper.leave { _ in } }
    link.end()
  }

  /// The state of the client's connection.
  public var status: ClientStatus {
    tracking.read(\.status)
    return engine.status
  }

  /// The number of change sets of all scopes that are not confirmed: those that the server has not decided, and
  /// those that it has decided but whose sequence the client has not reached, because the scope's mode holds back
  /// earlier change sets of other clients.
  package var pendingCount: Int { engine.pendingCount }

  /// The treatment of pending change sets when the server reports another history than the one that the client
  /// knows. By default the client sends them again. See ``onHistoryLoss``.
  public var historyLoss: HistoryLoss {
    get { engine.configuration.onHistoryLoss }
    set { engine.configuration.onHistoryLoss = newValue }
  }

  /// The scopes that the client syncs.
  package var scopes: [Scope] { engine.scopes }

  /// Connects and creates a session. Returns at once if there is one, also while its connection is lost. When the server
  /// has ended a session, this waits for the next one.
  ///
  /// The session has the `params` of the last call, also if the one before it was cancelled. A call beside one that still
  /// waits joins that one, and gets the same session.
  ///
  /// While the server cannot be reached the client keeps trying, and this waits; ``onDiagnostic``
  /// tells why. A task that is cancelled stops waiting; the client goes on connecting until ``close()``. `params` reach
  /// the application on the server; with everything else in the first message they may take 64 KiB.
  ///
  /// Throws ``SyncError/sessionDenied(reason:)`` if the server refuses, ``SyncError/sessionClosed(reason:)`` if the client is
  /// closed meanwhile, ``SyncError/cancelled``, and ``SyncError/connectionFailed(reason:)`` if no attempt can ever succeed, because the address
  /// cannot be used, no WebSocket server answers there or it refuses the request. A redirect or a page with status 200 is
  /// taken for that of a network whose user has to sign in first: the client keeps trying.
  /// Scopes that have a log stay as they are then, and the next call goes on with them.
  public func connect(
    params: JSONValue = .object([:])
  ) async throws(SyncError) {
    if hasSession { return }
    let outcome = SyncOutcome()
    let joins = connecting.contains { !$0.isOver }
    connecting.append(outcome)
    if !joins || status == .offline { beginConnecting(params) }
    let result = await outcome.value
    connecting.removeAll { $0 === outcome }
    try result.get()
  }

  /// Starts to connect, without waiting; see ``connect(params:)``.
  func beginConnecting(_ params: JSONValue = .object([:])) {
    engine.connect(params: params, now: ticker.now)
    scheduleTimer()
  }

  /// Starts syncing `scope`, which the server knows by its name: the scope's content becomes the server's, and local
  /// changes go to the server, as `mode` says. Returns when the server's state has been applied.
  ///
  /// If the server refuses the scope with a retry time, the client asks again, and this method keeps waiting; the
  /// scope's ``SyncState/stall`` gives the reason. The client also asks again if the server refuses the scope later,
  /// after having granted it; changes made meanwhile are pending.
  ///
  /// With `keepingContent`, the scope's content is not replaced but sent, as one change set: models and collections
  /// join those on the server, and values replace the server's.
  ///
  /// Throws ``SyncError/scopeDenied(scope:error:)`` with the server's reason, ``SyncError/notConnected`` before
  /// ``connect(params:)``, ``SyncError/alreadyFetched(scope:)``, ``SyncError/sessionClosed(reason:)`` if the
  /// session ends meanwhile, ``SyncError/invalidReply(problem:)`` if the state does not fit the scope, and
  /// ``SyncError/cancelled`` if the task is cancelled. A scope whose state has not arrived by then is not synced,
  /// and can be fetched again once this method has thrown.
  public func fetch(
    _ scope: Scope, params: JSONValue = .object([:]), mode: SyncMode = .realtime,
    keepingContent: Bool = false
  ) async throws(SyncError) {
    let outcome = SyncOutcome()
    let replica = engine.fetch(scope, params: params, mode: mode, now: ticker.now) {
      outcome.put($0)
    }
    if keepingContent { replica?.takeContent() }
    scheduleTimer()
    let result = await outcome.value
    // The scope may have been left and fetched again by now.
    if case .failure(.cancelled) = result, let replica, engine.replica(of: scope) === replica {
      _ = engine.leave(scope, now: ticker.now)
    }
    try result.get()
  }

  /// Ends the session and the syncing of all scopes. Scopes keep their content: pending changes stay visible in
  /// them. Those of a scope with a log are sent when it is fetched with that log again, and others are not sent any more.
  /// ``connect(params:)`` starts a new session.
  ///
  /// Changes that no change set has yet become one first, which is sent if there is a connection. Of a scope with a log
  /// it is not sent, because it is not durable yet: the log has it for the next `fetch`. Within
  /// ``Scope/modify(_:author:_:)``, and in an observer that is told at once of what others did, changes cannot become a
  /// change set: these stay in the scope alone.
  public func close() {
    engine.close()
    engine.credentials.presented = nil
  }

  /// Drops the connection without closing it, as a failing network would; the client reconnects.
  package func cutConnection() {
    (link.connection as? WebSocketTransportConnection)?.abort()
  }

  // MARK: Between engine and transport

  private func perform(_ action: ClientEngine.Action) {
    switch action {
    case .connect(let number, let token):
      let pipe = ClientPipe(client: HomeReference(self, on: actor), number: number)
      if let token {
        let headers =
          (engine.credentials.presented?.headers ?? []) + [("X-Jetstream-SessionToken", token)]
        link.reader = Task { [transport] in await pipe.run(transport, headers: headers) }
      } else if let credentials {
        let reason = engine.credentials.reason
        link.reader = Task { [transport] in await pipe.run(transport, credentials, reason) }
      } else {
        link.reader = Task { [transport] in await pipe.run(transport, headers: []) }
      }
    case .send(let frame):
      do {
        try link.connection?.send(frame)
      } catch {
        onDiagnostic.fire(
          Diagnostic(.warning, .connection, "a frame could not be sent: \(error)"))
        link.connection?.close(code: 1000, reason: "")
      }
    case .disconnect:
      link.end()
      link = ClientLink()
    }
  }

  private func note(_ event: ClientEngine.Event) {
    switch event {
    case .statusChanged(let status):
      // A scope that resumes, or a listener, may have had the client wait for the next attempt to connect.
      scheduleTimer()
      tracking.didChange(\.status)
      onStatusChange.fire(status)
    case .sessionCreated:
      finishConnecting(.success(()))
    case .sessionDenied(let error):
      finishConnecting(.failure(error))
      onSessionDenied.fire(error)
    case .ended(let error):
      finishConnecting(.failure(error))
    case .rejected: break  // It is in the scope's ledger.
    case .diagnostic(let diagnostic): onDiagnostic.fire(diagnostic)
    case .waitingRepliesChanged: scheduleTimer()
    case .historyLost(let scope): onHistoryLoss.fire(scope)
    case .differs(let scope, let sequence):
      onDiagnostic.fire(
        Diagnostic(
          .error, .scope, scope: scope.name,
          "differs from the server's at sequence \(sequence) and is being repaired"))
    case .repaired(let scope, let models):
      onDiagnostic.fire(
        Diagnostic(
          .error, .scope, scope: scope.name,
          "was repaired: \(models.count) models were not what the server has"))
    case .stateChanged(let scope):
      tracking.didChange(\.trackedSyncStates)
      onSyncStateChange.fire(scope)
    case .left(let scope):
      leaveLog(of: scope)
      tracking.didChange(\.trackedSyncStates)
      tracking.didChange(\.trackedPendingChanges)
      onSyncStateChange.fire(scope)
    }
  }

  private func finishConnecting(_ result: Result<Void, SyncError>) {
    for outcome in connecting { outcome.put(result) }
    connecting = []
  }

  /// Schedules a call of the engine at its next deadline.
  func scheduleTimer() { timer.schedule(at: engine.nextDeadline) }

  /// Takes the credentials for a connection, unless it has been given up.
  func took(_ credentials: Credentials, number: Int) {
    guard number == engine.connection.number else { return }
    engine.credentials.presented = credentials
  }

  func opened(_ connection: any TransportConnection, number: Int) {
    guard number == engine.connection.number else {
      return connection.close(code: 1000, reason: "")
    }
    link.connection = connection
    engine.opened(number, now: ticker.now)
    scheduleTimer()
  }

  func received(_ frame: MessageFrame, size: Int, number: Int) {
    engine.received(
      number, frame.messages, channel: frame.channel, size: size, arrived: link.receivedBytes,
      now: ticker.now)
    scheduleTimer()
  }

  func closed(
    code: Int, reason: String, number: Int, retryAfter: Duration = .zero, isPermanent: Bool = false,
    refusesCredentials: Bool = false
  ) {
    engine.closed(
      number, code: code, reason: reason, retryAfter: retryAfter, isPermanent: isPermanent,
      refusesCredentials: refusesCredentials, now: ticker.now)
    scheduleTimer()
  }
}
