import Foundation
import Jetstream

/// The handling of messages that clients send in a session.
extension ServerEngine {
  func receive(
    _ session: ServerSession, _ frame: Result<[Result<Message, MessageError>], FrameError>,
    endsFrame: Bool
  ) {
    switch frame {
    case .failure(let error):
      warn(of: session, "skipped a frame without messages: \(error)")
      closeInvalid(session, error)
    case .success(let messages):
      touch(session)
      release(session, messages)
      for message in Self.inOrder(messages) {
        switch message {
        case .success(let message): handle(message, from: session)
        case .failure(let error): answer(error, to: session)
        }
        guard !session.link.hasEnded, !endsForOverflow(session) else { return }
      }
      guard endsFrame else { return }
      meetDemands(of: session)
      if !session.link.hasEnded { acknowledgeIfDue(to: session) }
    }
  }

  /// Does, once per frame, what its messages have asked for; see ``SessionDemands``.
  func meetDemands(of session: ServerSession) {
    let demands = session.takeDemands()
    let isResent = resendIfDue(session)
    guard let demands else { return }
    if demands.asksAgain { askAgain(session, isResent: isResent) }
    for subscription in demands.states where subscription.isLive {
      tellState(to: session, of: subscription)
    }
    for (_, difference) in demands.differences.sorted(by: { $0.key < $1.key })
    where session.channel.hasRoom {
      repair(difference, of: session)
    }
    if demands.goesOn { goOn(with: session) }
  }

  /// Sends again the messages that a client has not received, if it has asked for that; later, if it has asked too
  /// often.
  ///
  /// - Returns: true if they were sent now.
  @discardableResult
  func resendIfDue(_ session: ServerSession) -> Bool {
    guard session.link.isOpen,
      session.link.resends.answer(at: now, interval: configuration.pingInterval)
    else { return false }
    session.link.replaceOutbox(with: session.resent())
    wait(for: session)
    session.rewind()
    goOn(with: session)
    return true
  }

  /// Continues to send the scopes that have waited for room in the channel, each time with a different one first.
  private func goOn(with session: ServerSession) {
    for subscription in session.subscriptions.takeTurn() {
      guard subscription.isLive, session.channel.hasRoom else { return }
      if subscription.isBehind { catchUp(session, on: subscription) }
    }
  }

  /// Acknowledges early to a client that sends a lot: it need not wait for the next ping.
  private func acknowledgeIfDue(to session: ServerSession) {
    guard
      session.traffic.acknowledgement.isDue(
        at: session.channel.highestReceived, limit: configuration.acknowledgeAfter)
    else { return }
    session.link.put(.ping(session.ping()))
    wait(for: session)
  }

  /// Returns the messages of a frame in the order in which they are processed: by index. Mostly they come in that
  /// order.
  static func inOrder(
    _ messages: [Result<Message, MessageError>]
  ) -> [Result<Message, MessageError>] {
    if messages.count < 2 { return messages }
    var last = Int.min
    let isOrdered = messages.allSatisfy { message in
      defer { last = order(message) }
      return last <= order(message)
    }
    if isOrdered { return messages }
    let orders = messages.map(order)
    return messages.indices.sorted { (orders[$0], $0) < (orders[$1], $1) }.map { messages[$0] }
  }

  private static func order(_ message: Result<Message, MessageError>) -> Int {
    switch message {
    case .success(let message): message.index
    case .failure(let error): error.index ?? 0
    }
  }

  /// Begins to send on a new connection once the client has sent something on it. If the client asks to resend what it
  /// has missed, that request is answered; otherwise it gets the messages that were never sent to it.
  private func release(_ session: ServerSession, _ messages: [Result<Message, MessageError>]) {
    guard session.link.release() else { return }
    session.demands.goesOn = true
    let asks = messages.contains {
      if case .success(.ping(let ping)) = $0 { ping.resendMissing } else { false }
    }
    guard !asks else { return }
    let transmitted = session.link.transmitted
    session.link.replaceOutbox(with: session.channel.kept.filter { $0.index > transmitted })
    wait(for: session)
    session.rewind()
  }

  private func handle(_ message: Message, from session: ServerSession) {
    if case .ping(let ping) = message { return handle(ping, from: session) }
    switch session.channel.receive(index: message.index) {
    case .process: break
    case .duplicate: return
    case .gap:
      // Every message behind the gap leads here; if the request is lost, it is made again at the next ping.
      guard session.askedAt != session.channel.highestReceived else { return }
      session.demands.asksAgain = true
      return
    }
    switch message {
    case .scopeFetch(let fetch):
      session.traffic.load.fetches += 1
      handle(fetch, from: session)
    case .scopeSync(let sync):
      session.traffic.load.changeSets += 1
      handle(sync, from: session)
    case .scopeLeave(let leave): handle(leave, from: session)
    case .ping, .sessionCreate, .sessionCreateReply, .scopeFetchReply, .scopeState,
      .scopeSyncReply:
      warn(of: session, "skipped \(message.type), which is not for a server")
    }
  }

  private func handle(_ ping: Ping, from session: ServerSession) {
    session.traffic.load.pings += 1
    if ping.index > 0 { _ = session.channel.receive(index: ping.index) }
    session.channel.acknowledge(upTo: ping.ack)
    session.saw(ping)
    // A ping may come before messages that were lost and that the client has made before it knew what it acknowledges.
    if !ping.resendMissing, ping.sent ?? 0 <= session.channel.highestReceived {
      session.subscriptions.acknowledge(upTo: ping.ack)
    }
    for seen in ping.seen {
      session.subscriptions[seen.scopeIndex]?.acknowledge(
        sequence: seen.sequence, proves: !ping.resendMissing)
    }
    if let sent = ping.sent, session.version > 1, sent > session.channel.highestReceived {
      session.demands.asksAgain = true
    }
    if ping.resendMissing { session.link.resends.ask() }
    // Each difference answers a check.
    for difference in ping.differences where session.checked.remove(difference.scopeIndex) != nil {
      session.demands.differences[difference.scopeIndex] = difference
    }
    session.demands.goesOn = true
  }

  /// Asks the client to send the missing messages again. If the client's own request to resend was just answered, that
  /// answer already asks.
  private func askAgain(_ session: ServerSession, isResent: Bool) {
    session.askedAt = session.channel.highestReceived
    if isResent { return }
    session.queue(session.channel.ping(resendMissing: true))
    wait(for: session)
  }

  /// Answers a message that cannot be decoded, as far as its kind can be told.
  private func answer(_ error: MessageError, to session: ServerSession) {
    warn(of: session, "\(error)")
    if case .unknownType(_, let index) = error {
      // The message has to be counted, or the client would be asked for it again and again.
      if let index { _ = session.channel.receive(index: index) }
      return
    }
    guard let index = error.index, index > 0, let name = error.messageType else {
      return closeInvalid(session, error)
    }
    guard session.channel.receive(index: index) == .process else { return }
    let problem = WireError(message: "\(error)", type: "invalid-message")
    switch name {
    case "ScopeSync":
      if let set = error.changeSet, session.subscriptions[set.scopeIndex]?.client != nil {
        session.traffic.load.changeSets += 1
        let sync = ScopeSync(
          unreadable: problem, index: index, scopeIndex: set.scopeIndex, number: set.number,
          isCall: error.isCall)
        return handle(sync, from: session)
      }
      let isCall = error.isCall && session.version > 1
      let reply = ScopeSyncReply(
        replyTo: index, fragmentReplies: [FragmentReply(error: problem)],
        outcome: isCall ? .failure(problem, thrown: nil) : nil)
      if session.version > 1 { return post(session, .scopeSyncReply(reply)) }
      // Clients of version 1 take an answer as proof that everything sent before it was answered, too. The scope of
      // this change set cannot be read, so wait for all of them.
      whenStored(session.subscriptions.inOrder[...], for: session) {
        session.queue(.scopeSyncReply(reply))
      }
    case "ScopeFetch":
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: index, error: problem)))
    default: closeInvalid(session, error)
    }
  }

  /// Runs `action` once the records that several scopes have made so far are durable, unless the session has ended by
  /// then. With too many answers that wait, the client is read later.
  private func whenStored(
    _ subscriptions: ArraySlice<Subscription>, for session: ServerSession,
    _ action: @escaping () -> Void
  ) {
    let waiting = subscriptions.drop { $0.host.order.records.isCurrent }
    guard let subscription = waiting.first else {
      action()
      return wait(for: session)
    }
    let host = subscription.host
    session.traffic.awaited.beginAnswer(of: host)
    host.order.records.whenStored { [weak self] in
      session.traffic.awaited.endAnswer(of: host)
      guard let self, !session.link.hasEnded else { return }
      whenStored(waiting.dropFirst(), for: session, action)
    }
    noteUnstored(session, host)
  }

  private func closeInvalid(_ session: ServerSession, _ error: any Error) {
    guard let id = session.link.connection else { return }
    detach(session)
    perform(.close(connection: id, code: 1007, reason: CloseReason.plain("\(error)")))
  }
}

extension MessageError {
  /// The type that the message names.
  fileprivate var messageType: String? {
    switch self {
    case .notAnObject, .unknownType: nil
    case .missing(let message, _, _), .invalid(let message, _, _, _),
      .invalidElement(let message, _, _, _, _):
      message
    case .inReply(_, let error), .inScope(_, let error), .inChangeSet(_, let error),
      .inCall(let error):
      error.messageType
    }
  }

  /// True if the message calls a procedure with arguments.
  fileprivate var isCall: Bool {
    switch self {
    case .notAnObject, .unknownType, .missing, .invalid, .invalidElement: false
    case .inCall: true
    case .inReply(_, let error), .inScope(_, let error), .inChangeSet(_, let error): error.isCall
    }
  }

  /// The number of the change set that the message is, and the scope; nil if they could not be read.
  fileprivate var changeSet: (scopeIndex: Int, number: Int)? {
    if case .inScope(let scopeIndex, .inChangeSet(let number, _)) = self {
      (scopeIndex, number)
    } else {
      nil
    }
  }
}
