/// Writing what was appended. All of this runs on the queue.
extension RecordLog {
  /// One attempt: writes all that waits, syncs it if that is due, and tells who waits.
  func commit() {
    let result = writer.withLock { writer in
      let (isSyncDue, isRollDue) = state.withLock { state in
        state.isScheduled = false
        if !state.pending.isEmpty { writer.take(&state.pending, last: state.next - 1) }
        state.heldBytes = writer.heldBytes
        defer { state.wantsSync = false }
        return (
          state.wantsSync || configuration.durability == .everyChangeSet, state.wantsRoll
        )
      }
      var failure: LogError?
      do throws(LogFileError) {
        try writer.write()
        if isSyncDue { try writer.sync() }
        if isRollDue { try writer.roll() }
      } catch {
        failure = .file(error)
      }
      return Attempt(
        failure: failure, written: writer.written, synced: writer.synced,
        heldBytes: writer.heldBytes, isSynced: writer.isSynced)
    }
    settle(result)
  }

  /// What came of an attempt.
  struct Attempt {
    let failure: LogError?
    let written: Int
    let synced: Int
    let heldBytes: Int
    let isSynced: Bool
  }

  private func settle(_ attempt: Attempt) {
    var over: [Waiter] = []
    let (news, durable, isTimerDue) = state.withLock { state in
      let before = self.durable(state)
      state.written = attempt.written
      state.synced = attempt.synced
      state.heldBytes = attempt.heldBytes
      state.failure = attempt.failure
      if attempt.failure == nil { state.wantsRoll = false }
      let durable = self.durable(state)
      let (synced, hasFailed) = (attempt.synced, attempt.failure != nil)
      if !state.waiters.isEmpty {
        let all = state.waiters
        state.waiters = []
        for waiter in all {
          let isOver = waiter.sequence <= (waiter.needsSync ? synced : durable)
          if isOver || hasFailed { over.append(waiter) } else { state.waiters.append(waiter) }
        }
      }
      var isTimerDue = false
      if case .interval = configuration.durability, !attempt.isSynced, !state.isTimerSet {
        state.isTimerSet = true
        isTimerDue = true
      }
      return (durable > before, durable, isTimerDue)
    }
    if news { mark(isOpen: true, durable) }
    if isTimerDue, case .interval(let interval) = configuration.durability {
      queue.run(after: interval) { [weak self] in self?.intervalEnded() }
    }
    for waiter in over {
      let reached = waiter.needsSync ? attempt.synced : durable
      if let failure = attempt.failure, waiter.sequence > reached {
        waiter.done(.failure(failure))
      } else {
        waiter.done(.success(()))
      }
    }
    if news { wakeFollowers() }
  }

  private func intervalEnded() {
    state.withLock { state in
      state.isTimerSet = false
      state.wantsSync = true
    }
    commit()
  }

  // MARK: Waiting

  /// Calls `done` when the record is durable, or when an attempt to make it so has failed. While the log
  /// is failing, asking is a new attempt.
  func whenDurable(
    _ sequence: Int, needsSync: Bool = false, andRoll: Bool = false,
    _ done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    let (isOver, isFirst) = state.withLock { state in
      let reached = needsSync ? state.synced : durable(state)
      if sequence <= reached, !andRoll, state.failure == nil { return (true, false) }
      state.waiters.append(Waiter(sequence: sequence, needsSync: needsSync, done: done))
      if needsSync { state.wantsSync = true }
      if andRoll { state.wantsRoll = true }
      let isDue = needsSync || state.failure != nil
      return (false, isDue && schedule(&state))
    }
    if isOver { return done(.success(())) }
    if isFirst { queue.run { self.commit() } }
  }

  func whenSynced(_ done: @escaping @Sendable (Result<Void, LogError>) -> Void) {
    whenDurable(lastSequence, needsSync: true, done)
  }

  /// Brings all that was appended to stable storage, whatever the configuration says. After a failure
  /// this is how to try again.
  ///
  /// - Throws: ``LogError/file(_:)``. Nothing is lost then; everything waits for the next attempt.
  public func sync() async throws(LogError) {
    try await withCheckedContinuation { continuation in
      whenSynced { continuation.resume(returning: $0) }
    }.get()
  }
}
