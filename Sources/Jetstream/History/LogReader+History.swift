import Foundation

/// The past of a scope, from a log that is only read: also one that this process may not write, that lies on a
/// read-only file system, or that another process has open.
extension LogReader {
  /// Brings a scope to the state that the log holds, or to the one that it held when record `sequence` was the last
  /// one: the newest snapshot until then, and the change sets after it.
  ///
  /// ```swift
  /// let then = Scope(name: "Then", root: Canvas(), ticker: ticker)
  /// try LogReader(path).restore(into: then, at: 1200)
  /// ```
  ///
  /// As ``FragmentLog/restore(into:)`` and ``FragmentLog/restore(into:at:)``, but nothing is made, locked or written. If
  /// there is no log yet, the scope is left as it is. While another process writes the log, the state may be one that
  /// is not durable yet.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(_:_:)`` or ``LogError/file(_:)``; ``LogError/notKept(_:kept:)``
  ///   if the other process removes what is just being read. What was applied until then stays.
  @discardableResult
  public func restore(
    into scope: Scope, at sequence: Int? = nil
  ) throws(LogError) -> LogRestoration {
    let result =
      try ClientLog.isKept(in: self)
      ? replayClient(into: scope, upTo: sequence) : replay(into: scope, upTo: sequence)
    if let sequence, result.sequence != sequence {
      throw .unreadable(sequence, "the log has records 1 to \(result.sequence)")
    }
    return result
  }

  /// What has changed between two records, as one set: see ``ChangeSet/init(from:to:)``. Reads the disk on the caller.
  ///
  /// - Parameters:
  ///   - from: the number of the record that the difference departs from.
  ///   - to: the number that it leads to, which may be the smaller one.
  ///   - scratch: a scope with a root of the log's class, which is used to build the states. It has the state of `to`
  ///     afterwards.
  /// - Throws: as ``restore(into:at:)`` does.
  public func difference(
    from: Int, to: Int, using scratch: Scope
  ) throws(LogError) -> ChangeSet {
    try restore(into: scratch, at: from)
    let old = scratch.fullState()
    try restore(into: scratch, at: to)
    return ChangeSet(from: old, to: scratch.fullState())
  }

  /// The change sets of the records in `range` that are kept and written, with their numbers.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(_:_:)`` or ``LogError/file(_:)``.
  public func changeSets(
    in range: ClosedRange<Int>
  ) throws(LogError) -> [(sequence: Int, set: ChangeSet)] {
    var result: [(sequence: Int, set: ChangeSet)] = []
    let first = max(range.lowerBound, try firstSequence() ?? 1)
    var cursor = try read(from: first)
    while let record = try cursor.next(), record.sequence <= range.upperBound {
      if record.kind == .set { result.append((record.sequence, try ChangeSet(record))) }
    }
    return result
  }

  /// Who has written a property of a model, and when: every change set that is kept and names it, the oldest first.
  /// Reads the disk on the caller; cost: O(n) in what is kept.
  ///
  /// In a client's log these are the change sets that count, its own and those of others, where the server has put them;
  /// pending ones stand behind. What came with a whole state has no author, and is left out. A client's log keeps only
  /// what it needs unless its ``LogConfiguration/history`` says otherwise.
  ///
  /// - Parameters:
  ///   - key: what the property is called on the wire.
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

  /// Applies the newest snapshot, or the newest that is not later than `last`, and what follows it up to there. Ends
  /// early if the log does.
  func replay(into scope: Scope, upTo last: Int?) throws(LogError) -> LogRestoration {
    var result = LogRestoration()
    if let snapshot = try snapshot(upTo: last ?? .max) {
      try result.apply(snapshot, to: scope)
    } else if let last {
      throw .unreadable(last, "no snapshot below it is kept")
    } else {
      try checkBeginning()
    }
    var cursor = try read(from: result.sequence + 1)
    while result.sequence < last ?? .max, let record = try cursor.next() {
      try result.apply(record, to: scope)
    }
    return result
  }

  /// Checks, where no snapshot can be read, that none is missing from which the records depart.
  private func checkBeginning() throws(LogError) {
    if try LogMark.missingSnapshot(directory) == 0 {
      throw .damaged(LogDamage(missingSnapshot: 0, readable: nil))
    }
    // A log that was opened without it goes on without it.
    if let mark = LogMark(directory), mark.snapshot != 0 { return }
    guard try LogFiles(directory).snapshots.first == 0 else { return }
    // It is there: this says what is wrong with it.
    var file = try SnapshotFile(directory, 0, of: nil)
    try file.check()
  }
}

extension LogRestoration {
  /// Applies the next record.
  mutating func apply(_ record: LogRecord, to scope: Scope) throws(LogError) {
    sequence = record.sequence
    guard record.kind == .set else {
      others.append(record)
      return
    }
    let report = scope.apply(try ChangeSet(record).fragments)
    setCount += 1
    misfits += report.errors.map { (record.sequence, $0.error) }
  }

  /// Applies the state of a snapshot.
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
      throw .unreadable(snapshot.sequence, "\(error)")
    }
  }
}
