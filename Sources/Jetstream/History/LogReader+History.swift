import Foundation

/// Reading earlier states and change sets of a log without opening it for writing. The log may be on a read-only
/// file system, or open in another process.
extension LogReader {
  /// Brings a scope to the state that the log holds, or to the one that it held when record `sequence` was the last
  /// one: the newest snapshot until then, and the change sets after it.
  ///
  /// ```swift
  /// let then = Scope(name: "Then", root: Canvas(), ticker: ticker)
  /// try LogReader(path).restore(into: then, at: 1200)
  /// ```
  ///
  /// Like ``FragmentLog/restore(into:)``, but nothing is made, locked or written. If
  /// there is no log yet, the scope is left as it is. While another process writes the log, the state may be one that
  /// is not durable yet.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)`` or ``LogError/file(_:)``; ``LogError/notKept(sequence:kept:)``
  ///   if the other process removes what is just being read. What was applied until then stays.
  @discardableResult
  public func restore(
    into scope: Scope, at sequence: Int? = nil
  ) throws(LogError) -> LogRestoration {
    let result =
      try ClientLog.isKept(in: self)
      ? replayClient(into: scope, upTo: sequence) : replay(into: scope, upTo: sequence)
    if let sequence, result.sequence != sequence {
      throw .unreadable(sequence: sequence, problem: "the log has records 1 to \(result.sequence)")
    }
    return result
  }

  /// Returns the difference between the states at two records as one change set: see ``ChangeSet/init(from:to:)``.
  /// Reads from disk on the caller.
  ///
  /// - Parameters:
  ///   - from: the sequence of the record with the old state.
  ///   - to: the sequence of the record with the new state, which may be the smaller one.
  ///   - scratch: a scope with a root of the log's class, which is used to build the states. It has the state of
  ///     `to` afterwards.
  /// - Throws: as ``restore(into:at:)`` does.
  public func difference(
    from: Int, to: Int, using scratch: Scope
  ) throws(LogError) -> ChangeSet {
    try restore(into: scratch, at: from)
    let old = scratch.fullState()
    try restore(into: scratch, at: to)
    return ChangeSet(from: old, to: scratch.fullState())
  }

  /// Returns the change sets of the written records in `range`, with their sequences. Records that were dropped are
  /// left out. Reads from disk on the caller.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)`` or ``LogError/file(_:)``.
  public func changeSets(
    in range: ClosedRange<Int>
  ) throws(LogError) -> [(sequence: Int, changeSet: ChangeSet)] {
    var result: [(sequence: Int, changeSet: ChangeSet)] = []
    let first = max(range.lowerBound, try firstSequence() ?? 1)
    var cursor = try read(from: first)
    while let record = try cursor.next(), record.sequence <= range.upperBound {
      if record.kind == .set { result.append((record.sequence, try ChangeSet(record))) }
    }
    return result
  }

  /// Returns every write of a property of a model that the log has kept, with its author and time, the oldest
  /// first. Reads from disk on the caller; cost: O(n) in the size of the log.
  ///
  /// In the log of a client these are the writes of the change sets that count, its own and those of other
  /// replicas, in the server's order, followed by the pending ones. Values that came with a full state have no
  /// author, and are left out. The log of a client keeps only what it needs unless its ``LogConfiguration/history``
  /// says otherwise.
  ///
  /// - Parameters:
  ///   - key: the name of the property on the wire.
  ///   - model: the model's UUID.
  /// - Throws: as ``changeSets(in:)`` does.
  public func writes(
    to key: String, of model: UUID
  ) throws(LogError) -> [PropertyWrite] {
    let sets = try ClientLog.isKept(in: self) ? countingSets() : changeSets(in: 1...Int.max)
    return sets.flatMap { sequence, set in
      set.fragments.lazy.filter { $0.uuid == model }.compactMap { fragment in
        let operations = fragment.operations[key]
        guard let value = fragment.properties[key] else {
          return operations.isEmpty ? nil : PropertyWrite(sequence, set, .operations(operations))
        }
        return PropertyWrite(sequence, set, .value(value))
      }
    }
  }

  /// Applies the newest snapshot, or the newest one that is not later than `last`, and the records after it up to
  /// `last`. Ends early if the log does.
  func replay(into scope: Scope, upTo last: Int?) throws(LogError) -> LogRestoration {
    var result = LogRestoration()
    if let snapshot = try snapshot(upTo: last ?? .max) {
      if ClientLog.isOfClient(snapshot) { throw .ofClient(snapshot.sequence) }
      try result.apply(snapshot, to: scope)
    } else if let last {
      throw .unreadable(sequence: last, problem: "no snapshot below it is kept")
    } else {
      try checkBeginning()
    }
    var cursor = try read(from: result.sequence + 1)
    while result.sequence < last ?? .max, let record = try cursor.next() {
      if record.kind == ReplicaRecord.Kind.named { throw .ofClient(record.sequence) }
      try result.apply(record, to: scope)
    }
    return result
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
