import Foundation
import Jetstream

/// Large change sets, which are judged in slices so that others need not wait for them; see ``LargeSet``.
extension ServerEngine {
  /// Begins to judge a large change set.
  func judge(_ set: LargeSet, of session: ServerSession) {
    set.host.undecided[set.sender] = set
    work.judgements.append(set, of: session.number)
    askForTurn()
  }

  /// True unless the change sets that are being judged have as many bytes as the largest one may have. Cost: O(number of
  /// these change sets).
  package var hasRoomForLargeSets: Bool {
    guard let most = configuration.limits.bytesPerChangeSet else { return true }
    return work.judgements.bytes < most
  }

  private func askForTurn() {
    if work.judgements.asksForTurn() { lastActions.append(.judge) }
  }

  /// Judges the next slice of a large change set. Call it once for each ``Action/judge``, when others have had their turn.
  package func judge(now: Duration) {
    self.now = now
    isHandling = true
    if let set = work.judgements.next(), let findings = set.advance(configuration.sliceSize),
      !set.isOver
    {
      decide(set, findings)
    }
    askForTurn()
    isHandling = false
    flush()
  }

  private func decide(_ set: LargeSet, _ findings: LargeSet.Findings) {
    let host = set.host
    // The server's own changes come first in the order. Those who are told of them may end the change set.
    host.content.seal()
    if set.isOver { return }
    let result = host.records.step {
      let result = outcome(of: set, findings)
      let author = set.submitter.author.map { ($0.client, $0.number, set.checksum) }
      keep(result, of: author, in: host)
      return result
    }
    // An observer of the change set may have taken the scope away: nobody is to be told then.
    if set.isOver { return }
    host.undecided[set.sender] = nil
    set.drop()
    if let subscription = set.subscription, subscription.isLive { noteUnstored(subscription) }
    tell(result, of: set.session, in: host)
    if let subscription = set.subscription, subscription.isLive {
      reply(to: set.sync, of: subscription.session, on: subscription, result)
    }
    tellApp(result, in: host)
    takeQueued(behind: set)
  }

  private func outcome(of set: LargeSet, _ findings: LargeSet.Findings) -> ScopeHost.Result {
    let (sync, host) = (set.sync, set.host)
    // The rights may have changed since it was sent.
    if let session = set.session, session.subscriptions.access.isReadOnly(host) {
      return ScopeHost.Result(rejecting: sync, .readOnly)
    }
    switch findings {
    case .rejected(let draft):
      return apply(sync, as: set.text, by: set.submitter, to: host, judged: (draft, [:]))
    case .open(let judgement):
      // Others may have filled the scope meanwhile.
      if let limit = limit(exceededBy: sync, of: set.bytes, in: host) {
        return ScopeHost.Result(rejecting: sync, reached(limit))
      }
      let objections = judgement.objections
      let draft = host.rest(of: judgement, by: set.submitter)
      return apply(sync, as: set.text, by: set.submitter, to: host, judged: (draft, objections))
    }
  }
}

extension ScopeSync {
  /// Returns true if a change set has more than so many fragments, operations and elements of arrays. Cost: O(n) in these, up
  /// to that number.
  func isLarger(than size: Int) -> Bool {
    var left = size - fragments.count
    for index in fragments.indices {
      if left < 0 { return true }
      for entry in fragments[index].operations { left -= entry.operations.count }
      for member in fragments[index].properties.members {
        if case .array(let elements) = member.value { left -= elements.count }
      }
    }
    return left < 0
  }
}

extension ScopeHost.Result {
  /// The result for a change set that is rejected as a whole.
  init(rejecting sync: ScopeSync, _ error: WireError) {
    self.init(replies: sync.fragments.map { _ in FragmentReply(error: error) })
  }
}
