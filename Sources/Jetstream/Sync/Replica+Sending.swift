/// What goes to the server, and what the scope showed when it was made.
extension Replica {
  /// What the scope showed when the next set to be sent was made; nil if none can be sent.
  var nextSeen: Int? {
    guard hasState, scopeIndex != nil else { return nil }
    return pending.first { $0.messageIndex == nil }?.seen
  }

  /// What the scope showed when the oldest undecided set was made; nil if there is none.
  var oldestSeen: Int? { pending.first?.seen }

  /// What the scope showed when the set was made that message `index` carried.
  func seen(byMessage index: Int) -> Int? {
    pending.first { $0.messageIndex == index }?.seen
  }

  /// The next set that waits to be sent, marked as sent by `send`, which gives the message's index.
  func sendNext(_ send: (ChangeSet) -> Int) {
    guard let at = pending.firstIndex(where: { $0.messageIndex == nil }) else { return }
    pending[at].messageIndex = send(pending[at].set)
  }

  /// The session is gone: what it carried has to be sent again in the next one.
  func sessionEnded() {
    scopeIndex = nil
    hasState = false
    seen = 0
    for at in pending.indices {
      pending[at].messageIndex = nil
      pending[at].seen = 0
    }
  }
}
