/// Holding back what a server sends.
extension Scope {
  /// Whether what a server sends for this scope waits.
  package var isIncomingPaused: Bool { incomingPauses > 0 }

  /// Holds back what a server sends for this scope, until ``resumeIncoming()`` was called as often as
  /// this. Local changes go on and are sent; they stay pending, because the server's decisions are taken in
  /// with everything else, although they are known before: ``SyncState/decidedCount``.
  ///
  /// What waits is kept in memory, and change sets are sent up to a limit only, so this is for moments, such as
  /// an animation or a drag.
  public func pauseIncoming() {
    incomingPauses += 1
    if incomingPauses == 1 { onIncomingPaused?() }
  }

  /// Takes back one ``pauseIncoming()``. After the last, all that has come meanwhile is applied, in
  /// order, as one change: if a change set is being delivered, or within ``modify(_:author:_:)``, as soon as
  /// that is over, and in an observer that is told at once of what others did, with the next tick.
  public func resumeIncoming() {
    precondition(incomingPauses > 0, "resumeIncoming() was called more often than pauseIncoming().")
    incomingPauses -= 1
    guard incomingPauses == 0 else { return }
    if isDelivering {
      incomingResumes = true
    } else if modification != nil || applying > 0 {
      incomingResumes = true
      startCollecting()
    } else {
      onIncomingResumed?()
    }
  }

  /// The change set is delivered during which the last pause has ended.
  func resumeNow() {
    incomingResumes = false
    if incomingPauses == 0 { onIncomingResumed?() }
  }
}
