/// The timing of a replica: when it sends, and when it applies remote changes.
extension Replica {
  /// True if incoming messages are held here because the server cannot be told to keep them.
  var isHolding: Bool {
    dialect.isOfValues && session.hasState && !schedule.appliesRemote
  }

  /// The request with which the replica begins a session.
  var firstTell: ScopeFetch.Tell {
    schedule.mode == .realtime ? .everything : progress.canResume ? .nothing : .missed
  }

  /// The request that the server has to be sent now; nil if it already does what the mode needs.
  ///
  /// A running sync sends its request after its change sets, so that the answer includes them.
  var nextTell: ScopeFetch.Tell? {
    let isLive = schedule.mode == .realtime && !session.held.isDropping
    if session.needsState { return isLive ? .everything : .missed }
    guard session.hasState else { return nil }
    if schedule.hasToAsk, hasSentRound {
      return isLive ? .everything : .missed
    }
    if isLive { return session.asked == .everything && !session.hasMissed ? nil : .everything }
    return session.asked == .everything ? .nothing : nil
  }

  /// True if all change sets of the running sync are sent.
  var hasSentRound: Bool {
    guard let round = schedule.round else { return false }
    return pending.next.map { $0.number > round.upTo } ?? true
  }

  /// True if the running sync is complete: everything is sent and applied.
  var hasFinishedRound: Bool {
    guard let round = schedule.round, session.hasState, !session.needsState,
      session.stateStanding == nil,
      session.held.isEmpty
    else { return false }
    if let first = pending.first, first.number <= round.upTo { return false }
    return dialect.isOfValues || round.isAsked && progress.isAtTarget
  }

  /// False in real-time mode until the server begins to send what the replica has missed. Version 1 always sends it.
  var isTold: Bool { dialect.isOfValues || schedule.mode != .realtime || session.isTaking }

  /// Changes the sync mode.
  func change(to new: SyncMode, now: Duration) {
    schedule.change(to: new, now: now)
    guard new != .realtime else { return }
    // Changes that are on their way arrive again when they are asked for.
    session.isTaking = false
    session.hasMissed = true
  }

  /// True if the mode holds back the state that has arrived: it has changed, or the sync was cancelled, since the client
  /// asked for what it has missed. A server of version 1 is not asked; its states are held with everything else.
  var holdsBackState: Bool {
    session.stateStanding != nil && !session.needsNextState && !schedule.appliesRemote
  }

  /// Drops the state that the mode holds back. The client asks for it again when the mode allows that. The server's
  /// decisions that came with it come again, too, as long as the client has not said that it knows them.
  func dropState() {
    session.stateStanding = nil
    // A state that was to repair the scope has not done so.
    session.vainRepairs = min(session.vainRepairs, 2)
    askForMissed()
  }
}
