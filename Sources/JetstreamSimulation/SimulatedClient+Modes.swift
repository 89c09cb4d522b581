import Jetstream

/// The sync modes of the client, and checks that it syncs only when they allow it.
extension SimulatedClient {
  func change(to mode: SimulatedMode, now: Duration) {
    self.mode = mode
    engine.setMode(mode.mode, of: scope, now: now)
  }

  func permit(_ isPermitted: Bool, now: Duration) {
    self.isPermitted = isPermitted
    engine.reconsider(now: now)
  }

  /// Pauses or resumes incoming changes.
  func pauseIncoming(_ isPaused: Bool) {
    if isPaused == scope.isIncomingPaused { return }
    if isPaused {
      pausedAt = position
      scope.pauseIncoming()
    } else {
      takeIn { scope.resumeIncoming() }
    }
  }

  /// Syncs. If that succeeds, all that was changed before has to be decided, and all that the server had has to
  /// be applied.
  ///
  /// - Parameter position: returns the server's epoch and sequence at the time of this call; nil if a crash may
  ///   have taken some of that back.
  func sync(now: Duration, position: @escaping () -> ScopePosition?) {
    scope.flush()
    let open = sets
    openSyncs += 1
    engine.sync(scope, now: now) { [weak self] result in
      guard let self else { return }
      openSyncs -= 1
      guard case .success = result else { return }
      let undecided = open.filter { set in self.sets.contains { $0 === set } }
      if !undecided.isEmpty { modeProblems.append("it has synced, but \(undecided) are pending") }
      guard let should = position(), let reached = engine.state(of: scope)?.position else { return }
      if reached.epoch == should.epoch, reached.sequence < should.sequence {
        modeProblems.append("it has synced and is at \(reached), the server was at \(should)")
      }
    }
  }

  /// Checks that the client may send, when a change set goes out for the first time in a session.
  func noteSubmission() {
    if openSyncs > 0 { return }
    if mode == .paused || mode == .manual { modeProblems.append("it sends while it is \(mode)") }
    if !isPermitted { modeProblems.append("it sends without permission") }
  }

  func takeModeProblems() -> [String] {
    defer { modeProblems = [] }
    if scope.isIncomingPaused, position != pausedAt {
      modeProblems.append("it takes in what its app has paused")
    }
    return modeProblems
  }
}
