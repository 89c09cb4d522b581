import Foundation
import Jetstream
import JetstreamWebSocket

/// The server's side of the protocol as a state machine: connections, frames and times go in, actions
/// come out. It does no I/O, reads no clock and draws no random numbers of its own.
package final class ServerEngine {
  /// An action that the owner has to carry out.
  package enum Action {
    /// Send a frame on each of the connections.
    case send(connections: [Int], [UInt8])
    case close(connection: Int, code: Int, reason: String)
    /// The connection has a session: from now on it may send messages of any size that the server reads.
    case admit(connection: Int)
    /// Send a WebSocket ping behind what was sent, and hand on ``Input/probed`` when it is answered.
    case probe(connection: Int)
    /// Make the text of fragments, away from the server's actor, and hand it to ``ServerEngine/encoded(_:of:now:)``. A
    /// scope has one of these under way at a time. There are no fragments if only others are to have their turn.
    case encode(scope: Int, [SyncFragment])
    /// Call ``ServerEngine/judge(now:)`` when others have had their turn.
    case judge
    /// Make the session known to the engine of another channel, with ``ServerEngine/join(_:now:)``, and hand what was done
    /// to ``ServerEngine/joined(_:now:)``.
    case join(Join)
    /// Open or close a scope.
    case scope(ScopeStep)
  }

  enum Connection {
    /// No message was received yet.
    case fresh(params: [String: String], request: HTTPRequest?, deadline: Duration)
    /// The client has asked for a session, and the app is asked about it.
    case authenticating(Applicant)
    case session(ServerSession)
  }

  /// The work that is done a piece at a time, between which others have their turn, and the memory that there is for it.
  struct Work {
    /// The scopes of which a part of a state is being encoded, by number.
    var encoding: [Int: ScopeHost] = [:]
    /// The large change sets that are being judged.
    var judgements = JudgementQueue()
    /// The memory pressure of the process.
    var memory = MemoryPressure()
  }

  let configuration: Configuration
  let hooks: Hooks
  let perform: (Action) -> Void
  var connections: [Int: Connection] = [:]
  var sessions: [String: ServerSession] = [:]
  var hosts: [ObjectIdentifier: ScopeHost] = [:]
  var now: Duration = .zero
  /// The numbers of the next session and of the next hosted scope.
  var next = (session: 1, scope: 0, question: 0)
  /// Sessions with something in their outbox.
  var waiting: [ServerSession] = []
  /// True while an input is handled, or what it leads to is sent. What observers of the app do meanwhile is sent behind
  /// that.
  var isHandling = false
  /// The scopes with change sets that their sessions of version 2 are told at the end of this turn.
  var hostsWithNews: [ScopeHost] = []
  /// The work that others interrupt.
  var work = Work()
  /// The actions that are performed behind all others of this turn.
  var lastActions: [Action] = []
  /// The scopes that are opened when sessions fetch them.
  var openScopes: OpenScopes
  /// The sessions, and the connections without one, that are counted by principals and addresses.
  var quotas = Quotas()

  package init(
    configuration: Configuration = Configuration(), hooks: Hooks,
    perform: @escaping (Action) -> Void
  ) {
    self.configuration = configuration
    self.hooks = hooks
    self.perform = perform
    openScopes = OpenScopes(limits: configuration.openScopes)
  }

  deinit {
    // Subscriptions and hosts know each other.
    for host in hosts.values {
      host.letGo()
      host.order.onLocalChanges = nil
    }
  }

  package var sessionCount: Int { sessions.count }
  package var connectionCount: Int { connections.count }

  // MARK: Connections

  /// Takes a new connection. A connection with the token of a session replaces the session's earlier one, once its client
  /// has proved to be the same principal. Until then nothing may be read from it; see ``isWaiting(_:)``.
  ///
  /// `params` are its `x-jetstream-` parameters without that prefix; `request` is the HTTP request that has opened it,
  /// if there was one. After a resume nothing is sent until the client has sent something: it says then what it has
  /// received. In another channel than 0, `principal` is the one that the app has named for the client there.
  package func opened(
    _ id: Int, params: [String: String], request: HTTPRequest? = nil,
    as principal: Principal? = nil, now: Duration
  ) {
    self.now = now
    let token = params["sessiontoken"] ?? ""
    guard !token.isEmpty else {
      guard beginHandshake(id, request) else { return }
      connections[id] = .fresh(
        params: params, request: request, deadline: now + configuration.handshakeTimeout)
      return
    }
    guard let session = sessions[token] else { return refuse(id, .sessionTokenUnrecognized) }
    // Connections come to the engines of a server in any order: the last one that the server has taken is the session's.
    if let last = session.link.connection, last > id {
      return perform(.close(connection: id, code: 1000, reason: "resumed on another connection"))
    }
    // The engine that has created the session asks once more who the client is.
    guard configuration.channel.number == 0 else {
      session.info.principal = principal
      return resume(session, on: id)
    }
    authenticateAgain(session, params, request, on: id)
  }

  /// Gives a session a new connection.
  func resume(_ session: ServerSession, on id: Int) {
    if let old = session.link.resume(on: id) {
      connections[old] = nil
      perform(.close(connection: old, code: 1000, reason: "resumed on another connection"))
    }
    session.probe.stop()
    touch(session)
    schedulePing(session)
    connections[id] = .session(session)
    perform(.admit(connection: id))
    tellMissed(to: session)
  }

  package func closed(_ id: Int, now: Duration) {
    self.now = now
    quotas.endHandshake(id)
    if case .session(let session)? = connections.removeValue(forKey: id) { detach(session) }
  }

  /// Takes the connection from a session, which goes on without one until it expires.
  func detach(_ session: ServerSession) {
    if let id = session.link.disconnect() { connections[id] = nil }
    session.probe.stop()
    if !session.subscriptions.wereUsed, configuration.channel.number == 0 {
      session.expiresAt = now + configuration.unusedExpiry
    }
    endsForOverflow(session)
  }

  private func probed(_ id: Int) {
    guard case .session(let session)? = connections[id] else { return }
    session.probe.answered(at: now + configuration.readingTime)
    sendProbe(session, on: id)
  }

  func sendProbe(_ session: ServerSession, on id: Int) {
    guard session.probe.begin(behind: session.link.transmitted) else { return }
    perform(.probe(connection: id))
  }

  /// A frame, or a part of one.
  ///
  /// A long frame may come in several parts, with its messages in order. What the messages ask for once per frame is
  /// done with the part that ends it.
  package struct Frame: Sendable {
    var messages: Result<[Result<Message, MessageError>], FrameError>
    /// True if the messages are in an array.
    let isArray: Bool
    /// The number of bytes, which the part that ends a frame has for all of it.
    let size: Int
    let endsFrame: Bool

    package init(
      messages: Result<[Result<Message, MessageError>], FrameError>, isArray: Bool, size: Int = 0,
      endsFrame: Bool = true
    ) {
      (self.messages, self.isArray) = (messages, isArray)
      (self.size, self.endsFrame) = (size, endsFrame)
    }

    /// The number of messages.
    var count: Int { (try? messages.get().count) ?? 1 }
  }

  /// An input on a connection.
  package enum Input: Sendable {
    case frame(Frame)
    /// The answer to the last probe: the WebSocket at the other end has received everything in front of it.
    case probed
  }

  /// Handles what was received on a connection, in order. Everything that it leads to is sent at the end of the turn, in as
  /// few frames as its size allows.
  ///
  /// - Parameter endsTurn: false if more may come in this turn. ``endTurn()`` has to follow.
  /// - Returns: the time for which nothing more is to be read from the connection, since its client sends too much; see
  ///   ``ClientTraffic``.
  @discardableResult
  package func received(
    _ inputs: [Input], on id: Int, now: Duration, endsTurn: Bool = true
  ) -> Duration {
    self.now = now
    isHandling = true
    var sender: ServerSession?
    for input in inputs {
      // A message that ends the connection does not let its session off what came before.
      if case .session(let session)? = connections[id] { sender = session }
      switch input {
      case .frame(let frame): received(frame, on: id)
      case .probed: probed(id)
      }
    }
    if case .session(let session)? = connections[id] {
      answerOpenFetches(of: session)
      sender = session
    }
    let pause = sender.map { $0.link.hasEnded ? .zero : charge($0) } ?? .zero
    isHandling = false
    if endsTurn { flush() }
    return connections[id] == nil ? .zero : pause
  }

  /// Sends everything that the inputs of this turn have led to.
  package func endTurn() { flush() }

  private func received(_ frame: Frame, on id: Int) {
    switch connections[id] {
    case .fresh(let params, let request, _):
      create(id, params, request, frame.messages, isArray: frame.isArray)
    case .session(let session):
      session.traffic.note(bytes: frame.size)
      receive(session, frame.messages, endsFrame: frame.endsFrame)
    // A client that waits for its session has nothing to send: no version of the protocol has.
    case .authenticating: refuse(id, .unrecognizedHandshake)
    case nil: break
    }
  }

  /// Does what is due at a time: sends pings, ends expired sessions and handshakes, and sends what waits.
  package func advance(to now: Duration) {
    self.now = now
    for (id, connection) in connections {
      switch connection {
      case .fresh(_, _, let deadline) where deadline <= now:
        refuse(id, .sessionEstablishTimedOut)
      case .authenticating(let applicant) where applicant.deadline <= now:
        warn("could not find out in time who has connected", on: id)
        refuse(id, .notNow("The server is too slow", retryAfter: .seconds(1)))
      case .fresh, .authenticating, .session: break
      }
    }
    for session in Array(sessions.values) {
      endIfExpired(session)
      if session.link.hasEnded { continue }
      if session.expiresAt <= now {
        end(session, code: 4097, reason: "")
        continue
      }
      refuseLateFetches(of: session)
      if let pingAt = session.link.pingAt, pingAt <= now {
        let checks = checks(for: session)
        session.checked.formUnion(checks.map(\.scopeIndex))
        var ping = session.ping()
        (ping.told, ping.checks) = (session.told, checks)
        session.link.put(.ping(ping))
        waiting.append(session)
        schedulePing(session)
      }
      resendIfDue(session)
      endsForOverflow(session)
    }
    forgetSeen()
    dropExpired()
    advanceCalls()
    advanceOpenScopes()
    for host in hosts.values { host.states.forget(unusedSince: now - .seconds(1)) }
    flush()
  }

  func refuse(_ id: Int, _ error: WireError) {
    connections[id] = nil
    quotas.endHandshake(id)
    perform(.close(connection: id, code: 4096, reason: CloseReason.text(error)))
  }

  func touch(_ session: ServerSession) { session.expiresAt = now + configuration.expiry }

  func schedulePing(_ session: ServerSession) {
    let jitter = configuration.pingInterval * (0.2 * hooks.random() - 0.1)
    session.link.pingAt = now + configuration.pingInterval + jitter
  }

  // MARK: Sessions

  private func create(
    _ id: Int, _ params: [String: String], _ httpRequest: HTTPRequest?,
    _ frame: Result<[Result<Message, MessageError>], FrameError>, isArray: Bool
  ) {
    let message: Message
    switch frame {
    case .failure(let error):
      return refuse(id, WireError(message: "Could not parse message input: \(error)"))
    case .success(let messages):
      guard !isArray, let first = messages.first else { return refuse(id, .unrecognizedHandshake) }
      switch first {
      case .failure(let error): return refuse(id, WireError(message: "\(error)"))
      case .success(let decoded): message = decoded
      }
    }
    guard case .sessionCreate(let request) = message else {
      return refuse(id, .unrecognizedHandshake)
    }
    var info = SessionInfo(
      token: hooks.makeToken(), connectionParams: params, params: request.params,
      version: request.version, client: request.client, request: httpRequest)
    info.number = next.session
    next.session += 1
    let version = min(max(request.protocol ?? 1, 1), configuration.highestVersion)
    authenticate(
      Applicant(info: info, version: version, deadline: now + configuration.handshakeTimeout),
      on: id)
  }

  /// Begins a session on an open connection.
  func begin(_ info: SessionInfo, version: Int, on id: Int) -> ServerSession {
    let session = ServerSession(
      info: info, version: version, limit: configuration.keptLimit,
      limits: configuration.limits, connection: id, expiresAt: now + configuration.expiry)
    sessions[info.token] = session
    connections[id] = .session(session)
    quotas.endHandshake(id)
    quotas.begin(info)
    return session
  }

  /// Ends a session and releases everything it holds.
  func end(_ session: ServerSession, code: Int, reason: String) {
    // The app may have ended it when it was told of the end of another one.
    if session.link.hasEnded { return }
    if sessions.removeValue(forKey: session.info.token) != nil { quotas.end(session.info) }
    for subscription in session.subscriptions.inOrder { session.leave(subscription) }
    session.subscriptions.closeAllFetches()
    if let id = session.link.end() {
      connections[id] = nil
      perform(.close(connection: id, code: code, reason: reason))
    }
    hooks.sessionEnded(session.info)
  }

  /// Ends a session whose client cannot keep up, and reports the reason.
  func endWithWarning(_ session: ServerSession, _ reason: String) {
    warn(of: session, "\(reason); the session ends")
    end(session, code: 4097, reason: reason)
  }

  private func warn(_ text: String, on id: Int) {
    hooks.report(Diagnostic(.warning, .session, connection: id, text))
  }

  func warn(of session: ServerSession, _ text: String) {
    hooks.report(Diagnostic(.warning, .session, session: session.number, text))
  }

  /// Ends every session and closes all connections, for a server that stops.
  package func stop() {
    // The app's last changes belong in the logs, too.
    for host in hosts.values { host.content.sealAll() }
    if !isHandling { flush() }
    for session in Array(sessions.values) { end(session, code: 1001, reason: "the server stops") }
    for id in connections.keys { perform(.close(connection: id, code: 1001, reason: "")) }
    connections = [:]
    quotas = Quotas()
    for host in hosts.values { host.end() }
    hosts = [:]
    openScopes = OpenScopes(limits: configuration.openScopes)
  }
}
