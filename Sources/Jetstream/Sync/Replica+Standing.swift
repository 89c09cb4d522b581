import Foundation

/// The treatment of pending change sets when the server reports another history than the one that the client knows:
/// the server was restored from an old copy, or has begun anew.
public enum HistoryLoss: Sendable, Hashable {
  /// The client sends the change sets again: what the app shows stays.
  case recover
  /// The client rejects the change sets and undoes their changes.
  case discard
}

/// Matching the server's order and the replica's at the beginning of a session.
extension Replica {
  /// Handles the resume point that the server sends before the state or the missed changes of the scope, which the client
  /// has asked for at the sequence `since`.
  func receive(_ standing: ScopeStanding, _ tell: ScopeFetch.Tell, since: Int) {
    progress.aim(at: standing.position.sequence, since: since)
    // The server may have granted this before the client has resumed the session.
    if tell == .everything { progress.extendTarget(to: session.latest) }
    session.stateStanding = nil
    session.stateParts = []
    session.needsNextState = session.needsState || !session.hasState
    if tell == .nothing {
      guard progress.meets(standing.position) else { return session.needsState = true }
    } else {
      // The mode may have changed, or the sync may have been cancelled, since this was asked for. The first state is
      // applied in any case: without it, nothing can be sent.
      session.isTaking =
        schedule.appliesRemote || session.needsState || !session.hasState && !standing.resumes
      if !session.isTaking { session.hasMissed = true }
      session.needsState = false
    }
    // A server with another history decides again what it does not know. One with a part of the known one, which was
    // restored from an older copy, has lost what is behind that.
    let isSame = progress.position?.epoch == standing.position.epoch
    forgetDecisions(
      after: isSame
        ? pending.knownNumber(upTo: standing.position.sequence) : standing.decided)
    guard standing.resumes else { return session.stateStanding = standing }
    session.acknowledged = since
    beginBatch()
    noteForeignDecisions(in: standing)
    for decision in decided(by: standing) {
      guard let at = pending.place(of: decision.number) else { continue }
      // A frame of a process that is gone may have delivered the change set when this process had its session: the
      // server then sent it like another client's change set, and its sequence is applied already.
      if progress.isBefore(decision.sequence) {
        pending.noteSent(upTo: at)
        keepDecision(at: at, decision)
      } else {
        conclude(at, decision.fragmentReplies, effective: [], decision.outcome)
      }
    }
    noteReusedNumbers(in: standing)
    // Another process must not take a call that has failed here for accepted, once the server has decided later ones.
    if standing.forgottenUpTo > 0 { sendBehindRecords() }
    if tell != .nothing || standing.isForgotten { noteHistory(of: standing) }
    session.hasState = true
  }

  /// Notes the server's decision about the change set of a message, while earlier changes in the server's order have
  /// not been applied.
  ///
  /// - Parameter sequence: the sequence of the change set, behind theirs; nil if none is known to be missing.
  func noteDecision(
    of messageIndex: Int, _ replies: [FragmentReply], _ outcome: CallOutcome?,
    at sequence: Int? = nil
  ) {
    guard let at = pending.place(sentIn: messageIndex) else { return }
    let decision = ScopeStanding.Decision(
      number: pending[at].number, fragmentReplies: replies, sequence: sequence, outcome: outcome)
    if sequence == nil { pending.decide(at, decision) } else { keepDecision(at: at, decision) }
  }

  /// Applies the decisions of a resume point whose state is about to be applied.
  func finishStanding() {
    guard let standing = session.stateStanding else { return }
    session.stateStanding = nil
    beginBatch()
    noteForeignDecisions(in: standing)
    // Everything that was accepted is part of the state.
    for decision in decided(by: standing) {
      guard let at = pending.place(of: decision.number) else { continue }
      conclude(at, decision.fragmentReplies, effective: [], decision.outcome)
    }
    noteReusedNumbers(in: standing)
    if standing.forgottenUpTo > 0 { sendBehindRecords() }
    noteHistory(of: standing)
    if progress.isAhead(of: standing.position) { askForMissed() }
    progress.position = standing.position
    session.acknowledged = standing.position.sequence
  }

  /// Returns the decisions about the pending change sets that the server has decided, in the order of their numbers:
  /// of two change sets that write the same property, the later one is the last write.
  ///
  /// A change set that the server does not know is not among them; see ``noteReusedNumbers(in:)``.
  func decided(by standing: ScopeStanding) -> [ScopeStanding.Decision] {
    let told = standing.decisions.lazy.filter { !$0.isForgotten }.map { ($0.number, $0) }
    let decisions = Dictionary(told, uniquingKeysWith: { first, _ in first })
    return pending.compactMap { entry in
      if entry.isUnknownToServer { return nil }
      // A reply that is held is noted without a sequence. It is handled in its turn, behind the resume point.
      let kept = entry.decision.flatMap { $0.sequence == nil ? nil : $0 }
      let known = decisions[entry.number] ?? kept
      guard known != nil || entry.number <= standing.decided else {
        return forgottenCall(entry, by: standing)
      }
      let accepted = entry.replies()
      var decision =
        known
        ?? ScopeStanding.Decision(number: entry.number, fragmentReplies: accepted)
      // The server knows only whether it was accepted.
      if decision.fragmentReplies.isEmpty, decision.sequence != nil {
        decision.fragmentReplies = accepted
      } else if known?.isBare == true {
        decision.fragmentReplies = entry.replies(.reasonForgotten)
        decision.outcome = entry.failure(.reasonForgotten)
      }
      return decision
    }
  }

  /// Returns the decision about a call whose decision the server has forgotten: it does not begin the call again. Nil for
  /// any other change set, which it may apply again. A call that keeps waiting could be sent under another identity, and
  /// would be begun.
  private func forgottenCall(
    _ entry: PendingEntry, by standing: ScopeStanding
  ) -> ScopeStanding.Decision? {
    guard entry.number <= standing.forgottenUpTo, entry.set.isCall else { return nil }
    return ScopeStanding.Decision(
      number: entry.number, fragmentReplies: entry.replies(.outcomeForgotten),
      outcome: entry.failure(.outcomeForgotten))
  }

  /// Notes whether the server has lost the history that the replica knows, or decisions about change sets that the replica
  /// may have sent before. A change set that was never sent was not decided.
  private func noteHistory(of standing: ScopeStanding) {
    let isForgotten =
      standing.isForgotten && pending[pending.sentCount...].contains { !$0.isUnknownToServer }
    guard progress.takeLoss(at: standing.position, isForgotten: isForgotten) else { return }
    if delegate?.historyLoss == .discard { discardPending() }
    delegate?.report(.historyLost(scope))
  }

  /// Rejects the change sets that are not decided, but for those that were sent in this session: the server decides them.
  private func discardPending() {
    let error = WireError(
      message: "The server has lost the history that the change belongs to", type: "history-lost")
    for number in pending.filter({ !$0.isDecided && $0.messageIndex == nil }).map(\.number) {
      guard let at = pending.place(of: number) else { continue }
      conclude(
        at, pending[at].replies(error), effective: nil, pending[at].failure(error))
    }
  }
}
