import Foundation
import Jetstream

/// The handling of change sets that clients submit.
extension ServerEngine {
  func handle(_ sync: ScopeSync, from session: ServerSession) {
    if session.subscriptions.drops(sync) { return }
    guard let subscription = session.subscriptions[sync.scopeIndex] else {
      answer(sync, to: session, rejecting: .scopeIndexNotFound(sync.scopeIndex))
      return
    }
    let host = subscription.host
    guard let client = subscription.client, let number = sync.number, session.version > 1 else {
      submit(sync, from: session, to: subscription)
      return
    }
    if let known = sync.decided { host.clients.forgetDecisions(of: client, upTo: known) }
    var checksum: UInt32 = 0
    let text = FragmentsText(sync.fragments, checksum: &checksum)
    switch host.clients.verdict(of: client, on: number, checksum: checksum) {
    case .new:
      submit(sync, as: text, from: session, to: subscription, by: (client, number, checksum))
    case .decided(let replies):
      // The change set has its sequence already: nothing is applied here.
      reply(
        to: sync, of: session, on: subscription,
        ScopeHost.Result(replies: replies, effective: []))
    case .contradiction:
      answer(sync, to: session, rejecting: .setNumberReused(number))
    }
  }

  private func submit(
    _ sync: ScopeSync, as text: FragmentsText? = nil, from session: ServerSession,
    to subscription: Subscription,
    by author: (client: UUID, number: Int, checksum: UInt32)? = nil
  ) {
    let host = subscription.host
    let result = host.records.step {
      let result = decide(sync, as: text, from: session, to: subscription)
      let decision = author.map {
        ScopeRecord.Decision(
          client: $0.client, number: $0.number, checksum: $0.checksum,
          fragmentReplies: result.replies)
      }
      host.keep(result.item, result.set, isRemote: true, decision)
      return result
    }
    host.clients.trim(to: configuration.rememberedClients) { [sessions] in
      Set(sessions.values.flatMap { $0.subscriptions.all.compactMap(\.client) })
    }
    for problem in result.problems {
      hooks.report(
        Diagnostic(
          .error, .scope, session: session.number, scope: host.content.name,
          "a change set was rejected, because the scope's rules could not judge it: \(problem)"))
    }
    if let item = result.item { broadcast(item, of: host, except: session) }
    reply(to: sync, of: session, on: subscription, result)
    if let item = result.item {
      host.content.tell(
        RemoteChanges(
          item.fragments, sequence: item.sequence, origin: item.origin, inverse: result.set))
    }
  }

  /// Applies what is accepted of a change set. Its record is not made yet.
  private func decide(
    _ sync: ScopeSync, as text: FragmentsText?, from session: ServerSession,
    to subscription: Subscription
  ) -> ScopeHost.Result {
    let host = subscription.host
    if session.subscriptions.access.isReadOnly(host) {
      return ScopeHost.Result(replies: sync.fragments.map { _ in FragmentReply(error: .readOnly) })
    }
    if let error = objection(to: sync, as: text, from: session, in: host) {
      return ScopeHost.Result(replies: sync.fragments.map { _ in FragmentReply(error: error) })
    }
    if let procedure = sync.procedure, procedure != InitialContent.procedure || session.version == 1
    {
      let error = WireError.couldNotApplySync(reason: "there is no procedure \(procedure)")
      return ScopeHost.Result(replies: sync.fragments.map { _ in FragmentReply(error: error) })
    }
    session.takeProbed(at: now)
    // The server's own changes come first in the order, and the session is told of them: seal them before asking what
    // the session may have missed.
    host.content.seal()
    var submitter = session.submitter(of: sync, to: subscription)
    submitter.origin.date = submitter.origin.date ?? hooks.date()
    host.twin?.prepare(host)
    let result = host.submit(sync, as: text, by: submitter)
    host.twin?.submit(sync, by: submitter, host, result)
    return result
  }

  private func reply(
    to sync: ScopeSync, of session: ServerSession, on subscription: Subscription,
    _ result: ScopeHost.Result
  ) {
    let sequence = subscription.host.sequence
    var reply = ScopeSyncReply(replyTo: sync.index, fragmentReplies: result.replies)
    if session.version > 1 {
      reply.sequence = result.item?.sequence
      reply.effective = result.effective
    }
    let limit = configuration.keptLimit.messages
    session.announce(result.correction, newcomers: [], of: subscription)
    whenStored(subscription, of: session) { [unowned self] in
      session.answer(reply, after: sequence, of: subscription)
      if subscription.later.count > limit {
        return end(session, code: 4097, reason: "too much is not acknowledged")
      }
      if !result.correction.isEmpty {
        session.tell(result.correction, upTo: sequence, newcomers: [], of: subscription)
      }
    }
  }

  /// Rejects every fragment of a change set.
  func answer(
    _ sync: ScopeSync, to session: ServerSession, rejecting error: WireError
  ) {
    let replies = Array(repeating: FragmentReply(error: error), count: sync.fragments.count)
    post(session, .scopeSyncReply(ScopeSyncReply(replyTo: sync.index, fragmentReplies: replies)))
  }

  /// Tells all sessions that listen, but for the one that has made the change set: its reply tells it. Sessions of version
  /// 2 are told at the end of the turn.
  func broadcast(_ item: StreamItem, of host: ScopeHost, except origin: ServerSession?) {
    let old = host.audience.valueListeners
    let text = old.count > 1 ? item.whole.map(FragmentsText.init) : nil
    for (_, subscription) in old where subscription.session !== origin {
      if subscription.session.link.connection == nil {
        subscription.miss(item)
      } else {
        tell(item, as: text, of: subscription)
      }
    }
    if host.records.isCurrent { return announce(item, of: host) }
    host.records.whenStored { [weak self, unowned host] in self?.announce(item, of: host) }
  }

  private func announce(_ item: StreamItem, of host: ScopeHost) {
    if host.audience.announce(item, frameBytes: configuration.frameBytes) {
      hostsWithNews.append(host)
    }
  }

  /// Sends a session of version 1 an accepted change set, once it is durable.
  private func tell(
    _ item: StreamItem, as text: FragmentsText? = nil, of subscription: Subscription
  ) {
    let session = subscription.session
    session.announce(item.whole ?? [], newcomers: item.newcomers, of: subscription)
    whenStored(subscription, of: session) {
      session.tell(
        item.whole ?? [], as: text, upTo: item.sequence, newcomers: item.newcomers,
        of: subscription)
    }
  }

  /// Queues what a session of version 1 has missed while it had no connection. The messages go out once the client has
  /// said what it has received.
  func tellMissed(to session: ServerSession) {
    for subscription in session.subscriptions.inOrder {
      guard let items = subscription.takeMissed() else {
        return endWithWarning(session, "too far behind")
      }
      for item in items { tell(item, of: subscription) }
    }
    session.link.replaceOutbox(with: [])
  }
}
