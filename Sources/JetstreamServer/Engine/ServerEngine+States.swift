import Foundation
import Jetstream

/// The answers to fetches of version 2, and the states that some of them need.
extension ServerEngine {
  /// Answers a fetch, and sends what the client asks for. A fetch that needs a state of more than one part is answered
  /// once that was read; the scope goes on meanwhile.
  func answer(_ fetch: ScopeFetch, on subscription: Subscription) {
    let (host, session) = (subscription.host, subscription.session)
    if !subscription.openFetches.contains(fetch.index) {
      subscription.openFetches.append(fetch.index)
    }
    // Observers of the app may change the scope when its changes are sealed.
    let isSettled = host.content.settle()
    let client = subscription.client
    // However often a client fetches the scope in a turn, what it has missed is compared with the state once.
    let (scope, turn) = (subscription.index, work.judgements.turn)
    var (standing, since) = host.order.standing(of: client, fetch) { items in
      if let known = session.traffic.comparison(of: scope, in: turn) { return known }
      let isLess = host.order.isStateLess(than: items, for: client)
      session.traffic.note(isStateLess: isLess, of: scope, in: turn)
      return isLess
    }
    // Taken when the answer goes out: while many answers wait for the log, a list in each would be a copy of all.
    standing.decisions = []
    var state: StateCopy?
    if fetch.tell != .nothing, since == nil {
      guard let root = host.content.root else {
        let error = WireError.rejected("The scope has no root")
        return refuse(fetch.index, of: subscription, error)
      }
      state = host.states.state(
        of: host, below: root, isSettled: isSettled, partBytes: configuration.stateBytes, now: now)
      guard state != nil else {
        host.states.wait(ScopeStates.Fetch(message: fetch, subscription: subscription))
        host.states.readOn()
        return encodeNext(of: host)
      }
    }
    if state != nil { session.traffic.load.fullStates += 1 }
    let reply = ScopeFetchReply(
      replyTo: fetch.index, scopeIndex: subscription.index, standing: standing)
    let told = Subscription.Told(
      since: fetch.tell == .nothing ? nil : since, state: state.map { .init($0) },
      upTo: host.sequence, isLimited: fetch.tell != .everything)
    // The earlier subscription goes on until the records made so far are durable.
    answerWhenStored(subscription, of: session) {
      var reply = reply
      if let client, let decided = reply.standing?.decided {
        // Later decisions may not be durable yet.
        reply.standing?.decisions = host.order.clients[client].unknown(
          after: fetch.decided ?? 0, upTo: decided)
      }
      session.queue(.scopeFetchReply(reply))
      subscription.openFetches.removeAll { $0 == fetch.index }
      subscription.begin(told)
    }
    // One that waits for an earlier fetch comes in front of the answer to this one.
    subscription.catchesUpTo = nil
    work.catchUp(on: subscription)
    encodeNext(of: host)
    // Many fetches may have waited for the same state, and each answer has all decisions that its client does not know.
    endsForOverflow(session)
  }

  /// Refuses a fetch that was to be answered later.
  private func refuse(_ fetch: Int, of subscription: Subscription, _ error: WireError) {
    subscription.openFetches.removeAll { $0 == fetch }
    let session = subscription.session
    post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch, error: error)))
    // The client does not know the number of a scope that it was never granted.
    if !subscription.hasBegun, subscription.openFetches.isEmpty { session.leave(subscription) }
  }

  /// Refuses the fetches of a subscription that are not answered yet, for the reason of an error.
  func refuseOpenFetches(of subscription: Subscription, _ error: WireError) {
    for fetch in subscription.openFetches { refuse(fetch, of: subscription, error) }
  }

  /// Takes the text that ``Action/encode(scope:_:)`` has asked for, and sends it to those who wait for it.
  package func encoded(_ text: FragmentsText, of scope: Int, now: Duration) {
    self.now = now
    guard let host = work.encoding.removeValue(forKey: scope) else { return }
    isHandling = true
    for subscription in host.states.take(text) where subscription.isLive && subscription.isBehind {
      catchUp(subscription.session, on: subscription)
    }
    readOn(host)
    isHandling = false
    flush()
  }

  /// Reads the next part of a state that fetches wait for, or answers them if that was done.
  private func readOn(_ host: ScopeHost) {
    // A change that the app takes back before it is sealed is never noted, so it must not be read.
    if host.states.isAwaited { host.content.seal() }
    host.states.readOn()
    answerOpenFetches(of: host)
    for fetch in host.states.takeFetches() where fetch.subscription.isLive {
      answer(fetch.message, on: fetch.subscription)
    }
    for action in host.states.takePreparations() { action() }
    encodeNext(of: host)
  }

  /// Has the next part of a state encoded, if one waits for that.
  func encodeNext(of host: ScopeHost) {
    guard let fragments = host.states.nextEncoding() else { return }
    let scope = host.audience.scopeIndex
    work.encoding[scope] = host
    lastActions.append(.encode(scope: scope, fragments))
  }
}
