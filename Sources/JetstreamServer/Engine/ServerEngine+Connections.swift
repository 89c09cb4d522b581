import Foundation
import Jetstream
import JetstreamWebSocket

/// Connections, and what is received on them.
extension ServerEngine {
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
    /// The number of messages.
    let count: Int

    package init(
      messages: Result<[Result<Message, MessageError>], FrameError>, isArray: Bool, size: Int = 0,
      endsFrame: Bool = true
    ) {
      (self.messages, self.isArray) = (messages, isArray)
      (self.size, self.endsFrame) = (size, endsFrame)
      count = (try? messages.get().count) ?? 1
    }
  }

  /// An input on a connection.
  package enum Input: Sendable {
    case frame(Frame)
    /// The answer to the last probe: the WebSocket at the other end has received everything in front of it.
    case probed
  }

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
    // A session may have joined on this very connection before that is resumed here.
    if let old = session.link.resume(on: id), old != id {
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
    work.judgements.beginTurn()
    var sender: ServerSession?
    for input in inputs {
      switch input {
      case .frame(let frame):
        // A message that ends the connection does not let its session off what came before.
        if let session = received(frame, on: id) { sender = session }
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

  /// Handles a frame. Returns the session that it came in; nil if there was none yet.
  private func received(_ frame: Frame, on id: Int) -> ServerSession? {
    switch connections[id] {
    case .fresh(let params, let request, _):
      create(id, params, request, frame.messages, isArray: frame.isArray)
    case .session(let session):
      session.traffic.note(bytes: frame.size)
      receive(session, frame.messages, endsFrame: frame.endsFrame)
      return session
    // A client that waits for its session has nothing to send: no version of the protocol has.
    case .authenticating: refuse(id, .unrecognizedHandshake)
    case nil: break
    }
    return nil
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
}
