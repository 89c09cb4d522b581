/// Holding back the server's messages.
extension Scope {
  /// True while the server's messages for this scope are held back.
  package var isIncomingPaused: Bool { !incoming.isOpen }

  /// Holds back the server's messages for this scope, until ``resumeIncoming()`` has been called as many times as
  /// this.
  ///
  /// Local changes continue and are sent. They stay pending, because the server's decisions are applied in order
  /// with everything else, although they are known before: they count in ``SyncState/pendingCount``. The messages are kept in
  /// memory, and only a limited number of change sets is sent meanwhile, so this is for moments, such as an
  /// animation or a drag. If the session is lost meanwhile, and the next one begins with the server's state or with a
  /// rejection, local changes are not sent before ``resumeIncoming()``.
  public func pauseIncoming() {
    guard incoming.pause() else { return }
    for listener in incoming.listeners { listener.onClose() }
  }

  /// Ends one ``pauseIncoming()``. After the last one, all messages held back are applied in order, as one change:
  /// at once; after the change set that is being delivered; after a running ``modify(_:author:_:)``; or, in an
  /// immediate observer of another replica's changes, with the next tick.
  ///
  /// - Precondition: this is not called more often than ``pauseIncoming()``.
  public func resumeIncoming() {
    guard incoming.resume(), !postponesIncoming() else { return }
    for listener in incoming.listeners { listener.onOpen() }
  }

  /// Returns true if the server's decisions cannot be applied now: while a change set is being delivered, in a call of
  /// ``modify(_:author:_:)``, and while changes of others are being applied. The listeners of ``incoming`` are told when
  /// they can.
  func postponesIncoming() -> Bool {
    if sealed.isDelivering {
      incoming.openLater()
    } else if modification != nil || schedule.isApplying {
      incoming.openLater()
      startCollecting()
    } else {
      return false
    }
    return true
  }
}
