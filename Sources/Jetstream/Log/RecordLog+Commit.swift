/// Writing what was appended. All of this runs on the queue.
extension RecordLog {
  /// One attempt: writes all that waits, syncs it if that is due, and tells who waits.
  func commit() {
    let result = writer.withLock { writer in
      let work = state.withLock { state in
        var work = Work(last: state.next - 1)
        work.isSyncDue = state.wantsSync || configuration.durability == .everyChangeSet
        state.isScheduled = false
        state.wantsSync = false
        if let point = state.rollPoint {
          work.isRollDue = true
          work.rest = Array(state.pending[point.bytes...])
          state.pending.removeLast(work.rest.count)
          state.rollPoint = nil
          writer.take(&state.pending, last: point.last)
        } else {
          writer.take(&state.pending, last: work.last)
        }
        state.unwrittenBytes = writer.waitingBytes + work.rest.count
        return work
      }
      var failure: LogError?
      do throws(LogFileError) {
        if work.isRollDue {
          try writer.write()
          try writer.roll()
        }
        writer.take(work.rest, last: work.last)
        try writer.write()
        if work.isSyncDue { try writer.sync() }
      } catch {
        writer.take(work.rest, last: work.last)
        failure = .file(error)
      }
      return Attempt(
        failure: failure, written: writer.written, synced: writer.synced,
        unwrittenBytes: writer.waitingBytes, isSynced: writer.isSynced)
    }
    settle(result)
  }

  /// What one attempt has to do besides writing.
  private struct Work {
    /// The last record of all.
    let last: Int
    var isSyncDue = false
    /// Whether a segment has to end before the `rest`.
    var isRollDue = false
    var rest: [UInt8] = []
  }

  /// What came of an attempt.
  struct Attempt {
    let failure: LogError?
    let written: Int
    let synced: Int
    let unwrittenBytes: Int
    let isSynced: Bool
  }

  private func settle(_ attempt: Attempt) {
    var over: [Waiter] = []
    let (news, durable, isTimerDue) = state.withLock { state in
      let before = self.durable(state)
      state.written = attempt.written
      state.synced = attempt.synced
      state.unwrittenBytes = attempt.unwrittenBytes
      state.failure = attempt.failure
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
      if andRoll { state.rollPoint = (state.pending.count, state.next - 1) }
      let isDue = needsSync || state.failure != nil
      return (false, isDue && schedule(&state))
    }
    if isOver { return done(.success(())) }
    if isFirst { queue.run { self.commit() } }
  }

  package func whenSynced(_ done: @escaping @Sendable (Result<Void, LogError>) -> Void) {
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
