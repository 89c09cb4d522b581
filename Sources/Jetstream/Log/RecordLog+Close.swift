/// Closing, and the end of a log that is released without being closed.
extension RecordLog {
  /// Writes and syncs all appended records, closes the log and releases its lock. Later appends
  /// throw ``LogError/closed``.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/moved(path:)``; the log stays open then, and
  ///   closing it can be tried again. Releasing the last reference writes and syncs as well, once
  ///   and without an error.
  package func close() async throws(LogError) {
    try await withCheckedContinuation { continuation in
      close { continuation.resume(returning: $0) }
    }.get()
  }

  /// - Parameter hasFailed: true if an attempt has failed meanwhile although everything is durable. That may be one
  ///   which was under way before, so closing makes another one, but no third.
  func close(
    again hasFailed: Bool = false, then done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    let phase = state.withLock { state in
      defer { state.phase = max(state.phase, .closing) }
      return state.phase
    }
    // Everything is written and synced then.
    if phase >= .stopped { return snapshotQueue.run { done(.success(())) } }
    whenSynced { result in
      if case .failure = result {
        self.reopen()
        return done(result)
      }
      // Runs after all queued segments and snapshots: no file is touched once the lock is released.
      self.queue.run { self.stop(afterFailure: hasFailed, then: done) }
    }
  }

  /// Ends writing, unless an earlier call of ``close()`` has done so. If one has failed, records may have been appended
  /// since: then closing begins anew.
  private func stop(
    afterFailure hasFailed: Bool, then done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    // After a failure, the name of a segment may not be on stable storage, although all records are. And the commit
    // that ends a segment for a snapshot may be about to come into the queue.
    let (isReady, failure) = state.withLock {
      ($0.phase == .closing && $0.synced == $0.next - 1 && $0.rollMark == nil, $0.failure)
    }
    if isReady, hasFailed, let failure {
      reopen()
      return done(.failure(failure))
    }
    if !isReady || failure != nil { return close(again: failure != nil, then: done) }
    // The last sync, and with it the last check, may have been long ago.
    do throws(LogError) {
      try checkPlace()
    } catch {
      reopen()
      return done(.failure(error))
    }
    state.withLock { $0.phase = .stopped }
    snapshotQueue.run { self.end(then: done) }
  }

  /// Permits appends again, since closing has failed.
  private func reopen() {
    state.withLock { if $0.phase == .closing { $0.phase = .open } }
  }

  private func end(then done: @Sendable (Result<Void, LogError>) -> Void) {
    state.withLock { $0.phase = .closed }
    let last = lastSequence
    writer.withLock { $0.rest() }
    changeMark { mark in
      mark.isOpen = false
      mark.settle(at: last, in: boot)
    }
    lockFile.close()
    wakeFollowers()
    done(.success(()))
  }

  /// Makes one attempt to write and sync what is not on stable storage, on the thread that releases the last reference.
  ///
  /// Work in the queue holds the log, except for what waits: the sync at the end of an interval, the one before the log
  /// rests, and the next attempt after a failure. These do not come any more.
  func syncBeforeRelease() {
    let isDue = writer.withLock { writer in
      take(into: &writer)
      return !writer.isSynced
    }
    // The lock of a simulated process that was killed is the next one's, and so are its files.
    guard state.withLock({ $0.phase < .stopped }), (try? lockFile.size()) != nil else { return }
    // Otherwise the log would have forgotten the boot when it rests.
    guard isDue else { return noteSyncedEnd() }
    do throws(LogError) { try attempt(isSyncDue: true, rollMark: nil) } catch { return }
    let synced = writer.withLock { $0.synced }
    changeMark { $0.settle(at: synced, in: boot) }
  }
}
