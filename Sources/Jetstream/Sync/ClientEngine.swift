import Foundation

/// The client's side of the protocol as a state machine: messages, times and calls go in, actions
/// come out. It does no I/O, reads no clock and draws no random numbers of its own.
package final class ClientEngine {
  /// What the owner has to do.
  package enum Action {
    /// Open a connection, resuming the session with `token` if there is one. Everything that comes
    /// from it is given back with the same number, so that a late event of an old one is told apart.
    case connect(number: Int, token: String?)
    /// Send one frame.
    case send([UInt8])
    /// Close the connection.
    case disconnect
  }

  /// What the owner may want to tell the app.
  package enum Event {
    case statusChanged(ClientStatus)
    case sessionCreated(token: String)
    case sessionDenied(SyncError)
    case rejected(Scope, SyncFragment, WireError)
    /// A message that was skipped, in words.
    case skipped(String)
    case waitingRepliesChanged(Int)
  }

  /// Times, and what is told to the server.
  package struct Configuration {
    package var version = "0.2.0"
    package var pingInterval: Duration = .seconds(10)
    package var handshakeTimeout: Duration = .seconds(10)
    /// A connection on which nothing arrives for this long is taken for dead.
    package var silenceLimit: Duration = .seconds(32)
    package var backoff = Backoff()

    package init() {}
  }

  enum State {
    case idle
    case connecting
    /// SessionCreate was sent.
    case creating
    /// The session's token was presented; the server has not told yet what it has received.
    case resuming
    case online
    case waiting
    case closed
  }

  let configuration: Configuration
  let perform: (Action) -> Void
  let report: (Event) -> Void
  /// Gives a number from 0 up to 1 for jitter.
  let random: () -> Double

  private(set) var state = State.idle
  private var connection = 0
  private var failures = 0
  private var channel = ReliableChannel(side: .client)
  private var lastAckSent = 0
  package private(set) var token: String?
  private var params: JSONValue = .object([:])
  private(set) var replicas: [Replica] = []
  private var fetches: [Int: Replica] = [:]
  private var completions: [ObjectIdentifier: (Result<Void, SyncError>) -> Void] = [:]
  private var waitingReplies = 0

  private var pingDue: Duration?
  private var silenceDue: Duration?
  private var retryDue: Duration?
  private var handshakeDue: Duration?
  private var now: Duration = .zero

  package init(
    configuration: Configuration = Configuration(), random: @escaping () -> Double,
    perform: @escaping (Action) -> Void, report: @escaping (Event) -> Void
  ) {
    self.configuration = configuration
    self.random = random
    self.perform = perform
    self.report = report
  }

  // MARK: Calls

  package func connect(params: JSONValue, now: Duration) {
    self.now = now
    guard state == .idle || state == .closed else { return }
    self.params = params
    failures = 0
    open()
  }

  /// Ends the session and all syncing; what is pending stays with its scopes.
  package func close() {
    guard state != .closed else { return }
    end(.sessionClosed("it was closed here"))
  }

  /// Syncs `scope` from now on. `completion` is called once the server's state is applied.
  package func fetch(
    _ scope: Scope, params: JSONValue, now: Duration,
    completion: @escaping (Result<Void, SyncError>) -> Void
  ) {
    self.now = now
    guard state != .idle, state != .closed else { return completion(.failure(.notConnected)) }
    guard !replicas.contains(where: { $0.scope === scope }) else {
      return completion(.failure(.alreadyFetched(scope.name)))
    }
    let replica = Replica(scope: scope, params: params)
    replica.onPending = { [weak self] in self?.sendWaiting() }
    replica.onRejected = { [weak self, unowned scope] in self?.report(.rejected(scope, $0, $1)) }
    replicas.append(replica)
    completions[ObjectIdentifier(replica)] = completion
    if state == .online { send(fetch: replica) }
  }

  /// How many change sets of all scopes the server has not decided yet.
  package var pendingCount: Int { replicas.reduce(0) { $0 + $1.pending.count } }

  /// The connection whose events count.
  package var currentConnection: Int { connection }

  package var scopes: [Scope] { replicas.map(\.scope) }

  // MARK: The transport's events

  package func opened(_ number: Int, now: Duration) {
    guard number == connection, state == .connecting else { return }
    self.now = now
    heard()
    handshakeDue = now + configuration.handshakeTimeout
    if token == nil {
      channel = ReliableChannel(side: .client)
      lastAckSent = 0
      transmit([
        channel.stamp(
          .sessionCreate(SessionCreate(version: configuration.version, params: params)))
      ])
      enter(.creating)
    } else {
      // What a lost change set did not know of is acknowledged only behind that set.
      lastAckSent = min(replicas.compactMap(\.oldestSeen).min() ?? .max, channel.highestReceived)
      transmit([channel.ping(acknowledging: lastAckSent, resendMissing: true)])
      enter(.resuming)
    }
  }

  package func received(
    _ number: Int, _ frame: Result<[Result<Message, MessageError>], FrameError>, now: Duration
  ) {
    guard number == connection else { return }
    self.now = now
    heard()
    switch frame {
    case .failure(let error):
      report(.skipped("a frame that holds no messages: \(error)"))
    case .success(let messages):
      for message in messages {
        guard number == connection else { break }
        switch message {
        case .failure(let error): report(.skipped("\(error)"))
        case .success(let message): handle(message)
        }
      }
      for replica in replicas { replica.finishBatch(upTo: channel.highestReceived) }
      if state == .online { sendWaiting() }
    }
  }

  /// The connection is gone, or could not be made. `code` is 0 without a close frame.
  package func closed(_ number: Int, code: Int, reason: String, now: Duration) {
    guard number == connection else { return }
    self.now = now
    let error = (try? JSONValue(parsing: reason)).flatMap { try? WireError(json: $0) }
    let isTokenUnknown = error?.type == WireError.sessionTokenUnrecognized.type
    switch code {
    case 4097:
      loseSession()
      retry(reason: "the session expired")
    case 4096 where isTokenUnknown:
      loseSession()
      retry(reason: "the server does not know the session any more")
    case 4096 where state == .creating || token == nil:
      end(.sessionDenied(error?.message ?? reason))
    case 4096:
      end(.sessionClosed(error?.message ?? reason))
    default:
      retry(reason: reason.isEmpty ? "the connection was lost" : reason)
    }
  }

  /// When ``advance(to:)`` has something to do next.
  package var nextDeadline: Duration? {
    [pingDue, silenceDue, retryDue, handshakeDue].compactMap(\.self).min()
  }

  package func advance(to now: Duration) {
    self.now = now
    if let due = retryDue, due <= now {
      retryDue = nil
      open()
    }
    if let due = handshakeDue, due <= now {
      retry(reason: "the server did not answer the handshake")
    }
    if let due = silenceDue, due <= now { retry(reason: "the server fell silent") }
    if let due = pingDue, due <= now {
      transmit([channel.ping(resendMissing: false)])
      lastAckSent = channel.highestReceived
      schedulePing()
    }
  }

  // MARK: Connection

  private func enter(_ new: State) {
    state = new
    report(.statusChanged(status))
  }

  package var status: ClientStatus {
    switch state {
    case .idle, .closed: .offline
    case .connecting, .creating, .resuming: .connecting
    case .online: .online
    case .waiting: .waiting
    }
  }

  private func open() {
    connection += 1
    enter(.connecting)
    perform(.connect(number: connection, token: token))
  }

  private func heard() { silenceDue = now + configuration.silenceLimit }

  private func retry(reason: String) {
    drop()
    let delay = configuration.backoff.delay(failure: failures, random: random())
    failures += 1
    retryDue = now + delay
    enter(.waiting)
    report(.skipped("connection \(connection): \(reason); trying again in \(delay)"))
  }

  /// Leaves the connection; what comes from it later is not ours any more.
  private func drop() {
    let wasOpen = state != .idle && state != .waiting && state != .closed
    connection += 1
    pingDue = nil
    silenceDue = nil
    handshakeDue = nil
    retryDue = nil
    if wasOpen { perform(.disconnect) }
  }

  private func loseSession() {
    token = nil
    fetches = [:]
    for replica in replicas { replica.sessionEnded() }
  }

  private func end(_ error: SyncError) {
    drop()
    token = nil
    fetches = [:]
    let ended = replicas
    replicas = []
    let waiting = completions
    completions = [:]
    enter(.closed)
    for replica in ended { replica.end() }
    for completion in waiting.values { completion(.failure(error)) }
    report(.sessionDenied(error))
  }

  private func schedulePing() {
    let jitter = configuration.pingInterval * (0.2 * random() - 0.1)
    pingDue = now + configuration.pingInterval + jitter
  }

  // MARK: Messages

  private func handle(_ message: Message) {
    if state == .creating {
      guard case .sessionCreateReply(let reply) = message else {
        return report(.skipped("\(message.type) before the session was created"))
      }
      return begin(reply)
    }
    if case .ping(let ping) = message { return handle(ping) }
    switch channel.receive(index: message.index) {
    case .duplicate: return
    case .gap(let expected):
      retry(reason: "message \(expected) is missing before \(message.index)")
      return
    case .process: break
    }
    switch message {
    case .scopeFetchReply(let reply): handle(reply)
    case .scopeState(let state):
      guard let replica = replica(state.scopeIndex) else { return }
      handle(state, for: replica)
    case .scopeSync(let sync):
      replica(sync.scopeIndex)?.receive(sync.fragments)
    case .scopeSyncReply(let reply):
      for replica in replicas
      where replica.receiveReply(to: reply.replyTo, reply.fragmentReplies) { break }
      updateWaitingReplies()
    case .ping, .sessionCreate, .sessionCreateReply, .scopeFetch:
      report(.skipped("\(message.type), which a server does not send in a session"))
    }
  }

  private func begin(_ reply: SessionCreateReply) {
    switch reply.result {
    case .failure(let error): end(.sessionDenied(error.message))
    case .success(let token):
      self.token = token
      becomeOnline()
      report(.sessionCreated(token: token))
      for replica in replicas { send(fetch: replica) }
    }
  }

  private func becomeOnline() {
    failures = 0
    handshakeDue = nil
    schedulePing()
    enter(.online)
  }

  private func handle(_ ping: Ping) {
    let missing = channel.receive(ping)
    for message in missing {
      let seen = replicas.lazy.compactMap { $0.seen(byMessage: message.index) }.first
      transmit(acknowledgement(upTo: seen ?? 0) + [message])
    }
    if state == .resuming, ping.resendMissing {
      becomeOnline()
      for replica in replicas where replica.scopeIndex == nil && !isFetching(replica) {
        send(fetch: replica)
      }
    }
  }

  private func handle(_ reply: ScopeFetchReply) {
    guard let replica = fetches.removeValue(forKey: reply.replyTo) else { return }
    switch reply.result {
    case .success(let index): replica.scopeIndex = index
    case .failure(let error):
      replica.end()
      replicas.removeAll { $0 === replica }
      complete(replica, .failure(.scopeDenied(replica.scope.name, error)))
    }
  }

  private func handle(_ state: ScopeState, for replica: Replica) {
    do throws(ScopeError) {
      try replica.receiveState(state.fragments, rootUUID: state.rootUUID, index: state.index)
      complete(replica, .success(()))
    } catch {
      replica.end()
      replicas.removeAll { $0 === replica }
      complete(replica, .failure(.invalidReply("\(error)")))
    }
  }

  private func complete(_ replica: Replica, _ result: Result<Void, SyncError>) {
    completions.removeValue(forKey: ObjectIdentifier(replica))?(result)
  }

  private func replica(_ index: Int) -> Replica? { replicas.first { $0.scopeIndex == index } }

  private func isFetching(_ replica: Replica) -> Bool { fetches.values.contains { $0 === replica } }

  // MARK: Sending

  private func send(fetch replica: Replica) {
    let message = channel.stamp(
      .scopeFetch(ScopeFetch(name: replica.scope.name, params: replica.params)))
    fetches[message.index] = replica
    transmit([message])
  }

  /// Sends the change sets that wait, in the order in which they were made.
  private func sendWaiting() {
    guard state == .online else { return updateWaitingReplies() }
    while let (replica, seen) = nextToSend(), let scopeIndex = replica.scopeIndex {
      replica.sendNext { set in
        let message = channel.stamp(
          .scopeSync(ScopeSync(scopeIndex: scopeIndex, fragments: set.fragments)))
        transmit(acknowledgement(upTo: seen) + [message])
        return message.index
      }
    }
    updateWaitingReplies()
  }

  private func nextToSend() -> (Replica, seen: Int)? {
    var next: (Replica, seen: Int)?
    for replica in replicas {
      if let seen = replica.nextSeen, seen < next?.seen ?? .max { next = (replica, seen) }
    }
    return next
  }

  /// The ping in front of a change set. It tells the server what the set was made in sight of, and
  /// no more, although more may have come since: so the server knows which elements of a collection
  /// were left out on purpose.
  private func acknowledgement(upTo index: Int) -> [Message] {
    guard index > lastAckSent else { return [] }
    lastAckSent = index
    return [channel.ping(acknowledging: index, resendMissing: false)]
  }

  private func updateWaitingReplies() {
    let count = pendingCount
    guard count != waitingReplies else { return }
    waitingReplies = count
    report(.waitingRepliesChanged(count))
  }

  private func transmit(_ messages: [Message]) {
    perform(.send(Message.encodeFrame(messages, asArray: false)))
  }
}
