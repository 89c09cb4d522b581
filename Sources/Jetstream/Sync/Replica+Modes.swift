/// When a replica sends and takes in.
extension Replica {
  /// Whether what is pending may go out.
  var pushes: Bool { mode == .realtime || mode == .pushOnly || round != nil }

  /// Whether some sets were not sent in this session.
  var hasUnsent: Bool { sentCount < pending.count }

  /// Whether what comes waits here, because the server cannot be told to keep it.
  var isHolding: Bool { version == 1 && hasState && mode != .realtime && round == nil }

  /// What the server is asked for at the beginning of a session.
  var firstTell: ScopeFetch.Tell {
    mode == .realtime ? .everything : hasBase && position != nil ? .nothing : .missed
  }

  /// What the server has to be asked for now; nil if it does what the mode wants.
  ///
  /// The exchange asks behind the sets that it has sent, so that they are in what it is told.
  var nextTell: ScopeFetch.Tell? {
    let isLive = mode == .realtime && !dropsHeld
    if needsState { return isLive ? .everything : .missed }
    guard hasState else { return nil }
    if round?.isAsked == false, hasSentRound {
      return isLive ? .everything : .missed
    }
    if isLive { return asked == .everything && !hasMissed ? nil : .everything }
    return asked == .everything ? .nothing : nil
  }

  /// Whether all sets are sent that the exchange is about.
  var hasSentRound: Bool {
    guard let round else { return false }
    return sentCount == pending.count || pending[sentCount].number > round.upTo
  }

  /// Whether all is sent and taken in that the exchange is about.
  var hasFinishedRound: Bool {
    guard let round, hasState, !needsState, stateStanding == nil, held.isEmpty else { return false }
    if let first = pending.first, first.number <= round.upTo { return false }
    return version == 1 || round.isAsked && position?.sequence ?? 0 >= target
  }

  /// False in real time until the server begins to tell what the replica has missed. Version 1 always tells.
  var isTold: Bool { version == 1 || mode != .realtime || isTaking }

  /// Something else is wanted from now on.
  func change(to new: SyncMode) {
    mode = new
    guard new != .realtime else { return }
    // What is on its way comes again when it is wanted.
    isTaking = false
    hasMissed = true
    round?.isAsked = false
  }
}
