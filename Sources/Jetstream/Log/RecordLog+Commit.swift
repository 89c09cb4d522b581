import Synchronization

/// Writing and syncing of appended lines.
///
/// Lines are written by ``commit()`` on the queue, and by ``writeNow()`` wherever a record must
/// survive the process as soon as it is appended. Both write under the lock of the writer, which is
/// held only for as long as writing takes. Syncs and new segments are made on the queue only, one
/// after the other and without the lock, so that appending never waits for a sync. The exception is
/// the write after a failed sync: the queue holds the lock while it writes all unsynced lines
/// again and syncs them. ``writeNow()`` does nothing meanwhile, since its caller may be the actor of an
/// app, which must not wait for a disk in trouble; it writes again when they are synced.
extension RecordLog {
  /// Writes the appended lines to the file, so that they survive the end of the process. Does not
  /// sync.
  ///
  /// Cost: a look at the lock file and one write call. Does nothing if more than one mebibyte waits,
  /// or after a failure; the queue then writes the lines. Errors are ignored here, because the queue
  /// tries again and reports them.
  package func writeNow() {
    if isWritingAgain.load(ordering: .relaxed) { return }
    // Also needed if nothing is pending: the writer may have taken lines over without writing them
    // yet.
    writer.withLock { writer in
      let waiting = state.withLock { $0.pending.count } + writer.waitingBytes
      guard writer.canWrite, waiting <= Self.mostAtOnce else { return }
      take(into: &writer)
      try? writer.write()
      noteWaiting(writer)
    }
  }

  /// Writes all appended lines to the file, however many, for a reader to find them. Does not sync.
  ///
  /// - Throws: ``LogError/backlog(bytes:)`` if only the queue may write, again after a failure: it tries so then. And
  ///   ``LogError/file(_:)``. The lines stay.
  package func writeAll() throws(LogError) {
    let blocked = try reading { () throws(LogFileError) in
      try writer.withLock { writer throws(LogFileError) in
        take(into: &writer)
        if writer.isUncertain || writer.isAway { return writer.waitingBytes }
        try writer.write()
        noteWaiting(writer)
        return writer.waitingBytes
      }
    }
    guard blocked > 0 else { return }
    if state.withLock({ schedule(&$0) }) { queue.run { self.commit() } }
    throw .backlog(bytes: blocked)
  }

  /// The maximum number of bytes that ``writeNow()`` writes.
  private static let mostAtOnce = 1 << 20

  private func noteWaiting(_ writer: LogWriter) {
    let waiting = writer.waitingBytes
    state.withLock { $0.unwrittenBytes = waiting }
  }

  /// Passes the pending lines to the writer.
  func take(into writer: inout LogWriter) {
    state.withLock { state in
      writer.take(&state.pending, last: state.next - 1)
      state.unwrittenBytes = writer.waitingBytes
    }
  }

  /// Makes one attempt on the queue: writes all waiting lines, syncs them if a sync is due, and
  /// calls the waiters.
  func commit() {
    let (phase, isSyncDue, rollMark) = state.withLock { state in
      defer { (state.isScheduled, state.wantsSync, state.rollMark) = (false, false, nil) }
      let isSyncDue = state.wantsSync || configuration.durability == .everyChangeSet
      return (state.phase, isSyncDue, state.rollMark)
    }
    if phase >= .stopped { return }
    var failure: LogError?
    do throws(LogError) {
      try attempt(isSyncDue: isSyncDue, rollMark: rollMark)
    } catch {
      failure = error
    }
    var outcome = writer.withLock { writer in
      noteWaiting(writer)
      return Attempt(
        failure: failure, written: writer.written, synced: writer.synced,
        isSynced: writer.isSynced, isAtRest: writer.isAtRest)
    }
    if configuration.durability == .none, outcome.written > outcome.synced {
      do throws(LogError) {
        try noteUnsyncedEnd()
      } catch {
        // Nothing counts as durable so far that is not synced, or the mark would say so already.
        outcome.written = outcome.synced
        outcome.failure = outcome.failure ?? error
      }
    }
    settle(outcome)
  }

  /// Writes all waiting lines, and syncs them if that is due. `rollMark` is where the segment must end.
  func attempt(isSyncDue: Bool, rollMark: LogWriter.Mark?) throws(LogError) {
    let (isUncertain, isAway) = writer.withLock { ($0.isUncertain, $0.isAway) }
    // Do not write to a file that the next process will not find, or make a segment outside the
    // log.
    if isUncertain || isAway { try checkPlace() }
    // Lines whose state is uncertain are written again before anything else.
    if isUncertain { try writeAgain() } else if rollMark != nil { try write() }
    if rollMark != nil || writer.withLock({ $0.isFull }) { try roll(at: rollMark) }
    try write()
    if isSyncDue || writer.withLock({ $0.needsSync }) { try sync() }
  }

  /// Writes the lines whose state is uncertain again.
  private func writeAgain() throws(LogError) {
    isWritingAgain.store(true, ordering: .relaxed)
    defer { isWritingAgain.store(false, ordering: .relaxed) }
    try write()
  }

  private func write() throws(LogError) {
    let isAway = try reading { () throws(LogFileError) in
      try writer.withLock { writer throws(LogFileError) in
        take(into: &writer)
        try writer.write()
        return writer.isAway
      }
    }
    if isAway { throw .moved(path: directory.name) }
  }

  private func sync(upTo mark: LogWriter.Mark? = nil) throws(LogError) {
    guard let sync = writer.withLock({ $0.beginSync(upTo: mark) }) else { return }
    do throws(LogFileError) {
      try sync.perform()
    } catch {
      writer.withLock { $0.fail() }
      throw .file(error)
    }
    // A file that was removed, or whose directory was removed, can still be synced. Its records are
    // not durable, since the next process will not find them. They are not written again, as after
    // a failed sync, because there is no known place to write them to. If the file comes back, it
    // has all of them.
    do throws(LogError) {
      guard try reading({ () throws(LogFileError) in try sync.isInPlace() }) else {
        throw .moved(path: directory.name)
      }
    } catch {
      writer.withLock { $0.leave() }
      throw error
    }
    writer.withLock { $0.endSync(sync) }
  }

  /// Checks that the segment and the lock file are in place, where the next process will look for
  /// them.
  ///
  /// - Throws: ``LogError/moved(path:)`` if one is not, and ``LogError/file(_:)`` if the check fails.
  func checkPlace() throws(LogError) {
    let isInPlace = try reading { () throws(LogFileError) in
      try writer.withLock { writer throws(LogFileError) in try writer.checkPlace() }
    }
    guard isInPlace else { throw .moved(path: directory.name) }
  }

  /// Begins a new segment behind `mark`, or behind all written lines. Does nothing while the
  /// current segment has no record on stable storage.
  private func roll(at mark: LogWriter.Mark?) throws(LogError) {
    try sync(upTo: mark)
    try checkPlace()
    guard let header = writer.withLock({ $0.beginRoll() }) else { return }
    let old: (any LogFile)?
    let end: Int
    do throws(LogFileError) {
      let next = try NewSegment(header, in: directory)
      (old, end) = try writer.withLock { writer throws(LogFileError) in
        try writer.follow(with: next)
      }
    } catch {
      // The old segment continues, unless it is unknown which of the two is valid.
      if !writer.withLock({ $0.isUncertain }) { try write() }
      throw .file(error)
    }
    do throws(LogFileError) {
      try again { () throws(LogFileError) in try directory.sync() }
    } catch {
      writer.withLock { $0.fail() }
      throw .file(error)
    }
    // Lines written behind the end meanwhile are in the next segment as well. Truncating only saves
    // space.
    if let old, let size = try? old.size(), size > end { try? old.truncate(to: end) }
  }

  /// The outcome of an attempt.
  struct Attempt {
    var failure: LogError?
    var written: Int
    let synced: Int
    let isSynced: Bool
    let isAtRest: Bool
  }

  private func settle(_ attempt: Attempt) {
    var over: [Waiter] = []
    let (news, durable, isMarkDue, isTimerDue) = state.withLock { state in
      let before = self.durable(state)
      let wasSynced = state.synced
      state.written = attempt.written
      state.synced = attempt.synced
      state.failure = attempt.failure
      let durable = self.durable(state)
      let (synced, hasFailed) = (attempt.synced, attempt.failure != nil)
      if !state.waiters.isEmpty {
        let all = state.waiters
        state.waiters = []
        for waiter in all {
          // A segment that was asked to end during this attempt ends with the next one.
          let isRollDue = waiter.needsRoll && state.rollMark != nil
          let isDurable = waiter.sequence <= (waiter.needsSync ? synced : durable)
          if !isRollDue, isDurable || hasFailed {
            over.append(waiter)
          } else {
            state.waiters.append(waiter)
          }
        }
      }
      var isTimerDue = false
      if case .interval = configuration.durability, !attempt.isSynced, !state.isTimerSet {
        state.isTimerSet = true
        isTimerDue = true
      }
      let news = durable > before
      return (news, durable, news || synced > wasSynced, isTimerDue)
    }
    if isMarkDue {
      changeMark { mark in
        mark.durable = durable
        mark.synced = attempt.synced
      }
    }
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
    if attempt.failure == nil, !attempt.isAtRest { planRest(isSynced: attempt.isSynced) }
  }

  private func intervalEnded() {
    state.withLock { state in
      state.isTimerSet = false
      state.wantsSync = true
    }
    commit()
  }

  // MARK: Waiting

  /// Calls `done` when the record is durable, or when an attempt to make it so has failed. After a
  /// failure, calling this starts a new attempt.
  func whenDurable(
    _ sequence: Int, needsSync: Bool = false, andRoll: Bool = false,
    _ done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    let (outcome, isFirst): (Result<Void, LogError>?, Bool) = state.withLock { state in
      if andRoll, state.phase > .open { return (.failure(.closed), false) }
      let reached = needsSync ? state.synced : durable(state)
      let isRollDue = needsSync && state.rollMark != nil
      if sequence <= reached, !andRoll, !isRollDue, state.failure == nil {
        return (.success(()), false)
      }
      state.waiters.append(
        Waiter(sequence: sequence, needsSync: needsSync, needsRoll: andRoll, done: done))
      if needsSync { state.wantsSync = true }
      if andRoll {
        state.rollMark = LogWriter.Mark(bytes: state.appendedBytes, last: state.next - 1)
      }
      let isDue = needsSync || state.failure != nil
      return (nil, isDue && schedule(&state))
    }
    if let outcome { return done(outcome) }
    if isFirst { queue.run { self.commit() } }
  }

  package func whenSynced(_ done: @escaping @Sendable (Result<Void, LogError>) -> Void) {
    whenDurable(lastSequence, needsSync: true, done)
  }

  /// Writes and syncs all appended records, whatever ``LogConfiguration/durability`` says. After a
  /// failure, this tries again.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/moved(path:)``. Nothing is lost; the records wait
  ///   for the next attempt.
  package func sync() async throws(LogError) {
    try await withCheckedContinuation { continuation in
      whenSynced { continuation.resume(returning: $0) }
    }.get()
  }
}
