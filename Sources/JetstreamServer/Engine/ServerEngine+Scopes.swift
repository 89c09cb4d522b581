import Foundation
import Jetstream

/// The scopes that sessions fetch and leave, and the state that they are sent.
extension ServerEngine {
  /// Answers a fetch of a session that has rights in the scope, or has the scope opened.
  func resolve(_ fetch: ScopeFetch, for session: ServerSession) {
    if let channel = hooks.channel(fetch.name) { return move(fetch, of: session, to: channel) }
    if hooks.opens(fetch.name) { return open(fetch, for: session) }
    switch hooks.fetch(session.info, fetch.name, fetch.params) {
    case .failure(let error): refuse(fetch, of: session, error)
    case .success(let scope): grant(scope, to: session, fetch)
    }
  }

  func refuse(_ fetch: ScopeFetch, of session: ServerSession, _ error: WireError) {
    session.subscriptions.access.forget(fetch.name)
    post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
  }

  /// Answers a fetch of a scope that the session may have.
  func grant(_ scope: any Hostable, to session: ServerSession, _ fetch: ScopeFetch) {
    // The client chooses how large these are, so they are not kept while the fetch waits.
    var fetch = fetch
    (fetch.params, fetch.schema) = (.null, nil)
    if let error = session.subscriptions.access.objection(to: fetch.name) {
      return refuse(fetch, of: session, error)
    }
    // A host that is made for the fetch may have to measure the whole scope.
    guard hasRoom(for: fetch.name, scope, of: session) else {
      return refuse(fetch, of: session, reached(.scopesPerSession))
    }
    let host = hostedScope(scope)
    host.content.seal()
    // Those who are told of the server's own changes may have ended the session, or taken the scope away.
    if session.link.hasEnded { return }
    guard !host.hasEnded, host.content.root != nil else {
      return refuse(fetch, of: session, .rejected("The scope has no root"))
    }
    // Clients of version 1 do not ask again.
    if session.version > 1, host.order.records.isStalled,
      session.subscriptions[host]?.hasBegun != true
    {
      return refuse(fetch, of: session, .historyStalled)
    }
    session.subscriptions.access.note(host, as: fetch.name)
    guard session.version > 1 else { return answerWhole(fetch, of: host, to: session) }
    let client = (fetch.client ?? session.info.client).map {
      NumberingClient($0, of: session.info.principal)
    }
    // A scope that is fetched again keeps its number.
    let subscription = session.subscriptions[host] ?? session.subscribe(to: host, as: client)
    // Each one that waits has its place in the state's queue, and an answer with decisions.
    guard subscription.openFetches.count < configuration.keptLimit.messages else {
      return endWithWarning(session, "too many fetches are not answered")
    }
    // Under another identity, the client sends again what was not decided under the last one.
    if client?.id != subscription.client { dropUndecided(of: subscription, comesAgain: false) }
    subscription.fetched(by: client)
    answer(fetch, on: subscription)
  }

  /// Returns true if a session may have the scope of a name: it has it already, or not too many others.
  ///
  /// - Parameter scope: the scope; nil if it is not open.
  func hasRoom(for name: String, _ scope: (any Hostable)?, of session: ServerSession) -> Bool {
    let host = scope.flatMap { hosts[ObjectIdentifier($0)] }
    if host.map(session.subscriptions.contains) == true { return true }
    let count = session.subscriptions.count(besides: name)
    return count < configuration.limits.scopesPerSession ?? .max
  }

  /// Ends a subscription that the client leaves.
  func handle(_ leave: ScopeLeave, from session: ServerSession) {
    if let subscription = session.subscriptions[leave.scopeIndex] { session.leave(subscription) }
  }

  /// Ends the subscriptions of sessions to a scope. Sessions of version 1 end altogether, since their protocol has no
  /// message for it.
  func leave(_ host: ScopeHost, by sessions: some Sequence<ServerSession>, _ error: WireError) {
    for session in sessions.sorted(by: { $0.number < $1.number }) {
      refuseOpenFetches(of: host, by: session, error)
      guard let subscription = session.subscriptions[host] else {
        // It may have left the scope with change sets that are not decided.
        for set in host.undecided.left(by: { $0.token == session.info.token }) {
          drop(set, in: host)
        }
        continue
      }
      guard session.version > 1 else {
        dropUndecided(of: subscription)
        end(session, code: 4097, reason: "scope \(host.content.name) is not served any more")
        continue
      }
      refuseOpenFetches(of: subscription, error)
      let undecided = dropUndecided(of: subscription)
      session.leave(subscription)
      let message = Message.scopeLeave(ScopeLeave(scopeIndex: subscription.index, error: error))
      // A client that lost its connection is not to be sent the scope's state again.
      session.channel.replaceKept(
        where: {
          if case .scopeState(let state) = $0 {
            state.scopeIndex == subscription.index
          } else {
            false
          }
        }, with: message)
      post(session, message)
      session.subscriptions.takeAway(
        subscription, toldWith: session.channel.highestSent, dropping: undecided)
    }
  }

  /// Continues to send what has waited for room in the session's channel: first the state, then the change sets of the
  /// stream; or has the client fetch the scope again, if the stream does not reach back far enough, or the full state is
  /// less by now.
  func catchUp(_ session: ServerSession, on subscription: Subscription) {
    let host = subscription.host
    // Change sets accepted from here on are offered behind this action.
    let sequence = host.sequence
    // One such action that waits is enough, whatever the client sends meanwhile.
    if subscription.catchesUpTo == sequence, !host.order.records.isCurrent { return }
    subscription.catchesUpTo = sequence
    whenStored(subscription, of: session) { [unowned self] in
      subscription.catchesUpTo = nil
      guard subscription.isBehind,
        session.tellState(of: subscription, window: 16 * configuration.stateBytes)
      else { return }
      let (told, last) = (subscription.told, subscription.limit ?? sequence)
      let items = host.order.stream.items(after: told, upTo: max(told, last))
      let hasRoom = session.hasRoom(for: subscription, within: configuration.window)
      if let items, !(hasRoom && subscription.isStateLess(than: items)) {
        session.catchUp(items, upTo: last, within: configuration.window, of: subscription)
      } else {
        lapse(subscription, of: session)
      }
    }
  }

  /// Has a client that is too far behind in a scope fetch it again, once it has a connection. The replies to its own change
  /// sets go out now.
  private func lapse(_ subscription: Subscription, of session: ServerSession) {
    guard session.link.isOpen else { return }
    warn(
      of: session, "too far behind in scope \(subscription.host.content.name); it is fetched again")
    subscription.lapse()
    session.answerRest(of: subscription)
    var ping = session.ping()
    ping.told = session.told
    session.link.put(.ping(ping))
  }

  /// Runs `action`, which sends something to a session, once the records that the scope has made so far are durable.
  /// Does nothing if the session has ended or left the scope by then.
  func whenStored(
    _ subscription: Subscription, of session: ServerSession, _ action: @escaping () -> Void
  ) {
    let records = subscription.host.order.records
    if records.isCurrent { return act(subscription, session, action) }
    records.whenStored { [weak self] in
      // All that has waited comes at once.
      guard let self, !endsForOverflow(session) else { return }
      act(subscription, session, action)
    }
  }

  /// Does the same with the answer to a message of the client. With too many that wait, the client is read later.
  func answerWhenStored(
    _ subscription: Subscription, of session: ServerSession, _ action: @escaping () -> Void
  ) {
    let host = subscription.host
    if host.order.records.isCurrent { return act(subscription, session, action) }
    session.traffic.awaited.beginAnswer(of: host)
    host.order.records.whenStored { session.traffic.awaited.endAnswer(of: host) }
    whenStored(subscription, of: session, action)
    noteUnstored(session, host)
  }

  private func act(_ subscription: Subscription, _ session: ServerSession, _ action: () -> Void) {
    guard subscription.isLive else { return }
    action()
    wait(for: session)
  }
}
