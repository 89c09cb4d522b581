/// The replica's place in the stream of change sets that a server of version 2 sends to all its clients alike.
extension Replica {
  /// Returns the place to acknowledge; nil if the server knows it.
  func takeSeen() -> Ping.Place? {
    guard let scopeIndex = session.scopeIndex, unacknowledgedCount > 0 else { return nil }
    session.acknowledged = progress.sequence
    return Ping.Place(scopeIndex: scopeIndex, sequence: progress.sequence)
  }

  /// The number of change sets that are applied and not acknowledged.
  var unacknowledgedCount: Int {
    guard !dialect.isOfValues, session.hasState, !session.needsState, !session.isTakingState else {
      return 0
    }
    return max(0, progress.sequence - session.acknowledged)
  }

  /// Acknowledges the replica's place once more with the next ping.
  func acknowledgeAgain() { session.acknowledged = 0 }

  /// Takes from the server that it has sent every change set up to a sequence, behind everything else. If some of them have
  /// not arrived, asks for them.
  func noteTold(upTo sequence: Int) {
    guard session.isTaking, session.hasState, !session.isTakingState else { return }
    // The held messages have to be applied first, to see if something is missing.
    guard session.held.isEmpty else { return session.held.noteTold(upTo: sequence) }
    if sequence > progress.sequence { askForMissed() }
  }

  /// Notes the sequence that the server has when the client resumes the session. The replica is not up to date before the
  /// stream has brought it there, which takes several frames if much is missing, or if it is not durable yet.
  func noteLatest(_ sequence: Int) {
    session.latest = max(session.latest, sequence)
    if session.isTaking { progress.extendTarget(to: sequence) }
  }

  /// Ignores remote changes from here on, and asks the server for all behind the replica's place.
  func askForMissed() {
    (session.isTaking, session.hasMissed) = (false, true)
    schedule.askAgain()
  }
}
