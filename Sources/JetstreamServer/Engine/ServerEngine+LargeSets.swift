import Foundation
import Jetstream

/// Large change sets, which are judged in slices so that others need not wait for them; see ``LargeSet``.
extension ServerEngine {
  /// Returns true if a change set is judged in slices. A further one is judged in one piece when those that are being
  /// judged have as many bytes as the largest one may have, so that their number is bounded whatever clients do.
  func judgesInSlices(_ sync: ScopeSync) -> Bool {
    sync.isLarger(than: 2 * configuration.sliceSize) && hasRoomForLargeSets
  }

  /// True unless the change sets that are being judged have as many bytes as the largest one may have. Cost: O(number of
  /// these change sets).
  package var hasRoomForLargeSets: Bool {
    work.judgements.bytes < max(1, configuration.limits.bytesPerChangeSet ?? 16 << 20)
  }

  /// Begins to judge a large change set. Until it is decided, nothing more is read of its session.
  func judge(_ set: LargeSet, of session: ServerSession) {
    // A review of the app was asked, which may have ended either.
    guard let host = set.host, !host.hasEnded, set.session != nil else { return set.drop() }
    host.undecided[set.sender] = set
    session.traffic.largeSets.append(ClientTraffic.Judged(set: set))
    work.judgements.append(set, of: session.number)
    askForTurn()
  }

  private func askForTurn() {
    if work.judgements.asksForTurn() { lastActions.append(.judge) }
  }

  /// Leaves what waits in a subscription to the next turn.
  func release(_ subscription: Subscription) {
    work.judgements.release(subscription)
    askForTurn()
  }

  /// Has a part of a scope's full state measured if that is due, in a turn of its own: the next part, if that is due then, in
  /// another one. A part may have a model that holds all others.
  func measureState(of host: ScopeHost) {
    guard host.order.stream.isMeasurementDue else { return }
    work.judgements.measure(host)
    askForTurn()
  }

  /// Judges the next slice of a large change set or, in turn with that, measures a part of a full state. Call it once for each
  /// ``Action/judge``, when others have had their turn.
  package func judge(now: Duration) {
    self.now = now
    isHandling = true
    switch work.judgements.next() {
    case .set(let set):
      guard let host = set.host else { break }
      // The server's own changes come first in the order. Those who are told of them may end the change set.
      host.content.seal()
      guard let findings = set.advance(configuration.sliceSize) else { break }
      decide(set, findings, in: host)
      if case .accepted = findings { work.judgements.free(findings) }
    case .measurement(let host):
      host.order.measureState()
      measureState(of: host)
    case nil: break
    }
    takeReleased()
    askForTurn()
    isHandling = false
    flush()
  }

  private func decide(_ set: LargeSet, _ findings: LargeSet.Findings, in host: ScopeHost) {
    let outcome = outcome(of: set, findings, in: host)
    // Rules of the app were asked, which may have taken the rights away.
    if set.isOver { return takeQueued(behind: set) }
    // From here on it is decided: an observer of the change set that ends its session ends nothing of it.
    host.undecided[set.sender] = nil
    set.drop()
    var submitter = set.currentSubmitter
    let result = host.order.records.step {
      let result =
        switch outcome {
        case .rejected(let error):
          host.order.reject(set.sync.fragments, unjudged: error, submitter)
        case .judged(let draft, let objections, let prepared):
          apply(
            set.sync, as: set.text, by: &submitter, to: host, judged: draft, found: objections,
            prepared: prepared)
        }
      let author = set.submitter.author.map { ($0.client, $0.number, set.checksum) }
      keep(result, of: author, in: host)
      return result
    }
    if let subscription = set.subscription, subscription.isLive {
      note(effort: result.effort, of: subscription.session)
      noteUnstored(subscription.session, host)
    }
    tell(result, of: set.session, in: host)
    if let subscription = set.subscription, subscription.isLive {
      reply(to: set.sync, of: subscription.session, on: subscription, result)
    }
    tellApp(result, in: host)
    takeQueued(behind: set)
  }

  /// The outcome of a judgement, before anything is applied.
  private enum Outcome {
    /// All of it is rejected for a reason that has nothing to do with what it changes.
    case rejected(WireError)
    case judged(ScopeOrder.Draft, objections: [Int: WireError], ScopeOrder.Preparation?)
  }

  private func outcome(
    of set: LargeSet, _ findings: LargeSet.Findings, in host: ScopeHost
  ) -> Outcome {
    // The rights may have changed since it was sent.
    if set.isReadOnly || set.session?.subscriptions.access.isReadOnly(host) == true {
      return .rejected(.readOnly)
    }
    // Others may have filled the scope, or the memory, meanwhile.
    let limit =
      findings.isRejection
      ? nil : limit(exceededBy: set.sync, of: set.bytes, from: set.session, in: host)
    if let limit { return .rejected(reached(limit)) }
    switch findings {
    case .rejected(let draft): return .judged(draft, objections: [:], nil)
    case .accepted(let draft, let objections, let prepared):
      return .judged(draft, objections: objections, prepared)
    case .open(let judgement):
      let objections = judgement.objections
      return .judged(
        host.order.rest(of: judgement, by: set.currentSubmitter), objections: objections, nil)
    }
  }
}

extension ScopeOrder.Result {
  /// The result for a change set that is rejected as a whole.
  convenience init(rejecting sync: ScopeSync, _ error: WireError) {
    self.init(replies: sync.fragments.map { _ in FragmentReply(error: error) })
  }
}
