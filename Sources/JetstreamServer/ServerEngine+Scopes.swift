import Foundation
import Jetstream

/// What clients do with scopes.
extension ServerEngine {
  func handle(_ fetch: ScopeFetch, from session: ServerSession) {
    switch hooks.fetch(session.info, fetch.name, fetch.params) {
    case .failure(let error):
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    case .success(let scope):
      let host = hostedScope(scope)
      guard
        session.subscriptions.contains(where: { $0.host === host })
          || session.subscriptions.count < configuration.maxScopesPerSession
      else {
        let error = WireError.rejected("The session has fetched too many scopes")
        return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
      }
      scope.sealChanges()
      guard let root = scope.root else {
        let error = WireError.rejected("The scope has no root")
        return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
      }
      let client = session.version > 1 ? fetch.client ?? session.info.client : nil
      let scopeIndex = subscribe(session, to: host, as: client)
      guard session.version > 1 else {
        let reply = ScopeFetchReply(replyTo: fetch.index, scopeIndex: scopeIndex)
        tell(session, of: host, .scopeFetchReply(reply))
        return session.demands.askState(of: scopeIndex)
      }
      answer(fetch, of: session, at: scopeIndex) { state(of: host, root) }
    }
  }

  /// Tells a client of version 1 the whole of a scope.
  func tellState(to session: ServerSession, at scopeIndex: Int) {
    let host = session.subscriptions[scopeIndex].host
    host.scope.sealChanges()
    guard let root = host.scope.root else { return }
    let state = state(of: host, root)
    tell(
      session, of: host,
      .scopeState(
        ScopeState(
          scopeIndex: scopeIndex, rootUUID: state.root, fragments: Array(state.fragments))))
  }

  /// The whole of a scope at this place of its order; made once for a frame. O(models).
  private func state(of host: ScopeHost, _ root: ModelObject) -> ServerSession.UntoldState {
    let key = ObjectIdentifier(host)
    if let copy = states[key], copy.sequence == host.sequence { return copy.state }
    let state = ServerSession.UntoldState(
      root: root.uuid, fragments: host.scope.sharedState()[...])
    states[key] = ServerSession.StateCopy(sequence: host.sequence, state: state)
    return state
  }

  /// Answers a client that numbers its sets, and tells it what it asks for.
  private func answer(
    _ fetch: ScopeFetch, of session: ServerSession, at scopeIndex: Int,
    state: () -> ServerSession.UntoldState
  ) {
    let subscription = session.subscriptions[scopeIndex]
    let host = subscription.host
    let (standing, since) = host.standing(of: subscription.client, fetch)
    let reply = ScopeFetchReply(replyTo: fetch.index, scopeIndex: scopeIndex, standing: standing)
    let told = ServerSession.Told(
      since: fetch.tell == .nothing ? nil : since,
      state: fetch.tell == .nothing || since != nil ? nil : state(), upTo: host.sequence,
      isLimited: fetch.tell != .everything)
    // What was promised before is kept first: until then it is told from where it was.
    whenStored(host, for: session) { session in
      session.queue(.scopeFetchReply(reply))
      session.begin(told, at: scopeIndex)
    }
    catchUp(session, at: scopeIndex)
  }

  /// Goes on telling a session of a scope what it has not been told for want of room.
  func catchUp(_ session: ServerSession, at scopeIndex: Int) {
    let host = session.subscriptions[scopeIndex].host
    // What is accepted from here on is offered behind this.
    let sequence = host.sequence
    whenStored(host, for: session) { [weak self] session in
      guard let self, session.subscriptions[scopeIndex].isBehind,
        session.tellState(
          at: scopeIndex, bytes: configuration.stateBytes, window: 16 * configuration.stateBytes)
      else { return }
      let subscription = session.subscriptions[scopeIndex]
      let (told, last) = (subscription.told, subscription.limit ?? sequence)
      if let items = host.stream.items(after: told, upTo: max(told, last)) {
        session.catchUp(items, upTo: last, at: scopeIndex)
      } else {
        hooks.log("session \(session.number): too far behind; the session ends")
        end(session, code: 4097, reason: "too far behind")
      }
    }
  }

  /// Posts a message once what it may tell of is kept.
  private func tell(_ session: ServerSession, of host: ScopeHost, _ message: Message) {
    whenStored(host, for: session) { $0.queue(message) }
  }

  /// Does something that has a session told, once all that was made of the scope is kept; unless the
  /// session is over by then.
  func whenStored(
    _ host: ScopeHost, for session: ServerSession, _ action: @escaping (ServerSession) -> Void
  ) {
    host.whenStored { [weak self, weak session] in
      guard let self, let session, sessions[session.info.token] === session else { return }
      action(session)
      waiting.append(session)
    }
  }

  /// The same for all that was made of several scopes.
  func whenStored(
    _ hosts: ArraySlice<ScopeHost>, for session: ServerSession,
    _ action: @escaping (ServerSession) -> Void
  ) {
    guard let host = hosts.first else {
      action(session)
      return waiting.append(session)
    }
    whenStored(host, for: session) { [weak self] session in
      self?.whenStored(hosts.dropFirst(), for: session, action)
    }
  }

  /// A scope that is fetched again keeps its number.
  private func subscribe(
    _ session: ServerSession, to host: ScopeHost, as client: UUID?
  ) -> Int {
    if let known = session.subscriptions.firstIndex(where: { $0.host === host }) {
      session.subscriptions[known].client = client
      return known
    }
    session.subscriptions.append(.init(host: host, client: client))
    if session.version == 1 { host.valueSessions += 1 }
    return session.subscriptions.count - 1
  }

  func handle(_ sync: ScopeSync, from session: ServerSession) {
    guard sync.scopeIndex < session.subscriptions.count else {
      answer(sync, to: session, rejecting: .scopeIndexNotFound(sync.scopeIndex))
      return
    }
    let host = session.subscriptions[sync.scopeIndex].host
    guard let client = session.subscriptions[sync.scopeIndex].client, let number = sync.number,
      session.version > 1
    else {
      submit(sync, from: session, to: host)
      return
    }
    if let known = sync.decided { host.clients.forgetDecisions(of: client, upTo: known) }
    let checksum = sync.fragments.checksum
    let known = host.clients[client]
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
    host.openSteps += 1
    if let procedure = sync.procedure {
      let error = WireError.couldNotApplySync(reason: "there is no procedure \(procedure)")
      result = ScopeHost.Result(replies: sync.fragments.map { _ in FragmentReply(error: error) })
    } else {
      session.takeProbed(at: now)
      // The server's own changes come first in the order, and the session is told of them: seal them before
      // asking what the session may have missed.
      host.scope.sealChanges()
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
    host.openSteps -= 1
    host.clients.trim(to: configuration.rememberedClients) { [sessions] in
      Set(sessions.values.flatMap { $0.subscriptions.compactMap(\.client) })
    }
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
    let limit = configuration.keptLimit.messages
    session.announce(result.correction, newcomers: [], at: sync.scopeIndex)
    whenStored(host, for: session) { [weak self] session in
      session.answer(reply, after: sequence, at: sync.scopeIndex)
      if session.subscriptions[sync.scopeIndex].later.count > limit {
        self?.end(session, code: 4097, reason: "too much is not acknowledged")
        return
      }
      if !result.correction.isEmpty {
        session.tell(result.correction, upTo: sequence, newcomers: [], at: sync.scopeIndex)
      }
    }
  }

  /// Rejects every fragment of a set.
  func answer(
    _ sync: ScopeSync, to session: ServerSession, rejecting error: WireError
  ) {
    let replies = Array(repeating: FragmentReply(error: error), count: sync.fragments.count)
    post(session, .scopeSyncReply(ScopeSyncReply(replyTo: sync.index, fragmentReplies: replies)))
  }

  func broadcast(_ item: StreamItem, of host: ScopeHost, except origin: ServerSession?) {
    for session in sessions.values where session !== origin {
      for (scopeIndex, subscription) in session.subscriptions.enumerated()
      where subscription.host === host {
        session.announce(item.whole ?? [], newcomers: item.newcomers, at: scopeIndex)
        whenStored(host, for: session) { $0.offer(item, at: scopeIndex) }
      }
    }
  }
}
