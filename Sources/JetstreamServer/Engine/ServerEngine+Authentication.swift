import Foundation
import Jetstream
import JetstreamWebSocket

/// The beginning of sessions, and their end by the app.
///
/// A connection asks for a session with its first message. The app is asked who that is, which may take a while: until
/// the answer comes, the connection is `authenticating`, and its client sends nothing. It gets a session, or is refused:
/// by the app, since the answer takes too long, or since the principal was revoked meanwhile, of which the app's answer
/// may not know yet.
extension ServerEngine {
  /// The answer to a client that asks for a session.
  package enum Authentication: Sendable {
    /// The client gets a session, for a principal or for nil.
    case accepted(Principal? = nil)
    /// The client gets no session, and is sent the error.
    case denied(WireError)
    /// The answer comes with ``ServerEngine/authenticated(_:_:now:)``.
    case pending
  }

  /// A client that waits for a session.
  struct Applicant {
    var info: SessionInfo
    /// The version of the protocol that the session will speak.
    let version: Int
    /// The time at which the client is refused.
    let deadline: Duration
    /// The ids of the principals that were revoked since the app was asked.
    var revoked: Set<String> = []
    /// True if the client has shown the token of a session, which it resumes.
    var resumes = false
  }

  /// Returns true while the app is asked about the client of a connection.
  package func isWaiting(_ id: Int) -> Bool {
    if case .authenticating? = connections[id] { true } else { false }
  }

  /// Asks the app about a client that has asked for a session on a connection.
  func authenticate(_ applicant: Applicant, on id: Int) {
    // The principal is not known yet.
    if let error = objection(toSessionOf: nil, from: applicant.info.request) {
      return deny(id, error)
    }
    // The app may answer at once.
    connections[id] = .authenticating(applicant)
    switch hooks.authenticate(applicant.info, id) {
    case .accepted(let principal): admit(id, as: principal)
    case .denied(let error): deny(id, error)
    case .pending: break
    }
  }

  /// Asks the app about a client that has shown the token of a session: a token that was stolen is of no use without credentials.
  func authenticateAgain(
    _ session: ServerSession, _ params: [String: String], _ request: HTTPRequest?, on id: Int
  ) {
    // A flood of connections without a session must not keep those out that have one: the only connection that claims
    // it needs no place among them.
    guard quotas.claimants(of: session.info.token).isEmpty || beginHandshake(id, request) else {
      return
    }
    var info = SessionInfo(
      token: session.info.token, connectionParams: params, params: session.info.params,
      version: session.info.version, client: session.info.client,
      request: request ?? session.info.request)
    info.number = session.number
    var applicant = Applicant(
      info: info, version: session.version, deadline: now + configuration.handshakeTimeout)
    applicant.resumes = true
    connections[id] = .authenticating(applicant)
    quotas.beginClaim(of: info.token, by: id)
    switch hooks.authenticate(info, id) {
    case .accepted(let principal): admit(id, as: principal)
    case .denied(let error): deny(id, error)
    case .pending: break
    }
  }

  /// Resumes the session of a client whose principal the app has named once more.
  private func resume(_ applicant: Applicant, as principal: Principal?, on id: Int) {
    connections[id] = nil
    quotas.endHandshake(id)
    // It may have ended meanwhile, or another connection may have been faster.
    guard let session = sessions[applicant.info.token] else {
      return refuse(id, .sessionTokenUnrecognized)
    }
    if let last = session.link.connection, last > id {
      return perform(.close(connection: id, code: 1000, reason: "resumed on another connection"))
    }
    guard principal?.id == session.info.principal?.id else {
      return refuse(id, .notYou("The session belongs to another user"))
    }
    session.info.principal = principal
    session.credentialsExpireAt = remainingTime(of: principal).map { now + $0 }
    endClaims(of: applicant.info.token, before: id)
    resume(session, on: id)
  }

  /// Takes the app's answer about a client. Does nothing if its connection has ended.
  package func authenticated(
    _ id: Int, _ answer: Result<Principal?, WireError>, now: Duration
  ) {
    self.now = now
    isHandling = true
    switch answer {
    case .success(let principal): admit(id, as: principal)
    case .failure(let error): if case .authenticating? = connections[id] { deny(id, error) }
    }
    isHandling = false
    flush()
  }

  private func admit(_ id: Int, as principal: Principal?) {
    guard case .authenticating(let asked)? = connections[id] else { return }
    if let error = objection(to: principal, of: asked) { return deny(id, error) }
    if asked.resumes { return resume(asked, as: principal, on: id) }
    // Only a client that gets a session has another one end for it.
    if let error = objection(toSessionOf: principal, from: asked.info.request) {
      return deny(id, error)
    }
    // The app may have heard of the end of another session, and revoked the principal.
    guard case .authenticating(let applicant)? = connections[id] else { return }
    if let error = objection(to: principal, of: applicant) { return deny(id, error) }
    let remaining = remainingTime(of: principal)
    var info = applicant.info
    info.principal = principal
    let session = begin(info, version: applicant.version, on: id)
    session.credentialsExpireAt = remaining.map { now + $0 }
    if let principal { note(session, "begins, of \(principal.id)") }
    perform(.admit(connection: id))
    schedulePing(session)
    let version = applicant.version
    post(
      session,
      .sessionCreateReply(
        SessionCreateReply(sessionToken: info.token, protocol: version > 1 ? version : nil)))
  }

  /// Returns the error with which a client gets no session for its principal; nil if it gets one.
  private func objection(to principal: Principal?, of applicant: Applicant) -> WireError? {
    if let principal, applicant.revoked.contains(principal.id) {
      return .notYou("The credentials were revoked")
    }
    return remainingTime(of: principal).map { $0 <= .zero } == true ? .credentialsExpired : nil
  }

  /// Returns the time for which the credentials of a principal hold; nil if they do not expire.
  private func remainingTime(of principal: Principal?) -> Duration? {
    guard let expiry = principal?.expiry, let date = hooks.date() else { return nil }
    // A date may be any number, of which a duration does not hold each: a hundred years stand for all longer times.
    let seconds = expiry.timeIntervalSince(date)
    let most = 100 * 366 * 86_400.0
    return seconds.isNaN ? .zero : .seconds(min(max(seconds, -most), most))
  }

  /// Sends a client that it gets no session.
  private func deny(_ id: Int, _ error: WireError) {
    if case .authenticating(let applicant)? = connections[id], applicant.resumes {
      return refuse(id, error)
    }
    let reply = Message.sessionCreateReply(SessionCreateReply(error: error))
    perform(.send(connections: [id], Message.encodeFrame([reply], asArray: true)))
    refuse(id, error)
  }

  private func note(_ session: ServerSession, _ text: String) {
    hooks.report(Diagnostic(.info, .session, session: session.number, text))
  }

  // MARK: The end

  /// The sessions, in the order in which they began.
  package var sessionInfos: [SessionInfo] {
    sessions.values.sorted { $0.number < $1.number }.map(\.info)
  }

  /// Ends a session at once: its client is sent `error`. Returns false if there is none with that token.
  @discardableResult
  package func endSession(_ token: String, telling error: WireError) -> Bool {
    guard let session = sessions[token] else {
      dropLeft { $0.token == token }
      if !isHandling { flush() }
      return false
    }
    // Replies of this turn reach the client first.
    if !isHandling { flush() }
    guard sessions[token] === session else {
      // It has ended for another reason just now, and what it has sent must not go on all the same.
      hooks.sessionTakenAway(session.info)
      dropLeft { $0.token == token }
      if !isHandling { flush() }
      return true
    }
    note(session, "is ended by the server: \(error)")
    dropUndecided(of: session)
    let reason = CloseReason.text(error)
    // First of all: other channels close the connection, too, and the first reason is the one that the client gets.
    if let id = session.link.disconnect() {
      connections[id] = nil
      perform(.close(connection: id, code: 4096, reason: reason))
    }
    hooks.sessionTakenAway(session.info)
    end(session, code: 4096, reason: reason)
    if !isHandling { flush() }
    return true
  }

  /// Ends all sessions of a principal at once, and refuses one that the app is being asked about. Returns the number of
  /// sessions that were ended.
  package func revoke(_ principal: String, telling error: WireError) -> Int {
    for (id, connection) in connections {
      guard case .authenticating(var applicant) = connection else { continue }
      applicant.revoked.insert(principal)
      connections[id] = .authenticating(applicant)
    }
    let tokens = sessionInfos.filter { $0.principal?.id == principal }.map(\.token)
    dropQueued(by: principal)
    let count = tokens.count { endSession($0, telling: error) }
    dropLeft(by: principal)
    return count
  }

  /// Takes out what the sessions of a principal have sent and waits for its turn: one that ends must not let another one's go
  /// on.
  package func dropQueued(by principal: String) {
    for session in sessions.values where session.info.principal?.id == principal {
      for subscription in session.subscriptions.inOrder { subscription.queued = SetQueue() }
    }
  }

  /// Takes out, undecided, what sessions have sent that have ended and whose credentials have expired since.
  func dropExpired() {
    dropLeft {
      sessions[$0.token] == nil && (remainingTime(of: $0.principal) ?? .seconds(1)) <= .zero
    }
  }

  /// Ends a session whose credentials have expired: the client is asked for new ones.
  func endIfExpired(_ session: ServerSession) {
    guard let time = session.credentialsExpireAt, time <= now else { return }
    endSession(session.info.token, telling: .credentialsExpired)
  }
}

extension WireError {
  static let credentialsExpired = notYou("The credentials have expired")
}
