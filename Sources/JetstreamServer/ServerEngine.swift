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
  }

  /// Timeouts and limits.
  package struct Configuration {
    package var pingInterval: Duration = .seconds(10)
    /// The time after which the script of an old client is taken to have read what its WebSocket has received;
    /// see ``ScriptProbe``.
    package var readingTime: Duration = .seconds(1)
    package var handshakeTimeout: Duration = .seconds(10)
    /// The time after which a session is ended if its client has sent nothing.
    package var expiry: Duration = .seconds(600)
    /// The time after which a session without a connection is ended if it has never fetched a scope.
    package var unusedExpiry: Duration = .seconds(5)
    /// The messages and bytes that may wait for a client's acknowledgement. A session that exceeds this is ended.
    package var keptLimit = ReliableChannel.Limit()
    /// The messages and bytes that may wait for a client of version 1 without a connection. Nothing waits for clients
    /// of version 2: they are sent the change sets of the scope's stream when they come back.
    package var absentLimit = ReliableChannel.Limit(messages: 256, bytes: 256 << 10)
    /// The messages and bytes after which received messages are acknowledged before the next ping is due: a client
    /// keeps what it has sent until then.
    package var acknowledgeAfter = ReliableChannel.Limit.acknowledgement
    /// The approximate size in bytes of a message with a part of a state. Up to sixteen of them are on their way at a
    /// time.
    package var stateBytes = 256 << 10
    /// The approximate maximum size in bytes of a frame with several messages.
    package var frameBytes = 1 << 20
    /// The largest number of sessions at one time.
    package var maxSessions = 100_000
    /// The largest number of scopes that one session may fetch.
    package var maxScopesPerSession = 256
    /// The number of clients, at least, whose decisions each scope keeps; more if more have sessions.
    package var rememberedClients = 100_000
    /// The amount of change sets that each scope keeps in its stream. A client that has missed more gets the full state.
    package var streamLimit = ScopeStream.Limit(sets: 4096, bytes: 16 << 20)
    /// The highest protocol version that the server speaks.
    package var highestVersion = 2

    package init() {}
  }

  /// The functions that the owner provides.
  package struct Hooks {
    package var authorize: (SessionInfo) -> Server.Authorization
    package var fetch: (SessionInfo, String, JSONValue) -> Result<any Hostable, WireError>
    package var report: (Diagnostic) -> Void
    /// Makes a session token, which must be impossible to guess.
    package var makeToken: () -> String
    /// Makes the name of a new epoch.
    package var makeEpoch: () -> String
    /// Returns a random number from 0 up to 1, for jitter.
    package var random: () -> Double
    /// Returns the current date, for change sets without one; nil to give them none.
    package var date: () -> Date?
    package var sessionEnded: (SessionInfo) -> Void

    package init(
      authorize: @escaping (SessionInfo) -> Server.Authorization = { _ in .accepted() },
      fetch: @escaping (SessionInfo, String, JSONValue) -> Result<any Hostable, WireError>,
      report: @escaping (Diagnostic) -> Void = { _ in },
      makeToken: @escaping () -> String,
      makeEpoch: @escaping () -> String = { UUID().wireText },
      random: @escaping () -> Double,
      date: @escaping () -> Date? = { nil },
      sessionEnded: @escaping (SessionInfo) -> Void = { _ in }
    ) {
      self.authorize = authorize
      self.fetch = fetch
      self.report = report
      self.makeToken = makeToken
      self.makeEpoch = makeEpoch
      self.random = random
      self.date = date
      self.sessionEnded = sessionEnded
    }
  }

  enum Connection {
    /// No message was received yet.
    case fresh(params: [String: String], request: HTTPRequest?, deadline: Duration)
    case session(ServerSession)
  }

  let configuration: Configuration
  let hooks: Hooks
  let perform: (Action) -> Void
  var connections: [Int: Connection] = [:]
  var sessions: [String: ServerSession] = [:]
  var hosts: [ObjectIdentifier: ScopeHost] = [:]
  var now: Duration = .zero
  private var nextSession = 1
  /// Sessions with something in their outbox.
  var waiting: [ServerSession] = []
  /// True while an input is handled; what it leads to is sent at its end.
  var isHandling = false
  /// The number of the next hosted scope.
  var nextScope = 0
  /// The scopes with change sets that their sessions of version 2 are told at the end of this turn.
  var hostsWithNews: [ScopeHost] = []
  /// The scopes of which a part of a state is being encoded, by number.
  var encoding: [Int: ScopeHost] = [:]
  /// The actions that are performed behind all others of this turn.
  var lastActions: [Action] = []
  /// The scopes that the app hosts, whether or not a session has fetched them.
  var pinned: Set<ObjectIdentifier> = []

  package init(
    configuration: Configuration = Configuration(), hooks: Hooks,
    perform: @escaping (Action) -> Void
  ) {
    self.configuration = configuration
    self.hooks = hooks
    self.perform = perform
  }

  deinit {
    // Subscriptions and hosts know each other.
    for host in hosts.values {
      host.audience.removeAll()
      host.states = ScopeStates()
      host.records.forgetWaiting()
      host.onLocalChanges = nil
    }
  }

  package var sessionCount: Int { sessions.count }
  package var connectionCount: Int { connections.count }

  // MARK: Connections

  /// Takes a new connection. A connection with the token of a session replaces the session's earlier one.
  ///
  /// `params` are its `x-jetstream-` parameters without that prefix; `request` is the HTTP request that has opened it,
  /// if there was one. After a resume nothing is sent until the client has sent something: it says then what it has
  /// received.
  package func opened(
    _ id: Int, params: [String: String], request: HTTPRequest? = nil, now: Duration
  ) {
    self.now = now
    let token = params["sessiontoken"] ?? ""
    guard !token.isEmpty else {
      connections[id] = .fresh(
        params: params, request: request, deadline: now + configuration.handshakeTimeout)
      return
    }
    guard let session = sessions[token] else { return refuse(id, .sessionTokenUnrecognized) }
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
    if case .session(let session)? = connections.removeValue(forKey: id) { detach(session) }
  }

  /// Takes the connection from a session, which goes on without one until it expires.
  func detach(_ session: ServerSession) {
    if let id = session.link.disconnect() { connections[id] = nil }
    session.probe.stop()
    if !session.subscriptions.wereUsed { session.expiresAt = now + configuration.unusedExpiry }
    endsForOverflow(session)
  }

  private func probed(_ id: Int) {
    guard case .session(let session)? = connections[id] else { return }
    session.probe.answered(at: now + configuration.readingTime)
    sendProbe(session, on: id)
  }

  private func sendProbe(_ session: ServerSession, on id: Int) {
    guard session.probe.begin(behind: session.link.transmitted) else { return }
    perform(.probe(connection: id))
  }

  /// A frame, or a part of one.
  ///
  /// A long frame may come in several parts, with its messages in order. What the messages ask for once per frame is
  /// done with the part that ends it.
  package struct Frame: Sendable {
    let messages: Result<[Result<Message, MessageError>], FrameError>
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
  package func received(_ inputs: [Input], on id: Int, now: Duration, endsTurn: Bool = true) {
    self.now = now
    isHandling = true
    for input in inputs {
      switch input {
      case .frame(let frame): received(frame, on: id)
      case .probed: probed(id)
      }
    }
    if case .session(let session)? = connections[id] { answerOpenFetches(of: session) }
    isHandling = false
    if endsTurn { flush() }
  }

  /// Sends everything that the inputs of this turn have led to.
  package func endTurn() { flush() }

  private func received(_ frame: Frame, on id: Int) {
    switch connections[id] {
    case .fresh(let params, let request, _):
      create(id, params, request, frame.messages, isArray: frame.isArray)
    case .session(let session):
      session.acknowledgement.note(bytes: frame.size)
      receive(session, frame.messages, endsFrame: frame.endsFrame)
    case nil: break
    }
  }

  /// Does what is due at a time: sends pings, ends expired sessions and handshakes, and sends what waits.
  package func advance(to now: Duration) {
    self.now = now
    for (id, connection) in connections {
      if case .fresh(_, _, let deadline) = connection, deadline <= now {
        refuse(id, .sessionEstablishTimedOut)
      }
    }
    for session in Array(sessions.values) {
      if session.expiresAt <= now {
        end(session, code: 4097, reason: "")
        continue
      }
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
    for host in hosts.values { host.states.forget(unusedSince: now - .seconds(1)) }
    flush()
  }

  func refuse(_ id: Int, _ error: WireError) {
    connections[id] = nil
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
    let answer =
      sessions.count < configuration.maxSessions
      ? hooks.authorize(info) : .denied(.tooManySessions)
    switch answer {
    case .accepted(let author): info.author = author
    case .denied(let denial):
      let reply = Message.sessionCreateReply(SessionCreateReply(error: denial))
      perform(.send(connections: [id], Message.encodeFrame([reply], asArray: true)))
      return refuse(id, denial)
    }
    let version = min(max(request.protocol ?? 1, 1), configuration.highestVersion)
    let session = ServerSession(
      number: nextSession, info: info, version: version, limit: configuration.keptLimit,
      connection: id, expiresAt: now + configuration.expiry)
    nextSession += 1
    sessions[info.token] = session
    connections[id] = .session(session)
    perform(.admit(connection: id))
    schedulePing(session)
    post(
      session,
      .sessionCreateReply(
        SessionCreateReply(sessionToken: info.token, protocol: version > 1 ? version : nil)))
  }

  /// Ends a session and releases everything it holds.
  func end(_ session: ServerSession, code: Int, reason: String) {
    sessions[session.info.token] = nil
    for subscription in session.subscriptions.inOrder { session.leave(subscription) }
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

  func warn(of session: ServerSession, _ text: String) {
    hooks.report(Diagnostic(.warning, .session, session: session.number, text))
  }

  /// Ends every session and closes all connections, for a server that stops.
  package func stop() {
    // The app's last changes belong in the logs, too.
    for host in hosts.values { host.content.seal() }
    for session in Array(sessions.values) { end(session, code: 1001, reason: "the server stops") }
    for id in connections.keys { perform(.close(connection: id, code: 1001, reason: "")) }
    connections = [:]
    for host in hosts.values { host.end() }
    hosts = [:]
  }

  // MARK: Sending

  func post(_ session: ServerSession, _ message: Message) {
    session.queue(message)
    waiting.append(session)
  }

  /// Notes that a session has something in its outbox.
  func wait(for session: ServerSession) {
    if waiting.last !== session { waiting.append(session) }
  }

  /// Sends each session the messages of this turn, in as few frames as their size allows.
  func flush() {
    tellNews()
    var sessions: [ServerSession] = []
    swap(&sessions, &waiting)
    defer {
      if waiting.isEmpty {
        sessions.removeAll(keepingCapacity: true)
        swap(&sessions, &waiting)
      }
    }
    for session in sessions where !session.link.outbox.isEmpty {
      if endsForOverflow(session) { continue }
      guard let (id, outbox) = session.link.takeOutbox(upTo: session.channel.highestSent) else {
        continue
      }
      for frame in frames(of: outbox) { perform(.send(connections: [id], frame)) }
      sendProbe(session, on: id)
    }
    let last = lastActions
    lastActions = []
    for action in last { perform(action) }
  }

  /// Sends the change sets of this turn to all sessions of version 2 that listen. They go out in front of what is queued
  /// later, and behind what is queued already.
  func tellNews() {
    let hosts = hostsWithNews
    hostsWithNews = []
    for host in hosts {
      guard let run = host.audience.takeNews() else { continue }
      let end = StreamPlace(run.last, in: host.stream)
      var connections: [Int] = []
      for (_, subscription) in host.audience.listeners {
        switch subscription.session.offer(run, upTo: end, of: subscription) {
        case .alone(let connection): connections.append(connection)
        case .queued: wait(for: subscription.session)
        case .refused: break
        }
      }
      if connections.isEmpty { continue }
      for part in run.parts(after: run.start, upTo: run.last) {
        perform(.send(connections: connections, Outgoing.frame(of: [.news(part)])))
      }
    }
  }

  /// Ends a session if too much waits for its client.
  ///
  /// - Returns: true if it was ended.
  @discardableResult
  func endsForOverflow(_ session: ServerSession) -> Bool {
    guard !session.link.hasEnded,
      session.channel.isOverflowing || hasMissedTooMuch(session)
        || session.subscriptions.openFetchCount > configuration.keptLimit.messages
    else { return false }
    endWithWarning(session, "too much is not acknowledged")
    return true
  }

  /// Returns whether more waits for a session of version 1 without a connection than may.
  private func hasMissedTooMuch(_ session: ServerSession) -> Bool {
    let limit = configuration.absentLimit
    guard session.link.connection == nil, session.version == 1 else { return false }
    return session.channel.exceeds(limit)
      || session.subscriptions.all.contains { $0.hasMissed(moreThan: limit) }
  }

  /// Returns what goes out in frames of at most about ``Configuration/frameBytes``; mostly that is one frame.
  private func frames(of outbox: [Outgoing]) -> [[UInt8]] {
    if outbox.count == 1 { return [Outgoing.frame(of: outbox[...])] }
    var frames: [[UInt8]] = []
    var (start, size) = (0, 0)
    for (at, entry) in outbox.enumerated() {
      let more = entry.roughSize
      if at > start, size + more > configuration.frameBytes {
        frames.append(Outgoing.frame(of: outbox[start..<at]))
        (start, size) = (at, 0)
      }
      size += more
    }
    return frames + [Outgoing.frame(of: outbox[start...])]
  }
}

/// Shortens close reasons to the 123 bytes that fit into a control frame.
enum CloseReason {
  static func text(_ error: WireError) -> String {
    var error = error
    while error.json.text.utf8.count > 123, !error.message.isEmpty {
      error.message.removeLast(min(8, error.message.count))
    }
    return error.json.text
  }
}
