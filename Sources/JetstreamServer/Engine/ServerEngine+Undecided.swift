import Foundation
import Jetstream

/// Change sets that have begun and are not decided, and those that wait behind them; see ``UndecidedSets``.
extension ServerEngine {
  /// Leaves a change set until the one in front of it that has begun is decided, or until the session has another turn.
  /// Returns false if it may be handled now.
  func waits(_ sync: ScopeSync, from session: ServerSession, on subscription: Subscription) -> Bool
  {
    let host = subscription.host
    let isNext = !hasHadItsTurn(session)
    guard !host.undecided.isEmpty || !subscription.queued.isEmpty || !isNext else { return false }
    guard let undecided = host.undecided[subscription.sender] else {
      // The change sets in front of it are being handled right now.
      if subscription.queued.isEmpty, isNext { return false }
      queue(sync, from: session, on: subscription)
      takeQueued(of: subscription)
      return true
    }
    if case .client(let client) = undecided.sender, let number = sync.number,
      let begun = undecided.sync.number, number <= begun
    {
      if number == begun, undecided.checksum == sync.checkedText().checksum {
        undecided.sent(again: sync, on: subscription)
      } else if number <= host.order.clients[client].decided {
        // It was decided before.
        return false
      } else {
        // In its place it would be one more that is begun, as often as the client likes.
        subscription.noteReuse(of: number)
        rejectReuse(of: number, by: sync, on: subscription)
      }
      return true
    }
    queue(sync, from: session, on: subscription)
    undecided.holdsBack(subscription)
    return true
  }

  private func queue(
    _ sync: ScopeSync, from session: ServerSession, on subscription: Subscription
  ) {
    subscription.host.content.seal()
    subscription.queued.append(sync, session.submitter(of: sync, to: subscription))
    let (queues, limit) = (session.subscriptions.all.lazy.map(\.queued), configuration.keptLimit)
    if queues.reduce(0, { $0 + $1.count }) > limit.messages
      || queues.reduce(0, { $0 + $1.bytes }) > limit.bytes
    {
      endWithWarning(session, "too many changes wait to be decided")
    }
  }

  /// Answers a decided change set, and goes on with what has waited behind it.
  func answer(_ set: UndecidedSet, _ result: ScopeOrder.Result) {
    if let subscription = set.subscription, subscription.isLive {
      reply(to: set.sync, of: subscription.session, on: subscription, result)
    }
    takeQueued(behind: set)
  }

  /// Returns true if the change sets of a session have had as much effort in this turn as one may: what it has sent behind
  /// them waits for the next one, and others have theirs in between. A frame of a few kilobytes could take out and put back
  /// all models of a scope hundreds of times.
  func hasHadItsTurn(_ session: ServerSession) -> Bool {
    session.traffic.effort(in: work.judgements.turn) >= configuration.sliceSize
  }

  /// Notes the effort of a change set of a session.
  func note(effort: Int, of session: ServerSession) {
    if effort > 0 { session.traffic.note(effort: effort, in: work.judgements.turn) }
  }

  /// Goes on with what waits for this turn, until it has had as much effort as one may.
  func takeReleased() {
    var waiting = work.judgements.takeReleased()[...]
    while let subscription = waiting.popFirst() {
      takeQueued(of: subscription)
      // Its session may have ended meanwhile.
      if subscription.isLive, hasHadItsTurn(subscription.session) { break }
    }
    work.judgements.putBack(waiting)
  }

  /// Goes on with what has waited behind a decided change set.
  func takeQueued(behind set: UndecidedSet) {
    for subscription in set.heldBack { takeQueued(of: subscription) }
  }

  /// The number of waiting change sets that are handled before others have their turn.
  private static let mostOfTurn = 1024

  /// Goes on with what waits in a subscription.
  func takeQueued(of subscription: Subscription) {
    // The loop that is running goes on with it.
    guard !subscription.takesQueued else { return }
    subscription.takesQueued = true
    defer { subscription.takesQueued = false }
    var count = 0
    while subscription.isLive, !subscription.queued.isEmpty,
      subscription.host.undecided[subscription.sender] == nil
    {
      if count == Self.mostOfTurn || hasHadItsTurn(subscription.session) {
        return release(subscription)
      }
      count += 1
      let waiting = subscription.queued.removeFirst()
      handle(waiting.sync, from: subscription.session, waiting, on: subscription)
    }
    guard subscription.isLive, !subscription.queued.isEmpty else { return }
    subscription.host.undecided[subscription.sender]?.holdsBack(subscription)
  }

  /// Takes the change set of a session that has begun out, undecided, with what has waited behind it: its client's rights
  /// are taken away, or it takes another identity.
  ///
  /// - Parameter comesAgain: false if the client takes another identity, under which it sends all that again.
  /// - Returns: the number of the first change set that is not decided.
  @discardableResult
  func dropUndecided(of subscription: Subscription, comesAgain: Bool = true) -> Int? {
    var first = subscription.queued.first?.number
    subscription.queued = SetQueue()
    let set = subscription.host.undecided[subscription.sender]
    if let set, !set.isAwaited(besides: subscription) {
      first = set.sync.number
      drop(set, in: subscription.host, comesAgain: comesAgain)
    }
    return first
  }

  /// Takes out everything that a session has sent and that is not decided, also in scopes that it has left.
  func dropUndecided(of session: ServerSession) {
    for subscription in session.subscriptions.all { dropUndecided(of: subscription) }
    dropLeft { $0.token == session.info.token }
  }

  /// Takes out, undecided, what sessions have sent to scopes that they have left since, or before they have ended.
  func dropLeft(by isOrigin: (SessionInfo) -> Bool) {
    for host in work.undecidedHosts.all {
      for set in host.undecided.left(by: isOrigin) { drop(set, in: host) }
    }
  }

  /// Takes out what the sessions of a principal have sent before they have ended, undecided.
  package func dropLeft(by principal: String) {
    dropLeft { $0.principal?.id == principal }
    if !isHandling { flush() }
  }

  /// Takes a change set out, undecided. What other sessions have waiting behind it goes on in the next turn: the app may be
  /// in the middle of a change.
  func drop(_ set: UndecidedSet, in host: ScopeHost, comesAgain: Bool = true) {
    host.undecided[set.sender] = nil
    host.undecided.noteDropped(set)
    set.drop(comesAgain: comesAgain)
    for subscription in set.heldBack where subscription.isLive && !subscription.queued.isEmpty {
      release(subscription)
    }
  }
}

extension ScopeSync {
  /// Returns the text of the fragments, and the checksum that tells the change set from another one with its number:
  /// that of its fragments, and of the arguments of a procedure behind them; 0 if the change set cannot be read.
  func checkedText() -> (text: FragmentsText, checksum: UInt32) {
    if self.isUnreadable { return (FragmentsText(checksumming: []), 0) }
    var text = self.text ?? FragmentsText(checksumming: self.fragments)
    if text.checksum == nil { text = FragmentsText(checksumming: self.fragments) }
    return (text, text.checksum(with: self.arguments))
  }

  /// Makes the text of the fragments that ``checkedText()`` returns, for a change set that has a number.
  mutating func writeText() {
    if self.number != nil { self.text = FragmentsText(checksumming: self.fragments) }
  }
}
