/// The rest of a log that is not written to.
///
/// An open log holds the descriptor of its lock file, and a second one, of the segment, only while it
/// is written to. A log is at rest when it has been opened, so that one that is only read takes no
/// more. The first line to be written opens the segment again, and the log rests once nothing was
/// appended for ``restDelay``.
///
/// At most one piece of work waits in the queue for that. It is planned after a commit, compares the
/// number of appended bytes with what it was then, and is planned anew if there are more. So a log
/// that is written all the time looks once a second and never closes the file, and one that is at
/// rest has no work waiting. The look is taken on the queue, where syncs and new segments are made;
/// only ``writeNow()`` can be at work at the same time, and the lock of the writer keeps the two
/// apart.
///
/// Lines that are not on stable storage keep the segment open. With ``LogDurability/interval(_:)``
/// the sync at the end of the interval is waited for. With ``LogDurability/none`` no sync would
/// follow, and the log would keep the descriptor for good, so it syncs before it rests: once each
/// time that writing pauses, which costs less than it gains.
extension RecordLog {
  /// The time without an append after which a log rests, at least; at most twice as long.
  static let restDelay: Duration = .seconds(1)

  /// Plans a look at whether the log can rest, unless one is planned already, or must wait for a sync
  /// that is due anyway.
  func planRest(isSynced: Bool) {
    guard isSynced || configuration.durability == .none else { return }
    let isFirst = state.withLock { state in
      guard state.bytesBeforeRest == nil else { return false }
      state.bytesBeforeRest = state.appendedBytes
      return true
    }
    if isFirst { queue.run(after: Self.restDelay) { [weak self] in self?.restIfIdle() } }
  }

  private func restIfIdle() {
    let (isIdle, canGoOn) = state.withLock { state in
      defer { state.bytesBeforeRest = nil }
      let isIdle = state.bytesBeforeRest == state.appendedBytes
      return (isIdle, state.phase < .stopped && state.failure == nil)
    }
    // After a failure, the attempt that succeeds plans the next look.
    guard canGoOn else { return }
    let (isSynced, isAtRest) = writer.withLock { writer in
      if isIdle { writer.rest() }
      return (writer.isSynced, writer.isAtRest)
    }
    if isAtRest {
      noteSyncedEnd()
      return state.withLock { if $0.pending.isEmpty { $0.pending = [] } }
    }
    guard isIdle, !isSynced, configuration.durability == .none else {
      return planRest(isSynced: isSynced)
    }
    state.withLock { $0.wantsSync = true }
    commit()
  }
}
