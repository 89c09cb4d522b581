/// Change sets that a server of version 1 has dropped. It drops a message that it cannot read without a reply.
///
/// Such a server handles the change sets of one scope one after the other, in the order of their messages' indexes,
/// drops a message whose index is not above all those before it, and sends its replies in the same order. After a
/// lost connection the client first repeats the lost messages in that order on the next one, before it sends
/// anything else. So once a later message of the same session is answered, no earlier one can still be applied or
/// answered. Change sets that were sent in another session are not affected: ``sessionEnded()`` makes them unsent.
extension Replica {
  /// Rejects the unanswered change sets in front of the one whose message the server has answered.
  func concludeUnanswered(before messageIndex: Int) {
    guard dialect.dropsUnreadable, let count = pending.place(sentIn: messageIndex) else { return }
    rejectUnanswered(count)
  }

  /// Rejects the first `count` pending change sets.
  func rejectUnanswered(_ count: Int) {
    for _ in 0..<count {
      let entry = pending[0]
      let replies = pending.splits[entry.number]?.replies(missing: Self.notAnswered)
      conclude(
        0, replies ?? entry.decision?.fragmentReplies ?? entry.replies(Self.notAnswered),
        effective: nil,
        entry.isDecided ? entry.decision?.outcome : entry.failure(Self.notAnswered))
    }
  }

  /// Counts unanswered change sets as decided, while incoming changes are held; they are rejected later.
  func noteUnanswered(before messageIndex: Int) {
    guard dialect.dropsUnreadable, let count = pending.place(sentIn: messageIndex) else { return }
    for at in (0..<count).reversed() {
      // Everything in front of a decided change set was decided with it.
      let entry = pending[at]
      if entry.isDecided { return }
      pending.decide(
        at,
        ScopeStanding.Decision(
          number: entry.number, fragmentReplies: entry.replies(Self.notAnswered),
          outcome: entry.failure(Self.notAnswered)))
    }
  }

  private static let notAnswered = WireError(
    message:
      "The server has not answered the change set, but one that was sent after it: it has dropped it",
    type: "not-answered")
}
