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
    if waits(sync, from: session, on: subscription) { return }
    handle(sync, from: session, on: subscription)
  }

  /// Handles a change set whose turn has come.
  ///
  /// - Parameter waiting: the change set, if it has waited; nil for one that has not.
  func handle(
    _ sync: ScopeSync, from session: ServerSession, _ waiting: SetQueue.Waiting? = nil,
    on subscription: Subscription
  ) {
    let host = subscription.host
    let arrival = Arrival(sync: sync, session: session, waiting: waiting)
    guard let client = subscription.client, let number = sync.number, session.version > 1 else {
      return submit(arrival, to: subscription)
    }
    let (text, checksum) = sync.checkedText()
    let told = sync.isUnreadable ? nil : checksum
    let received = host.order.clients.receive(
      from: client, number, checksum: told, knowing: sync.decided,
      below: configuration.limits.unknownDecisionBytes)
    switch received.verdict {
    case .forgotten where sync.isCall:
      // Its handler may have done something elsewhere: it is called at most once.
      let result = ScopeOrder.Result(rejecting: sync, .outcomeForgotten)
      if sync.arguments != nil { result.outcome = .failure(.outcomeForgotten, thrown: nil) }
      keep(result, of: (client, number, checksum), in: host)
      noteUnstored(session, host)
      reply(to: sync, of: session, on: subscription, result)
    case .new, .forgotten:
      if let reused = subscription.numbering?.reusedNumber {
        return rejectReuse(of: reused, by: sync, on: subscription)
      }
      guard received.hasRoom else {
        return endOverLimit(session, .unknownDecisionBytes)
      }
      submit(arrival, as: text, to: subscription, by: (client, number, checksum))
    case .decided(let decision):
      // The change set has its sequence already: nothing is applied here.
      if decision.isBare || decision.isForgotten {
        return reject(sync, of: session, on: subscription, .reasonForgotten)
      }
      let isWhole = decision.fragmentReplies.isEmpty && decision.sequence != nil
      let replies =
        isWhole ? sync.fragments.map { _ in FragmentReply() } : decision.fragmentReplies
      // A session of the client's that is lost may have delivered it since this one has begun. If this one is not told
      // what comes from others, its client learns the sequence and the effect from the reply alone, as with any other
      // change set of its own. Once the stream has dropped it, neither is told: a client at the sequence before would
      // go on without the effect.
      let item = decision.sequence.flatMap { host.order.stream.item(at: $0) }
      reply(
        to: sync, of: session, on: subscription,
        ScopeOrder.Result(
          replies: replies, item: item, effective: item?.fragments ?? [],
          outcome: decision.outcome))
    case .contradiction:
      subscription.noteReuse(of: number)
      rejectReuse(of: number, by: sync, on: subscription)
    }
  }

  /// Rejects a change set because its number, or one that was sent before it, stands for another one. The client takes a new
  /// identity for all that is not decided by then, so the answer comes behind those to its earlier change sets.
  func rejectReuse(of number: Int, by sync: ScopeSync, on subscription: Subscription) {
    reject(sync, of: subscription.session, on: subscription, .setNumberReused(number))
  }

  /// Rejects a change set whose turn has come, without a decision of its own.
  private func reject(
    _ sync: ScopeSync, of session: ServerSession, on subscription: Subscription, _ error: WireError
  ) {
    let result = ScopeOrder.Result(rejecting: sync, error)
    if sync.arguments != nil { result.outcome = .failure(error, thrown: nil) }
    reply(to: sync, of: session, on: subscription, result)
  }

  /// A change set that a session has sent.
  struct Arrival {
    let sync: ScopeSync
    let session: ServerSession
    /// The change set with its session as it was when it sent it, if it has waited.
    let waiting: SetQueue.Waiting?
  }

  private func submit(
    _ arrival: Arrival, as text: FragmentsText? = nil, to subscription: Subscription,
    by author: (client: UUID, number: Int, checksum: UInt32)? = nil
  ) {
    let (sync, session, host) = (arrival.sync, arrival.session, subscription.host)
    let checksum = author?.checksum ?? 0
    if let name = sync.procedure, sync.isCall || session.version == 1 {
      return call(name, arrival, as: text, checksum: checksum, on: subscription)
    }
    if host.order.hasSizeLimit {
      // The size of a scope with changes that have no change set yet would be taken twice.
      host.content.seal()
      guard subscription.isLive, !host.hasEnded else { return }
    }
    let error = objection(to: sync, as: text, from: session, in: host)
    var submitter = submitter(of: arrival, to: subscription)
    // Those who were told of the server's own changes may have ended the session, or taken the scope away.
    guard subscription.isLive, !host.hasEnded else { return }
    if error == nil, sync.procedure == nil, judgesInSlices(sync) {
      let set = LargeSet(sync, as: text, checksum: checksum, submitter, subscription)
      return judge(set, of: session)
    }
    var draft: ScopeOrder.Draft?
    if error == nil, host.order.policy.rules != nil {
      draft = host.order.judgedDraft(of: sync, by: submitter)
      // Rules of the app were asked, which may have ended the session, or taken the scope away.
      guard subscription.isLive, !host.hasEnded else { return }
    }
    let result = host.order.records.step {
      let result =
        error.map { reject(sync, because: $0, submitter, in: host) }
        ?? apply(sync, as: text, by: &submitter, to: host, judged: draft.take())
      keep(result, of: author, in: host)
      return result
    }
    note(effort: result.effort, of: session)
    noteUnstored(session, host)
    tell(result, of: session, in: host)
    reply(to: sync, of: session, on: subscription, result)
    tellApp(result, in: host)
  }

  /// Rejects a change set that is not looked at: it is too large, say, or could not be read.
  private func reject(
    _ sync: ScopeSync, because error: WireError, _ submitter: ScopeOrder.Submitter,
    in host: ScopeHost
  ) -> ScopeOrder.Result {
    let result = host.order.reject(sync.fragments, unjudged: error, submitter)
    if sync.arguments != nil { result.outcome = .failure(error, thrown: nil) }
    return result
  }

  /// Keeps the decision on a change set.
  func keep(
    _ result: ScopeOrder.Result, of author: (client: UUID, number: Int, checksum: UInt32)?,
    in host: ScopeHost
  ) {
    let decision = author.map {
      ScopeRecord.Decision(
        client: $0.client, number: $0.number, checksum: $0.checksum,
        fragmentReplies: result.keptReplies, outcome: result.outcome)
    }
    host.order.keep(result.item, result.set, isRemote: true, decision)
  }

  /// Tells the other sessions and the operator of a decision.
  ///
  /// - Parameter session: the session that has sent the change set; nil if it has left the scope.
  func tell(_ result: ScopeOrder.Result, of session: ServerSession?, in host: ScopeHost) {
    trimClients(of: host)
    report(result.problems, from: session, in: host)
    if let item = result.item { broadcast(item, of: host, except: session) }
  }

  func tellApp(_ result: ScopeOrder.Result, in host: ScopeHost) {
    guard let item = result.item else { return }
    host.content.tell(
      RemoteChanges(
        item.fragments, sequence: item.sequence, origin: item.origin, inverse: result.set))
  }

  /// Forgets decisions of clients that do not have the scope now, if there are too many.
  func trimClients(of host: ScopeHost) {
    let (limit, bytes) = (configuration.rememberedClients, configuration.absentDecisionBytes)
    guard host.order.clients.isTrimDue(to: limit, bytes: bytes) else { return }
    let stream = host.order.stream
    host.order.clients.trim(
      to: limit, bytes: bytes,
      present: { [unowned host] in
        var present = Set(host.audience.subscriptions.values.compactMap(\.client))
        // A client that has left may have a change set that is still being decided.
        for set in host.undecided.all {
          if case .client(let client) = set.sender { present.insert(client) }
        }
        return present
      }, last: { stream.lastNumbers })
  }

  /// Reports the reasons for which rules could not decide.
  func report(_ problems: [String], from session: ServerSession?, in host: ScopeHost) {
    for problem in problems {
      hooks.report(
        Diagnostic(
          .error, .scope, session: session?.number, scope: host.content.name,
          "a change set was rejected, because the scope's rules could not judge it: \(problem)"))
    }
  }

  /// Returns the session as it was when it sent a change set. Seals the server's own changes before asking what the session
  /// may have missed: they come first in the order, and the session is told of them.
  func submitter(of arrival: Arrival, to subscription: Subscription) -> ScopeOrder.Submitter {
    arrival.session.takeProbed(at: now)
    subscription.host.content.seal()
    return arrival.waiting?.submitter.updated(from: subscription)
      ?? arrival.session.submitter(of: arrival.sync, to: subscription)
  }

  /// Applies what is accepted of a change set. Its record is not made yet.
  ///
  /// - Parameters:
  ///   - submitter: the session that has sent it; gets the date, and the room that there is now.
  ///   - draft: the draft of the change set, if it was judged already.
  ///   - objections: what slices have found before, if it was judged in slices.
  ///   - prepared: what slices have made ready for the draft.
  func apply(
    _ sync: ScopeSync, as text: FragmentsText?, by submitter: inout ScopeOrder.Submitter,
    to host: ScopeHost, judged draft: consuming ScopeOrder.Draft?,
    found objections: [Int: WireError]? = nil, prepared: ScopeOrder.Preparation? = nil
  ) -> ScopeOrder.Result {
    submitter.origin.date = submitter.origin.date ?? dateOfTurn()
    submitter.room = room(in: host)
    host.twin?.prepare(host.order)
    // The twin is given the same draft, of which it takes what was accepted.
    let judged = host.twin == nil ? nil : draft.flatMap { draft in objections.map { (draft, $0) } }
    let result = host.order.submit(
      sync, as: text, by: submitter, judged: draft, prepared: prepared)
    host.twin?.submit(sync, by: submitter, host.order, result, judged)
    if let limit = result.exceeded { hooks.limitReached(limit) }
    return result
  }

  func reply(
    to sync: ScopeSync, of session: ServerSession, on subscription: Subscription,
    _ result: ScopeOrder.Result
  ) {
    let sequence = subscription.host.sequence
    session.announce(result.correction, newcomers: [], of: subscription)
    if subscription.host.order.records.isCurrent {
      guard subscription.isLive else { return }
      answer(sync.index, result, after: sequence, of: subscription)
      return wait(for: session)
    }
    answerWhenStored(subscription, of: session) { [unowned self, index = sync.index] in
      answer(index, result, after: sequence, of: subscription)
    }
  }

  private func answer(
    _ index: Int, _ result: ScopeOrder.Result, after sequence: Int, of subscription: Subscription
  ) {
    let session = subscription.session
    if let own = result.acceptedAsItIs, session.accept(index, at: own, of: subscription) { return }
    let isOld = session.version == 1
    let reply = ScopeSyncReply(
      replyTo: index, fragmentReplies: result.replies,
      sequence: isOld ? nil : result.item?.sequence, effective: isOld ? nil : result.effective,
      as: result.effective == nil ? nil : result.item?.text, outcome: isOld ? nil : result.outcome)
    let correction = result.correction
    session.answer(reply, after: sequence, of: subscription)
    if subscription.later.count > configuration.keptLimit.messages {
      return end(session, code: 4097, reason: "too much is not acknowledged")
    }
    if !correction.isEmpty {
      session.tell(correction, upTo: sequence, newcomers: [], of: subscription)
    }
  }

  /// Rejects every fragment of a change set.
  func answer(
    _ sync: ScopeSync, to session: ServerSession, rejecting error: WireError
  ) {
    let replies = Array(repeating: FragmentReply(error: error), count: sync.fragments.count)
    let isCall = sync.arguments != nil && session.version > 1
    let reply = ScopeSyncReply(
      replyTo: sync.index, fragmentReplies: replies,
      outcome: isCall ? .failure(error, thrown: nil) : nil)
    post(session, .scopeSyncReply(reply))
  }
}

extension ScopeSync {
  /// Makes a change set that cannot be read. It is rejected in its turn, and its client is told the problem once.
  init(unreadable problem: WireError, index: Int, scopeIndex: Int, number: Int, isCall: Bool) {
    let fragment = SyncFragment(
      .change, uuid: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), className: "",
      properties: [:])
    self.init(
      index: index, scopeIndex: scopeIndex, fragments: [fragment], text: nil, number: number,
      problem: problem)
    if isCall { arguments = .null }
  }

  /// True if a client that numbers its change sets calls a procedure.
  fileprivate var isCall: Bool { InitialContent.isCall(self.procedure) }
}
