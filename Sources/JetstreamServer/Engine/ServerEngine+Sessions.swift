import Foundation
import Jetstream
import JetstreamWebSocket

/// The beginnings and ends of sessions.
extension ServerEngine {
  func create(
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

  func warn(_ text: String, on id: Int) {
    hooks.report(Diagnostic(.warning, .session, connection: id, text))
  }

  func warn(of session: ServerSession, _ text: String) {
    hooks.report(Diagnostic(.warning, .session, session: session.number, text))
  }
}
