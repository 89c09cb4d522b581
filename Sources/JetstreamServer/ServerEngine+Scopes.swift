import Foundation
import Jetstream

/// Which scopes sessions have, and how they are told of them.
extension ServerEngine {
  func handle(_ fetch: ScopeFetch, from session: ServerSession) {
    func refuse(_ error: WireError) {
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    }
    switch hooks.fetch(session.info, fetch.name, fetch.params) {
    case .failure(let error): refuse(error)
    case .success(let scope):
      let host = hostedScope(scope)
      let known = session.subscription(to: host)
      guard known != nil || session.subscriptions.count < configuration.maxScopesPerSession else {
        return refuse(.rejected("The session has fetched too many scopes"))
      }
      scope.sealChanges()
      guard let root = scope.root else { return refuse(.rejected("The scope has no root")) }
      let client = session.version > 1 ? fetch.client ?? session.info.client : nil
      // A scope that is fetched again keeps its number.
      let subscription = known ?? session.subscribe(to: host, as: client)
      subscription.client = client
      guard session.version > 1 else {
        let reply = ScopeFetchReply(replyTo: fetch.index, scopeIndex: subscription.index)
        tell(session, of: subscription, .scopeFetchReply(reply))
        return session.demands.askState(of: subscription)
      }
      answer(fetch, of: session, on: subscription) { state(of: host, root) }
    }
  }

  /// The client wants no more of a scope.
  func handle(_ leave: ScopeLeave, from session: ServerSession) {
    guard let subscription = session.subscriptions[leave.scopeIndex] else { return }
    session.leave(subscription)
  }

  /// Ends the syncing of a scope for all sessions. Those of version 1 end, since there is no word for it in theirs.
  func leave(_ host: ScopeHost, _ error: WireError) {
    for session in sessions.values.sorted(by: { $0.number < $1.number }) {
      guard let subscription = session.subscription(to: host) else { continue }
      guard session.version > 1 else {
        end(session, code: 4097, reason: "scope \(host.scope.name) is not served any more")
        continue
      }
      session.leave(subscription)
      post(session, .scopeLeave(ScopeLeave(scopeIndex: subscription.index, error: error)))
    }
  }

  /// Tells a client of version 1 the whole of a scope.
  func tellState(to session: ServerSession, of subscription: Subscription) {
    let host = subscription.host
    host.scope.sealChanges()
    guard let root = host.scope.root else { return }
    let state = state(of: host, root)
    tell(
      session, of: subscription,
      .scopeState(
        ScopeState(
          scopeIndex: subscription.index, rootUUID: state.root, fragments: Array(state.fragments))))
  }

  /// The whole of a scope at this place of its order; made once for a frame. O(models).
  private func state(of host: ScopeHost, _ root: ModelObject) -> Subscription.UntoldState {
    let key = ObjectIdentifier(host)
    if let copy = states[key], copy.sequence == host.sequence { return copy.state }
    let state = Subscription.UntoldState(
      root: root.uuid, fragments: host.scope.sharedState()[...])
    states[key] = ServerSession.StateCopy(sequence: host.sequence, state: state)
    return state
  }

  /// Answers a client that numbers its sets, and tells it what it asks for.
  private func answer(
    _ fetch: ScopeFetch, of session: ServerSession, on subscription: Subscription,
    state: () -> Subscription.UntoldState
  ) {
    let host = subscription.host
    let (standing, since) = host.standing(of: subscription.client, fetch)
    let reply = ScopeFetchReply(
      replyTo: fetch.index, scopeIndex: subscription.index, standing: standing)
    let told = Subscription.Told(
      since: fetch.tell == .nothing ? nil : since,
      state: fetch.tell == .nothing || since != nil ? nil : state(), upTo: host.sequence,
      isLimited: fetch.tell != .everything)
    // What was promised before is kept first: until then it is told from where it was.
    whenStored(subscription, of: session) {
      session.queue(.scopeFetchReply(reply))
      subscription.begin(told)
    }
    catchUp(session, on: subscription)
  }

  /// Goes on telling a session of a scope what it has not been told for want of room.
  func catchUp(_ session: ServerSession, on subscription: Subscription) {
    let host = subscription.host
    // What is accepted from here on is offered behind this.
    let sequence = host.sequence
    whenStored(subscription, of: session) { [unowned self] in
      guard subscription.isBehind,
        session.tellState(
          of: subscription, bytes: configuration.stateBytes, window: 16 * configuration.stateBytes)
      else { return }
      let (told, last) = (subscription.told, subscription.limit ?? sequence)
      if let items = host.stream.items(after: told, upTo: max(told, last)) {
        session.catchUp(items, upTo: last, of: subscription)
      } else {
        hooks.log("session \(session.number): too far behind; the session ends")
        end(session, code: 4097, reason: "too far behind")
      }
    }
  }

  /// Posts a message once what it may tell of is kept.
  private func tell(
    _ session: ServerSession, of subscription: Subscription, _ message: Message
  ) {
    whenStored(subscription, of: session) { session.queue(message) }
  }

  /// Does something that has a session told of a scope, once all that was made of the scope is kept; unless the
  /// session is over by then, or has left the scope.
  func whenStored(
    _ subscription: Subscription, of session: ServerSession, _ action: @escaping () -> Void
  ) {
    subscription.host.whenStored { [weak self] in
      guard let self, subscription.isLive else { return }
      action()
      waiting.append(session)
    }
  }
}
