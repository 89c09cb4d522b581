/// Bringing a scope to the state that a log holds.
extension LogReader {
  /// Applies the newest snapshot, or the newest one that is not later than `last`, and the records after it up to
  /// `last`. Ends early if the log does.
  func replay(into scope: Scope, upTo last: Int?) throws(LogError) -> LogRestoration {
    var result = LogRestoration()
    if let snapshot = try snapshot(upTo: last ?? .max) {
      if snapshot.isOfClient { throw .ofClient(snapshot.sequence) }
      try result.apply(snapshot, to: scope)
    } else if let last {
      throw try missingState(at: last)
    } else {
      try checkBeginning()
    }
    var cursor = try read(from: result.sequence + 1)
    while result.sequence < last ?? .max, let record = try cursor.next() {
      if record.kind == .replica { throw .ofClient(record.sequence) }
      try result.apply(record, to: scope)
    }
    return result
  }

  /// The reason why no state at a record, or at the end of the log, can be read.
  func missingState(at sequence: Int?) throws(LogError) -> LogError {
    let files = try LogFiles(directory)
    // Those that are there are damaged: this says what is wrong with the newest one.
    for number in files.snapshots.reversed() where number <= sequence ?? .max {
      var file = try SnapshotFile(directory, number, of: nil)
      try file.check()
    }
    let records = try verify().records
    if let missing = try LogMark.missingSnapshot(directory), missing <= sequence ?? .max {
      return .damaged(LogDamage(missingSnapshot: missing, readable: records))
    }
    if let first = files.snapshots.first {
      return .notKept(
        sequence: sequence ?? first, kept: first...max(first, records?.upperBound ?? first))
    }
    if records == nil { return .notKept(sequence: sequence ?? 0, kept: nil) }
    return .unreadable(
      sequence: sequence ?? records?.upperBound ?? 0,
      problem:
        "the log has no snapshot, and without one it is not known what its change sets depart from")
  }

  /// Checks, if no snapshot can be read, that no snapshot is missing on which the records are based.
  private func checkBeginning() throws(LogError) {
    if try LogMark.missingSnapshot(directory) == 0 {
      throw .damaged(LogDamage(missingSnapshot: 0, readable: nil))
    }
    // A log that was opened without the snapshot continues without it.
    if let mark = LogMark(directory), mark.snapshot != 0 { return }
    guard try LogFiles(directory).snapshots.first == 0 else { return }
    // The snapshot exists: reading it throws the reason why it cannot be used.
    var file = try SnapshotFile(directory, 0, of: nil)
    try file.check()
  }

  /// Returns true if a client that fetches a scope with the log writes it.
  func isOfClient() throws(LogError) -> Bool {
    if let snapshot = try snapshot() { return snapshot.isOfClient }
    var cursor = try read()
    // The log may have been marked before its first use.
    while let record = try cursor.next() {
      if record.kind != .revision { return record.kind == .replica }
    }
    return false
  }
}

extension LogKind {
  /// The first record of a client's log, but for revisions: who numbers its change sets.
  static let replica = LogKind("replica")
  /// In the state of a client's log: the client's identity and the position in the server's order.
  static let place = LogKind("place")
  /// In a state with pending change sets: the same. An older version of this framework does not know pending change
  /// sets in a state and would lose them; it refuses the log instead, because there is no `place`.
  static let placeAmongPending = LogKind("place-among-pending")
}

extension LogSnapshot {
  /// True in the log of a client.
  var isOfClient: Bool {
    state.contains { $0.kind == .place || $0.kind == .placeAmongPending }
  }
}

extension LogError {
  /// The log is one of a client, whose records mean something else to an app that records its own.
  fileprivate static func ofClient(_ sequence: Int) -> LogError {
    .unreadable(
      sequence: sequence,
      problem: "the log is one of a client; a client that fetches the scope with it restores it")
  }
}

extension LogRestoration {
  /// Applies the next record to the scope.
  mutating func apply(_ record: LogRecord, to scope: Scope) throws(LogError) {
    sequence = record.sequence
    guard record.kind == .set else {
      others.append(record)
      return
    }
    let report = scope.apply(try ChangeSet(record).fragments)
    changeSetCount += 1
    misfits += report.errors.map { (record.sequence, $0.error) }
  }

  /// Applies the state of a snapshot to the scope.
  mutating func apply(_ snapshot: LogSnapshot, to scope: Scope) throws(LogError) {
    let fragments = try snapshot.fragments()
    sequence = snapshot.sequence
    self.snapshot = snapshot.sequence
    others = snapshot.kept + snapshot.state.filter { $0.kind != .fragment }
    guard let root = fragments.first else { return }
    do throws(ScopeError) {
      let report = try scope.applyFullState(fragments, rootUUID: root.uuid)
      misfits = report.errors.map { (snapshot.sequence, $0.error) }
    } catch {
      throw .unreadable(sequence: snapshot.sequence, problem: "\(error)")
    }
  }
}
