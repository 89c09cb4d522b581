import Foundation
import Jetstream

/// The answers to fetches of version 1, whose protocol has no parts: each state is one message.
///
/// A fetch of a small state is answered at once. A fetch of a larger one is open (``OpenFetches``) until its texts were
/// made away from the server's actor. In the step in which it is answered, the subscription begins if the session has
/// none, and the reply and the state are queued. So the session is told the change sets behind the state, and none
/// before its reply. A session that has the scope already goes on being told change sets until then.
///
/// Models that change while the texts are made are read again, and only their parts are encoded again; see
/// ``ScopeStates/wholeState(of:below:isSettled:partBytes:now:)``.
extension ServerEngine {
  /// Answers a fetch, or leaves it open until the end of the turn at least.
  func answerWhole(_ fetch: ScopeFetch, of host: ScopeHost, to session: ServerSession) {
    let isOpen = session.subscriptions.hasOpenFetches(of: host) || isLarge(host)
    // Those who are told of the server's own changes may have ended the session.
    if session.link.hasEnded { return }
    guard isOpen else {
      let subscription = session.subscriptions[host] ?? session.subscribe(to: host, as: nil)
      let reply = ScopeFetchReply(replyTo: fetch.index, scopeIndex: subscription.index)
      answerWhenStored(subscription, of: session) { session.queue(.scopeFetchReply(reply)) }
      return session.demands.askState(of: subscription)
    }
    session.subscriptions.open(fetch.index, of: host)
    session.demands.hasOpenFetches = true
  }

  /// Returns true if the state of a scope is sent to sessions of version 2 in more than one part.
  private func isLarge(_ host: ScopeHost) -> Bool {
    // A change that is not sealed may be taken back without a note, so that it must not be read.
    guard host.content.settle(), let root = host.content.root else { return false }
    defer { encodeNext(of: host) }
    let state = host.states.state(
      of: host, below: root, isSettled: true, partBytes: configuration.stateBytes, now: now)
    return state.map { $0.parts.count > 1 } ?? true
  }

  /// Sends a session the full state of a scope of one part.
  func tellState(to session: ServerSession, of subscription: Subscription) {
    let host = subscription.host
    let isSettled = host.content.settle()
    guard let root = host.content.root else { return }
    session.traffic.load.fullStates += 1
    let state = host.states.smallState(
      of: host, below: root, isSettled: isSettled, now: now)
    answerWhenStored(subscription, of: session) {
      session.queue(.scopeState(state.message(0, scopeIndex: subscription.index)))
    }
  }

  /// Answers the fetches of the frames of this turn, of which each scope leads to one state. Those of a frame of which only
  /// a part has come are answered with its last part.
  func answerOpenFetches(of session: ServerSession) {
    guard !session.demands.hasOpenFetches else { return }
    for fetches in session.subscriptions.openFetches
    where !fetches.host.states.isAwaited(by: session) {
      answerOpenFetches(of: fetches.host, to: session)
    }
  }

  /// Answers the fetches that have waited for the state of a scope, if it was read and encoded.
  func answerOpenFetches(of host: ScopeHost) {
    for session in host.states.takeSessions()
    where !session.link.hasEnded && !session.demands.hasOpenFetches {
      answerOpenFetches(of: host, to: session)
    }
  }

  private func answerOpenFetches(of host: ScopeHost, to session: ServerSession) {
    // Observers of the app may change the scope, or have it removed, when its changes are sealed.
    let isSettled = host.content.settle()
    guard session.subscriptions.hasOpenFetches(of: host) else { return }
    guard let root = host.content.root else {
      return refuseOpenFetches(of: host, by: session, .rejected("The scope has no root"))
    }
    let state = host.states.wholeState(
      of: host, below: root, isSettled: isSettled, partBytes: configuration.stateBytes, now: now)
    guard let state else {
      host.states.wait(session)
      host.states.readOn()
      return encodeNext(of: host)
    }
    session.traffic.load.fullStates += 1
    let fetches = session.subscriptions.closeFetches(of: host)
    let subscription = session.subscriptions[host] ?? session.subscribe(to: host, as: nil)
    let index = subscription.index
    answerWhenStored(subscription, of: session) {
      for fetch in fetches {
        session.queue(.scopeFetchReply(ScopeFetchReply(replyTo: fetch, scopeIndex: index)))
      }
      session.queue(.scopeState(state.message(0, scopeIndex: index)))
    }
    encodeNext(of: host)
  }

  /// Refuses the open fetches of a session.
  func refuseOpenFetches(of host: ScopeHost, by session: ServerSession, _ error: WireError) {
    let fetches = session.subscriptions.closeFetches(of: host)
    for fetch in fetches {
      post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch, error: error)))
    }
    // Without a subscription, nothing else would take its name and its rights.
    if !fetches.isEmpty, session.subscriptions[host] == nil {
      session.subscriptions.access.forget(host)
    }
  }
}

/// The fetches of one scope that a session of version 1 has made and that are not answered yet.
struct OpenFetches {
  let host: ScopeHost
  /// The indices of the messages.
  var indices: [Int]
}
