import Foundation
import Jetstream

/// What clients say in a session.
extension ServerEngine {
  func receive(
    _ session: ServerSession, _ frame: Result<[Result<Message, MessageError>], FrameError>,
    on id: Int
  ) {
    switch frame {
    case .failure(let error):
      hooks.log("session \(session.number): a frame that holds no messages: \(error)")
      session.connection = nil
      session.pingAt = nil
      connections[id] = nil
      perform(.close(connection: id, code: 1007, reason: CloseReason.plain("\(error)")))
    case .success(let messages):
      touch(session)
      release(session, messages)
      let sorted = messages.enumerated().sorted {
        (Self.order($0.element), $0.offset) < (Self.order($1.element), $1.offset)
      }
      for (_, message) in sorted where sessions[session.info.token] === session {
        switch message {
        case .success(let message): handle(message, from: session)
        case .failure(let error): answer(error, to: session)
        }
      }
    }
  }

  /// The order in which the members of a frame are processed: by index.
  private static func order(_ message: Result<Message, MessageError>) -> Int {
    switch message {
    case .success(let message): message.index
    case .failure(let error): error.index ?? 0
    }
  }

  /// The client has spoken on a new connection. If it asks for what it missed, that answers it;
  /// otherwise it gets what was never sent to it.
  private func release(_ session: ServerSession, _ messages: [Result<Message, MessageError>]) {
    guard session.isHeld else { return }
    session.isHeld = false
    let asks = messages.contains {
      if case .success(.ping(let ping)) = $0 { ping.resendMissing } else { false }
    }
    guard !asks else { return }
    session.outbox = session.channel.kept.filter { $0.index > session.transmitted }
    if !session.outbox.isEmpty { waiting.append(session) }
  }

  private func handle(_ message: Message, from session: ServerSession) {
    if case .ping(let ping) = message { return handle(ping, from: session) }
    switch session.channel.receive(index: message.index) {
    case .process: break
    case .duplicate: return
    case .gap:
      // Everything behind the gap says the same; if the answer is lost, the next ping tells.
      guard session.askedAt != session.channel.highestReceived else { return }
      return askAgain(session)
    }
    switch message {
    case .scopeFetch(let fetch): handle(fetch, from: session)
    case .scopeSync(let sync): handle(sync, from: session)
    case .ping, .sessionCreate, .sessionCreateReply, .scopeFetchReply, .scopeState,
      .scopeSyncReply:
      hooks.log("session \(session.number): \(message.type) is not for a server; skipped")
    }
  }

  private func handle(_ ping: Ping, from session: ServerSession) {
    if ping.index > 0 { _ = session.channel.receive(index: ping.index) }
    let resend = session.channel.receive(ping)
    session.saw(ping)
    if let sent = ping.sent, session.version > 1, sent > session.channel.highestReceived {
      askAgain(session)
    }
    guard !resend.isEmpty else { return }
    session.outbox = resend
    waiting.append(session)
  }

  /// Messages of the client are missing: it is to send them again.
  private func askAgain(_ session: ServerSession) {
    session.askedAt = session.channel.highestReceived
    session.queue(session.channel.ping(resendMissing: true))
    waiting.append(session)
  }

  /// A message that cannot be understood is answered as far as it says what it was.
  private func answer(_ error: MessageError, to session: ServerSession) {
    hooks.log("session \(session.number): \(error)")
    guard let index = error.index, index > 0, let name = error.messageType else {
      if case .unknownType = error { return }
      return closeInvalid(session, error)
    }
    guard session.channel.receive(index: index) == .process else { return }
    let problem = WireError(message: "\(error)", type: "invalid-message")
    switch name {
    case "ScopeSync":
      let reply = ScopeSyncReply(replyTo: index, fragmentReplies: [FragmentReply(error: problem)])
      post(session, .scopeSyncReply(reply))
    case "ScopeFetch":
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: index, error: problem)))
    default: closeInvalid(session, error)
    }
  }

  private func closeInvalid(_ session: ServerSession, _ error: MessageError) {
    guard let id = session.connection else { return }
    session.connection = nil
    session.pingAt = nil
    connections[id] = nil
    perform(.close(connection: id, code: 1007, reason: CloseReason.plain("\(error)")))
  }

  // MARK: Scopes

  private func handle(_ fetch: ScopeFetch, from session: ServerSession) {
    guard session.subscriptions.count < configuration.maxScopesPerSession else {
      let error = WireError.rejected("The session has fetched too many scopes")
      return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    }
    switch hooks.fetch(session.info, fetch.name, fetch.params) {
    case .failure(let error):
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    case .success(let scope):
      let host = hostedScope(scope)
      scope.sealChanges()
      guard let root = scope.root else {
        let error = WireError.rejected("The scope has no root")
        return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
      }
      let scopeIndex = subscribe(session, to: host)
      guard session.version > 1 else {
        let reply = ScopeFetchReply(replyTo: fetch.index, scopeIndex: scopeIndex)
        return tell(
          session, of: host, [.scopeFetchReply(reply), state(of: scope, root, at: scopeIndex)])
      }
      let (standing, items) = host.standing(of: session.info.client, fetch)
      let reply = ScopeFetchReply(
        replyTo: fetch.index, scopeIndex: scopeIndex, standing: standing)
      guard standing.resumes else {
        return tell(
          session, of: host, [.scopeFetchReply(reply), state(of: scope, root, at: scopeIndex)])
      }
      tell(session, of: host, [.scopeFetchReply(reply)])
      let missed = Array(items)
      whenStored(host, for: session) { session in
        for item in missed {
          let isOwn = item.author != nil && item.author?.client == session.info.client
          session.tell(item, at: scopeIndex, asOwn: isOwn ? item.author?.number : nil)
        }
      }
    }
  }

  /// Posts messages once what they may tell of is kept.
  private func tell(_ session: ServerSession, of host: ScopeHost, _ messages: [Message]) {
    whenStored(host, for: session) { session in
      for message in messages { session.queue(message) }
    }
  }

  /// Does something that has a session told, once all that was made of the scope is kept; unless the
  /// session is over by then.
  private func whenStored(
    _ host: ScopeHost, for session: ServerSession, _ action: @escaping (ServerSession) -> Void
  ) {
    host.whenStored { [weak self, weak session] in
      guard let self, let session, sessions[session.info.token] === session else { return }
      action(session)
      waiting.append(session)
    }
  }

  /// A scope that is fetched again keeps its number and is told nothing twice.
  private func subscribe(_ session: ServerSession, to host: ScopeHost) -> Int {
    if let known = session.subscriptions.firstIndex(where: { $0.host === host }) { return known }
    session.subscriptions.append(.init(host: host, proven: host.sequence))
    if session.version == 1 { host.valueSessions += 1 }
    return session.subscriptions.count - 1
  }

  private func state(of scope: Scope, _ root: ModelObject, at scopeIndex: Int) -> Message {
    .scopeState(
      ScopeState(scopeIndex: scopeIndex, rootUUID: root.uuid, fragments: scope.sharedState()))
  }

  /// The host of a scope, made on first use.
  func hostedScope(_ scope: Scope) -> ScopeHost {
    if let host = hosts[ObjectIdentifier(scope)] { return host }
    let host = ScopeHost(scope: scope, epoch: hooks.makeEpoch())
    hosts[ObjectIdentifier(scope)] = host
    host.onLocalChanges = { [weak self, unowned host] item in
      guard let self else { return }
      host.keep(item)
      broadcast(item, of: host, except: nil)
      if !isHandling { flush() }
    }
    return host
  }

  private func handle(_ sync: ScopeSync, from session: ServerSession) {
    guard sync.scopeIndex < session.subscriptions.count else {
      answer(sync, to: session, rejecting: .scopeIndexNotFound(sync.scopeIndex))
      return
    }
    let host = session.subscriptions[sync.scopeIndex].host
    guard let client = session.info.client, let number = sync.number, session.version > 1 else {
      submit(sync, from: session, to: host)
      return
    }
    if let known = sync.decided { host.clients[client]?.forget(upTo: known) }
    let checksum = sync.fragments.checksum
    let known = host.clients[client] ?? ClientDecisions()
    switch known.verdict(on: number, checksum: checksum) {
    case .new: submit(sync, from: session, to: host, as: (client, number, checksum))
    case .decided(let replies):
      // It stands in the order already: nothing is done at this place.
      reply(to: sync, of: session, ScopeHost.Result(replies: replies, effective: []))
    case .contradiction:
      answer(sync, to: session, rejecting: .setNumberReused(number))
    }
  }

  private func submit(
    _ sync: ScopeSync, from session: ServerSession, to host: ScopeHost,
    as author: (client: UUID, number: Int, checksum: UInt32)? = nil
  ) {
    var result: ScopeHost.Result
    if let procedure = sync.procedure {
      let error = WireError.couldNotApplySync(reason: "there is no procedure \(procedure)")
      result = ScopeHost.Result(replies: sync.fragments.map { _ in FragmentReply(error: error) })
    } else {
      result = host.submit(
        sync.fragments, isAtomic: sync.atomic == true, by: session.submitter(of: sync))
    }
    host.keep(
      result.item,
      author.map {
        ScopeRecord.Decision(
          client: $0.client, number: $0.number, checksum: $0.checksum,
          fragmentReplies: result.replies)
      })
    if let item = result.item { broadcast(item, of: host, except: session) }
    reply(to: sync, of: session, result)
  }

  private func reply(to sync: ScopeSync, of session: ServerSession, _ result: ScopeHost.Result) {
    let host = session.subscriptions[sync.scopeIndex].host
    let sequence = host.sequence
    var reply = ScopeSyncReply(replyTo: sync.index, fragmentReplies: result.replies)
    if session.version > 1 {
      reply.sequence = result.item?.sequence
      reply.effective = result.effective
    }
    whenStored(host, for: session) { session in
      let index = session.queue(.scopeSyncReply(reply))
      session.subscriptions[sync.scopeIndex].sent.append((index, sequence))
      if !result.correction.isEmpty {
        session.tell(result.correction, upTo: sequence, newcomers: [], at: sync.scopeIndex)
      }
    }
  }

  /// Rejects every fragment of a set.
  private func answer(
    _ sync: ScopeSync, to session: ServerSession, rejecting error: WireError
  ) {
    let replies = Array(repeating: FragmentReply(error: error), count: sync.fragments.count)
    post(session, .scopeSyncReply(ScopeSyncReply(replyTo: sync.index, fragmentReplies: replies)))
  }

  func broadcast(_ item: StreamItem, of host: ScopeHost, except origin: ServerSession?) {
    for session in sessions.values where session !== origin {
      for (scopeIndex, subscription) in session.subscriptions.enumerated()
      where subscription.host === host {
        whenStored(host, for: session) { $0.tell(item, at: scopeIndex) }
      }
    }
  }
}

extension MessageError {
  /// The type that the message says it has.
  fileprivate var messageType: String? {
    switch self {
    case .notAnObject, .unknownType: nil
    case .missing(let message, _, _), .invalid(let message, _, _, _),
      .invalidElement(let message, _, _, _, _):
      message
    case .inReply(_, let error): error.messageType
    }
  }
}

extension CloseReason {
  static func plain(_ text: String) -> String {
    var text = text
    while text.utf8.count > 123 { text.removeLast() }
    return text
  }
}
