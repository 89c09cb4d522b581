import Foundation

/// What happens to changes that the server has not decided when it turns out to have another history than
/// the one that the client knows: it was restored from an old copy, or began anew.
public enum HistoryLoss: Sendable, Hashable {
  /// They are sent again: what the app shows stays.
  case recover
  /// They are taken back, each as rejected.
  case discard
}

/// How the server's order and ours fit together at the beginning of a session.
extension Replica {
  /// What the server says of the scope before it sends it, or what was missed of it.
  func receive(_ standing: ScopeStanding, _ tell: ScopeFetch.Tell) {
    // With a state, what is in it already is not shown as taken back in between.
    target = standing.position.sequence
    stateStanding = nil
    stateParts = []
    if tell == .nothing {
      guard let position, !isOther(standing.position, than: position) else {
        (needsState, isElsewhere) = (true, true)
        return
      }
    } else {
      // The mode may have changed, and the exchange may have been given up, since that was asked for.
      isTaking = mode == .realtime || round != nil || needsState || !hasState
      if !isTaking { hasMissed = true }
      needsState = false
    }
    guard standing.resumes else { return stateStanding = standing }
    beginBatch()
    for decision in decided(by: standing) {
      guard let at = pending.firstIndex(where: { $0.number == decision.number }) else { continue }
      // A frame of a process that is gone may have brought the set when this one had its session: then it was
      // told as if it was another one's, and its place is taken in.
      if decision.sequence ?? 0 <= position?.sequence ?? 0 {
        conclude(at, decision.fragmentReplies, effective: [])
      } else {
        noteDecision(at, decision.fragmentReplies)
        sentCount = max(sentCount, at + 1)
      }
    }
    if tell != .nothing || standing.isForgotten { noteHistory(of: standing) }
    hasState = true
  }

  /// The server has decided what a message has carried, and does not tell yet what is in front of it in the
  /// order.
  func noteDecision(of messageIndex: Int, _ replies: [FragmentReply]) {
    guard let at = pending.place(sentIn: messageIndex, among: sentCount) else { return }
    noteDecision(at, replies)
  }

  func noteDecision(_ at: Int, _ replies: [FragmentReply]) {
    if pending[at].decision == nil { decidedCount += 1 }
    pending[at].decision = replies
  }

  /// The state that the standing speaks of is about to be taken in.
  func finishStanding() {
    guard let standing = stateStanding else { return }
    stateStanding = nil
    beginBatch()
    // Whatever was accepted is part of the state.
    for decision in decided(by: standing) {
      guard let at = pending.firstIndex(where: { $0.number == decision.number }) else { continue }
      conclude(at, decision.fragmentReplies, effective: [])
    }
    noteHistory(of: standing)
    position = standing.position
  }

  /// Returns the decisions about the pending sets that the server has decided, in the order of the sets' numbers: of
  /// two sets that write the same property, the later one is the last write.
  private func decided(by standing: ScopeStanding) -> [ScopeStanding.Decision] {
    let decisions = Dictionary(
      standing.decisions.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    return pending.compactMap { entry in
      guard entry.number <= standing.decided else { return nil }
      let accepted = entry.set.fragments.map { _ in FragmentReply() }
      var decision =
        decisions[entry.number]
        ?? ScopeStanding.Decision(number: entry.number, fragmentReplies: accepted)
      // All that the server knows is that it was accepted.
      if decision.fragmentReplies.isEmpty, decision.sequence != nil {
        decision.fragmentReplies = accepted
      }
      return decision
    }
  }

  private func noteHistory(of standing: ScopeStanding) {
    let isForgotten = standing.isForgotten && !pending.isEmpty
    guard let known = position,
      isForgotten || isElsewhere || isOther(standing.position, than: known)
    else { return }
    isElsewhere = false
    if historyLoss() == .discard { discardPending() }
    onHistoryLost?()
  }

  /// Whether the server is not the one, or not as far, as we know it to be.
  private func isOther(_ position: ScopePosition, than known: ScopePosition) -> Bool {
    position.epoch != known.epoch || position.sequence < known.sequence
  }

  /// Takes back what is not decided.
  private func discardPending() {
    let error = WireError(
      message: "The server has lost the history that the change belongs to", type: "history-lost")
    for number in pending.filter({ $0.decision == nil }).map(\.number) {
      guard let at = pending.firstIndex(where: { $0.number == number }) else { continue }
      let replies = pending[at].set.fragments.map { _ in FragmentReply(error: error) }
      conclude(at, replies, effective: nil)
    }
  }
}
