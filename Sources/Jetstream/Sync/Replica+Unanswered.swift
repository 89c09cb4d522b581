/// Change sets that a server of version 1 has dropped. It drops a message that it cannot read without a reply.
///
/// It handles the sets of one scope one after the other, in the order of their messages' indexes, drops a message
/// whose index is not above all those before it, and sends its replies in the same order. The client repeats what was
/// lost with a connection in that order, before it sends anything else on the next one. So once a later message of the
/// same session is answered, no earlier one can still be applied or answered. What was sent in another session is
/// not concerned: ``sessionEnded()`` makes it unsent.
extension Replica {
  /// Rejects the sets in front of the one that a message has carried, which the server answers now.
  func concludeUnanswered(before messageIndex: Int) {
    guard version == 1, answersAreOrdered,
      let count = pending.place(sentIn: messageIndex, among: sentCount)
    else { return }
    rejectUnanswered(count)
  }

  /// Rejects so many sets, the first ones.
  func rejectUnanswered(_ count: Int) {
    for _ in 0..<count {
      let entry = pending[0]
      let replies = splits[entry.number]?.replies(missing: Self.notAnswered)
      conclude(0, replies ?? entry.decision ?? unansweredReplies(to: entry), effective: nil)
    }
  }

  /// The same while incoming changes wait: the sets count as decided, and are taken back later.
  func noteUnanswered(before messageIndex: Int) {
    guard version == 1, answersAreOrdered,
      let count = pending.place(sentIn: messageIndex, among: sentCount)
    else { return }
    for at in (0..<count).reversed() {
      // What is in front of a decided set was decided with it.
      guard pending[at].decision == nil else { return }
      noteDecision(at, unansweredReplies(to: pending[at]))
    }
  }

  private func unansweredReplies(to entry: Pending) -> [FragmentReply] {
    entry.set.fragments.map { _ in FragmentReply(error: Self.notAnswered) }
  }

  private static let notAnswered = WireError(
    message:
      "The server has not answered the change set, but one that was sent after it: it has dropped it",
    type: "not-answered")
}
