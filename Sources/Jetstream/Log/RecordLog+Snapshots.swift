import Foundation

/// Snapshots, and the removal of the records that they replace.
///
/// A snapshot is written beside appends. The caller has copied the state, which belongs to one sequence
/// number. The next commit on `queue` syncs all records appended so far and ends the segment behind
/// them; later ones go to the next segment. After that, `snapshotQueue` writes the snapshot under a
/// temporary name, syncs and renames it, and then removes older snapshots and complete segments. A
/// crash before the renaming leaves the log without the snapshot, but with all records that it covers,
/// and so does a failure, which removes the temporary file as well.
/// Closing passes through both queues, so nothing is written or removed once the lock is released.
extension RecordLog {
  /// Writes a snapshot: what all records up to `sequence` amount to. Then removes what
  /// ``LogConfiguration/history`` does not ask for.
  ///
  /// Appending goes on meanwhile. The snapshot counts once it is complete and on stable storage; until
  /// then, and if that fails, the log is as it was. A failure behind that is no failure of the snapshot:
  /// see ``WrittenSnapshot``.
  ///
  /// - Parameters:
  ///   - sequence: the last record that the state contains. There must be no snapshot of later ones.
  ///   - kinds: the kinds of records that the state stands for. Those of other kinds are kept, in the
  ///     snapshot itself; see ``LogSnapshot/kept``.
  ///   - history: the records that are kept unless the configuration says otherwise.
  ///   - state: makes the state, on a queue of the log.
  /// - Throws: ``LogError/notKept(sequence:kept:)`` if the record `sequence` has not been appended; any error of the
  ///   disk.
  @discardableResult
  package func snapshot(
    at sequence: Int, standingFor kinds: Set<LogKind>, keeping history: LogHistory = .all,
    state: @escaping @Sendable () -> [RecordContent]
  ) async throws(LogError) -> WrittenSnapshot<LogError> {
    try await withCheckedContinuation { continuation in
      snapshot(at: sequence, standingFor: kinds, keeping: history, state: state) {
        continuation.resume(returning: $0)
      }
    }.get()
  }

  /// Like the asynchronous method, without waiting: `done` is called on a queue of the log.
  package func snapshot(
    at sequence: Int, standingFor kinds: Set<LogKind>, keeping history: LogHistory = .all,
    state makeState: @escaping @Sendable () -> [RecordContent],
    then done: @escaping @Sendable (Result<WrittenSnapshot<LogError>, LogError>) -> Void
  ) {
    let last = lastSequence
    guard sequence <= last else {
      return done(.failure(.notKept(sequence: sequence, kept: last > 0 ? 1...last : nil)))
    }
    // The records that the snapshot includes must be durable before it, and must end a segment.
    whenDurable(sequence, needsSync: true, andRoll: true) { result in
      if case .failure(let error) = result { return done(.failure(error)) }
      self.snapshotQueue.run {
        done(
          Result { () throws(LogError) in
            try self.writeSnapshot(sequence, kinds, makeState())
            return WrittenSnapshot(removalError: self.removeReplaced(by: sequence, history))
          })
      }
    }
  }

  /// Removes records and snapshots that `history` does not keep, if a snapshot includes them.
  /// Removes only complete segments, so more records may stay than requested.
  package func compact(keeping history: LogHistory) async throws(LogError) {
    try await withCheckedContinuation { continuation in
      compact(keeping: history) { continuation.resume(returning: $0) }
    }.get()
  }

  func compact(
    keeping history: LogHistory, then done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    if state.withLock({ $0.phase > .open }) { return done(.failure(.closed)) }
    snapshotQueue.run {
      done(
        Result { () throws(LogError) in
          if self.state.withLock({ $0.phase == .closed }) { throw .closed }
          try self.removeHistory(history)
        })
    }
  }

  // MARK: On the queue of snapshots

  private func writeSnapshot(
    _ sequence: Int, _ kinds: Set<LogKind>, _ state: [RecordContent]
  ) throws(LogError) {
    try checkPlace()
    let kept = try recordsToKeep(upTo: sequence, except: kinds)
    let records = state.map { LogRecord(sequence: sequence, kind: $0.kind, payload: $0.payload) }
    var rest = records.count + kept.count
    let header = SnapshotHeader(log: log, sequence: sequence, stateCount: records.count)
    // One of the same state stays, whichever of the two it is after a power failure.
    let isNew = try !LogFiles(directory).snapshots.contains(sequence)
    try reading { () throws(LogFileError) in
      let file = try directory.open(LogNames.newSnapshot, for: .creating)
      defer { file.close() }
      do throws(LogFileError) {
        var lines = header.line(rest: rest)
        var offset = 0
        for record in [records, kept].joined() {
          rest -= 1
          LogLine.append(
            sequence: record.sequence, kind: record.kind, rest: rest, synced: sequence,
            payload: record.payload, to: &lines)
          guard lines.count >= 1 << 20 else { continue }
          try file.writeAll(lines, at: offset)
          offset += lines.count
          lines.removeAll(keepingCapacity: true)
        }
        try file.writeAll(lines, at: offset)
        try file.syncFully()
      } catch {
        // On a full disk, this is the room that the next records need.
        try? file.truncate(to: 0)
        removeUnnamed(file)
        throw error
      }
      try name(file, sequence, isNew: isNew)
    }
  }

  /// Notes a snapshot that counts if it is the first one, and removes what `history` does not keep. Returns the error if
  /// that fails.
  ///
  /// A snapshot that could not be noted stays. It cannot be taken back, since it is not known which mark is on stable
  /// storage: one that names a snapshot that is missing would make the log a damaged one.
  private func removeReplaced(by sequence: Int, _ history: LogHistory) -> LogError? {
    do throws(LogError) {
      if oldestSnapshot == nil { try noteOldestSnapshot(sequence) }
      try removeHistory(configuration.history ?? history)
      return nil
    } catch {
      return error
    }
  }

  /// Gives a complete snapshot its name, and makes that durable. If this fails, the snapshot is removed: a reader in
  /// this process would find it, and go on from a state that a power failure may take away.
  private func name(
    _ file: any LogFile, _ sequence: Int, isNew: Bool
  ) throws(LogFileError) {
    let name = LogNames.snapshot(sequence)
    do throws(LogFileError) {
      try again { () throws(LogFileError) in
        try directory.rename(LogNames.newSnapshot, to: name)
      }
      try again { () throws(LogFileError) in try directory.sync() }
    } catch {
      removeUnnamed(file)
      if isNew { try? directory.remove(name) }
      throw error
    }
  }

  /// Removes the file of a snapshot that has failed, unless it has its name or is in another directory by now.
  private func removeUnnamed(_ file: any LogFile) {
    let isUnnamed = try? directory.isInPlace(file.identity(), LogNames.newSnapshot)
    if isUnnamed == true { try? directory.remove(LogNames.newSnapshot) }
  }

  /// Returns the records that a snapshot must carry along: those in the snapshot before it, and
  /// those since then, except those of `kinds`.
  private func recordsToKeep(
    upTo sequence: Int, except kinds: Set<LogKind>
  ) throws(LogError) -> [LogRecord] {
    var kept: [LogRecord] = []
    let before = try LogReader(directory).snapshot(upTo: sequence)
    if let before { kept = before.kept.filter { !kinds.contains($0.kind) } }
    var cursor = LogCursor(directory, from: (before?.sequence ?? 0) + 1)
    while let record = try cursor.next(upTo: sequence) {
      if !kinds.contains(record.kind) { kept.append(record) }
    }
    return kept
  }

  private func removeHistory(_ history: LogHistory) throws(LogError) {
    try checkPlace()
    let wanted: Int
    switch history {
    case .all: return
    case .last(let count): wanted = lastSequence - max(count, 0) + 1
    case .nothing: wanted = .max
    }
    let files = try LogFiles(directory)
    guard let base = try wholeSnapshot(files.snapshots.filter { $0 < wanted }) else { return }
    // Removed one after the other, the oldest first, and each synced before the next: a crash
    // leaves no gaps.
    // The writer may still be in a segment that has a successor: one that it could not begin.
    let current = writer.withLock { $0.header.first }
    let segments = zip(files.segments, files.segments.dropFirst()).filter {
      $1 <= base + 1 && $0 < current
    }
    let names =
      files.snapshots.filter { $0 < base }.map(LogNames.snapshot)
      + segments.map { LogNames.segment($0.0) }
    if names.isEmpty { return }
    try reading { () throws(LogFileError) in
      // An earlier removal may not have been synced, nor the name of the snapshot that stays.
      try again { () throws(LogFileError) in try directory.sync() }
    }
    try noteOldestSnapshot(base)
    try reading { () throws(LogFileError) in
      for name in names {
        try directory.remove(name)
        try again { () throws(LogFileError) in try directory.sync() }
      }
    }
  }

  private func wholeSnapshot(_ sequences: [Int]) throws(LogError) -> Int? {
    for sequence in sequences.reversed() {
      do throws(LogError) {
        var file = try SnapshotFile(directory, sequence, of: log)
        try file.check()
        return sequence
      } catch {
        guard case .damaged = error else { throw error }
      }
    }
    return nil
  }
}
