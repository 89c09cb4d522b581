import Jetstream
import JetstreamWebSocket

/// The limits on what clients may have and send.
extension ServerEngine {
  /// Counts that a limit was reached, and returns its error.
  func reached(_ limit: ServerLimit) -> WireError {
    hooks.limitReached(limit)
    guard let error = limit.error else {
      preconditionFailure("What exceeds \(limit) is not refused.")
    }
    return error
  }

  /// Ends a session that has exceeded a limit. Its client begins another one.
  func endOverLimit(_ session: ServerSession, _ limit: ServerLimit) {
    let error = reached(limit)
    warn(of: session, "\(error.message); the session ends")
    end(session, code: 4097, reason: CloseReason.text(error))
  }

  // MARK: Rates

  /// Charges what a session has sent to its rates; see ``ClientTraffic``.
  ///
  /// - Returns: the time for which the session's connection is not to be read. The session lives on for longer.
  func charge(_ session: ServerSession) -> Duration {
    if holdsBack(session) {
      hooks.limitReached(.unstoredBytes)
      session.traffic.load.pause = max(session.traffic.load.pause, Self.storeTime)
    }
    if isJudging(session) {
      session.traffic.load.pause = max(session.traffic.load.pause, Self.judgingTime)
    }
    let pause = session.traffic.charge(at: now, hooks.limitReached)
    session.expiresAt += pause
    return pause
  }

  /// The time after which a session with change sets that are being judged, or wait for a turn, is looked at again.
  private static let judgingTime = Duration.milliseconds(20)

  /// Returns true if a large change set of the session is being judged, or if change sets of it wait for its next turn.
  private func isJudging(_ session: ServerSession) -> Bool {
    session.traffic.largeSets.removeAll { $0.set?.isOver ?? true }
    if !session.traffic.largeSets.isEmpty { return true }
    return work.judgements.hasReleased
      && work.judgements.isReleased(anyOf: session.subscriptions.all)
  }

  /// The time after which a session that waits for a scope's records to be stored is looked at again.
  private static let storeTime = Duration.seconds(1)

  /// Returns true if the session has sent change sets to a scope that has too much that is not durable, as long as that is
  /// so.
  private func holdsBack(_ session: ServerSession) -> Bool {
    guard let most = configuration.limits.unstoredBytes else { return false }
    return session.traffic.awaited.holdsBack { hasTooMuchUnstored($0, answers: $1, most) }
  }

  /// Notes that a session has sent a change set or asked for a state, if its scope has too much that is not durable.
  func noteUnstored(_ session: ServerSession, _ host: ScopeHost) {
    guard let most = configuration.limits.unstoredBytes,
      hasTooMuchUnstored(host, answers: session.traffic.awaited.answers(of: host), most)
    else { return }
    session.traffic.awaited.fill(host)
  }

  /// Returns true if a scope has records of more than `most` bytes that are not durable, or a session too many answers
  /// that wait for them: some, such as a rejection or one that is repeated, have no record.
  private func hasTooMuchUnstored(_ host: ScopeHost, answers: Int, _ most: Int) -> Bool {
    host.order.records.unstoredBytes > most || answers > configuration.keptLimit.messages / 2
  }

  /// Returns the time for which nothing is to be read from a new connection, on which a session was resumed that has
  /// sent too much: it is not let off by a reconnection.
  package func pause(on id: Int) -> Duration {
    guard case .session(let session)? = connections[id] else { return .zero }
    let pause = max(.zero, session.traffic.heldUntil - now)
    // The new connection has given the session the time that any other has.
    if pause > .zero { keep(session, until: now + pause + configuration.expiry) }
    return pause
  }

  /// Takes note that a connection is left unread on purpose, maybe for what its session has sent in another channel: the
  /// session does not expire meanwhile.
  ///
  /// - Parameter isOver: true if that time is over.
  /// - Returns: the time for which it is to rest on, since a scope's records are still not stored, or change sets of the
  ///   session are still being judged, or wait for a turn.
  package func rests(on id: Int, isOver: Bool, now: Duration) -> Duration {
    self.now = now
    guard case .session(let session)? = connections[id] else { return .zero }
    keep(session, until: now + configuration.expiry)
    guard isOver else { return .zero }
    return holdsBack(session) ? Self.storeTime : isJudging(session) ? Self.judgingTime : .zero
  }

  private func keep(_ session: ServerSession, until time: Duration) {
    session.expiresAt = max(session.expiresAt, time)
  }

  // MARK: Sessions

  /// Gives a new connection a place among those without a session. Returns false if there is none: the connection is
  /// refused then.
  func beginHandshake(_ id: Int, _ request: HTTPRequest?) -> Bool {
    let address = ClientAddress.group(of: request?.remoteAddress)
    if let limit = quotas.limit(onHandshakeFrom: address, configuration.limits) {
      refuse(id, reached(limit))
      return false
    }
    quotas.beginHandshake(id, from: address)
    return true
  }

  /// Returns the error with which a client gets no session, since there are too many or there is no memory for it; nil if it
  /// gets one.
  ///
  /// - Parameter principal: the principal; nil for a guest, and where it is not known yet. Another session of the
  /// principal that has no connection is ended to make room: a client that was started anew does not resume the
  /// sessions
  ///   that it had before, and must not be kept out by them until they expire.
  func objection(toSessionOf principal: Principal?, from request: HTTPRequest?) -> WireError? {
    let limits = configuration.limits
    if isShortOfMemory { return reached(.residentBytes) }
    if let most = limits.sessions, sessions.count >= most { return reached(.sessions) }
    if let most = limits.sessionsPerAddress,
      let address = ClientAddress.group(of: request?.remoteAddress),
      quotas.sessionCount(from: address) >= most
    {
      return reached(.sessionsPerAddress)
    }
    guard let most = limits.sessionsPerPrincipal, let principal else { return nil }
    let tokens = quotas.sessions(of: principal.id)
    guard tokens.count >= most else { return nil }
    let error = reached(.sessionsPerPrincipal)
    // A client that is about to resume its session is not absent.
    let absent = tokens.compactMap { sessions[$0] }.filter { session in
      session.link.connection == nil && quotas.claimants(of: session.info.token).isEmpty
    }
    guard let last = absent.min(by: { ($0.expiresAt, $0.number) < ($1.expiresAt, $1.number) })
    else { return error }
    end(last, code: 4097, reason: "")
    return nil
  }

  // MARK: Change sets

  /// Returns the error with which a change set is rejected as a whole, before anything of it is looked at; nil if it
  /// was read, its session may change the scope and it is within the limits. Cost: O(1) for a change set that has a
  /// number.
  ///
  /// - Parameter text: the JSON text of the fragments, if it was made already.
  func objection(
    to sync: ScopeSync, as text: FragmentsText?, from session: ServerSession, in host: ScopeHost
  ) -> WireError? {
    if sync.isUnreadable { return sync.problem }
    if session.subscriptions.access.isReadOnly(host) { return .readOnly }
    let bytes =
      (text?.bytes.count ?? sync.fragments.roughSize)
      + (sync.arguments?.roughSize ?? 0)
    if let pause = host.audience.rates?.charge(bytes: bytes, at: now, hooks.limitReached) {
      session.traffic.load.pause = max(session.traffic.load.pause, pause)
    }
    if let most = configuration.limits.fragmentsPerChangeSet, sync.fragments.count > most {
      return reached(.fragmentsPerChangeSet)
    }
    if let most = configuration.limits.bytesPerChangeSet, bytes > most {
      return reached(.bytesPerChangeSet)
    }
    return limit(exceededBy: sync, of: bytes, from: session, in: host).map(reached)
  }
}
