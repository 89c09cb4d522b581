import Foundation

/// The client's side of the protocol as a state machine: messages, times and calls go in, actions come out. It does
/// no I/O, reads no clock and draws no random numbers of its own.
///
/// Connections and sessions end independently. Each connection has a number, which both opening and dropping one
/// increase. The engine ignores events that carry another number, so that a late frame or close event of an old
/// connection cannot affect the new one. A session outlives its connections: after a reconnect its channel sends again
/// what the server has not received. When the session itself is lost (`loseSession()`), each replica treats all its
/// pending change sets as unsent, and fetches its scope in the next session.
///
/// The messages of one frame are applied together at its end. Until then (`isReceiving`) nothing is sent: an
/// acknowledgement would cover messages that the scopes do not show yet.
package final class ClientEngine {
  package var configuration: Configuration
  let perform: (Action) -> Void
  let report: (Event) -> Void
  /// Returns a number from 0 up to 1 for jitter.
  let random: () -> Double

  package internal(set) var connection = ClientConnection()
  package internal(set) var session = ClientSession()
  package var credentials = ClientCredentials()
  /// The app's refusal to let the client use the network, while it lasts.
  var deferral: Deferral?
  var replicas: [Replica] = []
  /// The highest number given to a change set of a scope that is no longer synced, by the scope's name.
  var lastNumbers: [String: Int] = [:]
  /// The completions of fetches that have no state yet.
  var completions: [ObjectIdentifier: (Result<Void, SyncError>) -> Void] = [:]
  /// The number of the last caller that waits, or has waited, for a sync.
  var lastWaiter = 0
  /// The number of pending change sets that was last reported.
  var waitingReplies = 0
  /// True while a frame is being handled. Its messages count as received but are not visible yet, so nothing is
  /// sent.
  var isReceiving = false
  /// The largest frame that was sent on this connection.
  var largestFrame = SentFrame()
  /// The size of the smallest message that the server was found to refuse; see ``refuseLargest(_:)``.
  var refusedBytes = Int.max
  var now: Duration = .zero

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

  /// Begins to connect. While there is no session, the next one is asked for with `params`.
  package func connect(params: JSONValue, now: Duration) {
    self.now = now
    guard status == .offline else {
      guard session.token == nil, credentials.params != params else { return }
      credentials.params = params
      // The server was asked with the earlier ones, and may grant that session: another connection asks once more.
      if connection.isCreating, credentials.presented?.params == nil { open() }
      return
    }
    credentials.begin(params)
    refusedBytes = .max
    // A handler may have closed the client while it was sending, so that messages were numbered since.
    session.end()
    connection.enter(.idle(after: nil))
    open()
  }

  /// Ends the session and all syncing. Pending changes stay visible in their scopes.
  package func close() {
    // The log of a scope has a change only once a change set has it.
    for replica in replicas { replica.scope.sealAllChanges() }
    // Scopes that have a log may be fetched after the client was closed.
    guard connection.state != .closed || !replicas.isEmpty else { return }
    let error = SyncError.sessionClosed(reason: "it was closed here")
    end(error)
    report(.ended(error))
  }

  /// Starts syncing `scope`. Calls `completion` once the server's state is applied.
  ///
  /// - Returns: the replica; nil if the scope is already synced, also as another ``Scope``, or `connect` was not called.
  @discardableResult
  package func fetch(
    _ scope: Scope, params: JSONValue, mode: SyncMode = .realtime, now: Duration,
    completion: @escaping (Result<Void, SyncError>) -> Void
  ) -> Replica? {
    self.now = now
    guard status != .offline else {
      completion(.failure(.notConnected))
      return nil
    }
    guard !isSynced(scope, params) else {
      completion(.failure(.alreadyFetched(scope: scope.name)))
      return nil
    }
    let replica = makeReplica(scope, params, mode)
    replica.pending.lastNumber = lastNumbers[scope.name] ?? 0
    sync(replica, completion)
    return replica
  }

  /// Starts syncing a scope that has a log: restores `history`, and passes each new record to `store`. No change set
  /// is sent before ``Replica/stored(_:)`` reports its record as durable. The client need not be connected. If the
  /// history has no state, `completion` is called when the server has sent one.
  ///
  /// - Returns: the replica; nil if the scope is already synced, also as another ``Scope``.
  /// - Throws: ``ScopeError`` if the history does not belong to the scope.
  @discardableResult
  package func fetch(
    _ scope: Scope, params: JSONValue, mode: SyncMode = .realtime, history: ReplicaHistory?,
    now: Duration, store: @escaping (ReplicaRecord) -> Void,
    completion: @escaping (Result<Void, SyncError>) -> Void
  ) throws(ScopeError) -> Replica? {
    self.now = now
    guard !isSynced(scope, params) else {
      completion(.failure(.alreadyFetched(scope: scope.name)))
      return nil
    }
    let replica = makeReplica(scope, params, mode)
    replica.journal.store = store
    if let history {
      do throws(ScopeError) {
        try replica.restore(history)
      } catch {
        replica.end("its history is not one of the scope")
        throw error
      }
    } else {
      replica.takeNewIdentity(configuration.makeClientID())
    }
    sync(replica, completion)
    if replica.progress.hasBase { complete(replica, .success(())) }
    updateWaitingReplies()
    return replica
  }

  private func makeReplica(_ scope: Scope, _ params: JSONValue, _ mode: SyncMode) -> Replica {
    let replica = Replica(
      scope: scope, params: params, clientID: configuration.clientID,
      ownWrites: configuration.limits.ownWrites,
      departedModels: configuration.limits.departedModels,
      mode: mode, dialect)
    replica.delegate = self
    replica.journal.decisionsPerRecord = configuration.limits.decisionsPerRecord
    return replica
  }

  private func sync(_ replica: Replica, _ completion: @escaping (Result<Void, SyncError>) -> Void) {
    replicas.append(replica)
    completions[ObjectIdentifier(replica)] = completion
    replica.schedule.schedulePoll(now: now)
    if session.stillSends(replica.scope.name) {
      // A session of version 1 would send every change of the scope twice.
      loseSession()
      retry(reason: "scope \(replica.scope.name) was left in this session")
    } else if status == .online {
      send(fetch: replica)
    }
    wakeUp()
    reportStates()
  }

  /// The number of change sets of all scopes that are not confirmed.
  package var pendingCount: Int { replicas.reduce(0) { $0 + $1.pending.count } }

  package var scopes: [Scope] { replicas.map(\.scope) }

  // MARK: The transport's events

  package func opened(_ number: Int, now: Duration) {
    guard number == connection.number, connection.state == .connecting else { return }
    self.now = now
    largestFrame = SentFrame()
    heard(arrived: 0)
    let due = now + configuration.handshakeTimeout
    if session.token == nil {
      transmit([
        session[0].messages.stamp(
          .sessionCreate(
            SessionCreate(
              version: configuration.version,
              params: credentials.presented?.params ?? credentials.params,
              protocol: configuration.highestVersion > 1 ? configuration.highestVersion : nil,
              client: configuration.highestVersion > 1 ? configuration.clientID : nil)))
      ])
      enter(.creating(due: due))
    } else {
      for channel in session.openChannels {
        transmit([session.resume(channel, takeAllSeen(in: channel))], in: channel)
      }
      enter(.resuming(due: due))
    }
  }

  /// Handles a frame of `size` bytes.
  ///
  /// - Parameter arrived: the number of bytes that have arrived on the connection so far; see ``advance(to:arrived:)``.
  package func received(
    _ number: Int, _ frame: Result<[Result<Message, MessageError>], FrameError>, channel: Int = 0,
    size: Int = 0, arrived: Int = 0, now: Duration
  ) {
    guard number == connection.number else { return }
    self.now = now
    heard(arrived: arrived)
    guard session.uses(channel) else {
      return diagnose(
        .warning, .session, "skipped a frame of channel \(channel), which the session does not have"
      )
    }
    session[channel].early.note(bytes: size)
    switch frame {
    case .failure(let error):
      diagnose(.warning, .session, "skipped a frame without messages: \(error)")
    case .success(let messages):
      isReceiving = true
      for message in messages {
        guard number == connection.number else { break }
        switch message {
        case .failure(let error): handle(error, in: channel)
        case .success(let message): handle(message, in: channel)
        }
      }
      for replica in replicas { replica.finishBatch() }
      isReceiving = false
      takeNewIdentities()
      for place in session.takeTold() {
        replica(place.scopeIndex)?.noteTold(upTo: place.sequence)
      }
      compareReplicas()
      if status == .online {
        sendWaiting()
      } else {
        reportStates()
      }
    }
  }

  /// Handles the end of a connection, or a failed attempt to open one. `code` is 0 without a close frame. The client
  /// waits at least `retryAfter` before it tries again, and gives up if `isPermanent` is true before the first
  /// session since the app has had it connect.
  package func closed(
    _ number: Int, code: Int, reason: String, retryAfter: Duration = .zero,
    isPermanent: Bool = false, refusesCredentials: Bool = false, now: Duration
  ) {
    guard number == connection.number else { return }
    self.now = now
    let error = (try? JSONValue(parsing: reason)).flatMap { try? WireError(json: $0) }
    let pause = max(retryAfter, error?.retryAfter ?? .zero)
    let isTokenUnknown = error?.type == WireError.sessionTokenUnrecognized.type
    switch code {
    case 4097:
      loseSession()
      retry(reason: "the session expired", after: pause)
    case 4096 where isTokenUnknown:
      // Pending requests continue in another session, which the server has not refused.
      let hadToken = session.token != nil
      loseSession()
      let reason = "the server does not know the session any more"
      // A server that says so to a client that has shown it none is not asked at once.
      guard hadToken else { return retry(reason: reason, after: pause) }
      diagnose(.warning, .connection, reason)
      connection.problem = reason
      open()
      reportStates()
    case 4096 where error?.type == WireError.sessionEstablishTimedOut.type:
      // The client's handshake arrived too late, or not at all.
      retry(reason: "the server has waited too long for the handshake")
    case _ where configuration.hasCredentials && (refusesCredentials || error?.denial == .notYou):
      refuseCredentials(error?.message ?? reason, after: pause)
    case _ where isPermanent && !credentials.hasHadSession:
      giveUp(.connectionFailed(reason: reason))
    case _ where pause > .zero:
      retry(reason: error?.message ?? reason, after: pause)
    case 4096 where connection.isCreating || session.token == nil:
      deny(.sessionDenied(reason: error?.message ?? reason))
    case 4096:
      deny(.sessionClosed(reason: error?.message ?? reason))
    case 1009:
      refuseLargest(reason)
    default:
      retry(reason: reason.isEmpty ? "the connection was lost" : reason)
    }
  }

  /// The time at which ``advance(to:)`` has something to do next.
  package var nextDeadline: Duration? {
    let poll = replicas.lazy.compactMap(\.schedule.pollDue).min()
    return [connection.deadline, deferral?.until, refetchDue, poll].compactMap(\.self).min()
  }

  /// Does what is due.
  ///
  /// - Parameter arrived: the number of bytes that have arrived on the connection so far, if the transport counts them. If
  ///   there are more than before, the server lives, although the message that they belong to takes long.
  package func advance(to now: Duration, arrived: Int = 0) {
    self.now = now
    if arrived > connection.arrived { heard(arrived: arrived) }
    switch connection.step(at: now) {
    case .open: open()
    case .fail(let reason): retry(reason: reason)
    case .ping:
      for channel in session.openChannels {
        let ping = session.ping(
          in: channel, acknowledging: knowledge(in: channel), takeAllSeen(in: channel))
        transmit([ping], in: channel)
      }
      enter(.online(pingDue: nextPing))
    case nil: break
    }
    if let due = refetchDue, due <= now { fetchMissing() }
    if let until = deferral?.until, until <= now { reconsider(now: now) }
    poll()
  }
}
