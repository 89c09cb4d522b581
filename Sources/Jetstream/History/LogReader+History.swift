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
  /// - Throws: ``LogError/notKept(sequence:kept:)`` if the log has not come as far as record `sequence`, does not keep
  ///   the state at it, or if the other process removes what is just being read; ``LogError/damaged(_:)``,
  ///   ``LogError/unreadable(sequence:problem:)``, ``LogError/newerVersion(file:version:)`` or ``LogError/file(_:)``.
  ///   The scope keeps what was applied until then.
  @discardableResult
  public func restore(
    into scope: Scope, at sequence: Int? = nil
  ) throws(LogError) -> LogRestoration {
    let result =
      try isOfClient()
      ? replayClient(into: scope, upTo: sequence) : replay(into: scope, upTo: sequence)
    if let sequence, result.sequence != sequence {
      let first = try firstSequence() ?? 1
      throw .notKept(
        sequence: sequence, kept: result.sequence < first ? nil : first...result.sequence)
    }
    return result
  }

  /// Returns the difference between the states at two records as one change set of values: a collection that differs is
  /// named as a whole.
  /// Reads from disk on the caller.
  ///
  /// - Parameters:
  ///   - from: the sequence of the record with the old state.
  ///   - to: the sequence of the record with the new state, which may be the smaller one.
  ///   - scratch: a scope with a root of the log's class, which is used to build the states. It has the state of
  ///     `to` afterwards.
  /// - Throws: as ``restore(into:at:)`` does; ``LogError/notKept(sequence:kept:)`` if one of the two is not kept.
  public func difference(
    from: Int, to: Int, using scratch: Scope
  ) throws(LogError) -> ChangeSet {
    try restore(into: scratch, at: from)
    var old = scratch.fullState()
    let root = scratch.root?.uuid
    try restore(into: scratch, at: to)
    // The first state of a server names the root of a client's scope anew.
    if let root, let now = scratch.root?.uuid, root != now {
      let renaming = RootRenaming(from: root, to: now, in: scratch)
      old = old.map { renaming($0) }
    }
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
    while cursor.sequence <= range.upperBound, let record = try cursor.next() {
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
    let (sets, roots) = try isOfClient() ? countingSets() : (changeSets(in: 1...Int.max), [])
    let names = roots.contains(model) ? roots : [model]
    return sets.flatMap { sequence, set in
      set.fragments.lazy.filter { names.contains($0.uuid) }.compactMap { fragment in
        let operations = fragment.operations[key]
        guard let value = fragment.properties[key] else {
          return operations.isEmpty ? nil : PropertyWrite(sequence, set, .operations(operations))
        }
        return PropertyWrite(sequence, set, .value(value))
      }
    }
  }
}
