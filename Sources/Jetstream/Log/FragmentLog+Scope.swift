import Foundation

/// The result of restoring a scope from a log.
public struct LogRestoration: Sendable {
  /// The sequence number of the last record.
  public internal(set) var sequence = 0
  /// The sequence number of the snapshot that the scope was restored from; nil if there was none.
  package internal(set) var snapshot: Int?
  /// The number of change sets that were applied after the snapshot.
  package internal(set) var changeSetCount = 0
  /// Operations that did not fit the models, each with the sequence number of its record. All
  /// others were applied.
  public internal(set) var misfits: [(sequence: Int, error: ScopeError)] = []
  /// The records of kinds other than change sets, complete and in order.
  package internal(set) var others: [LogRecord] = []

  init(snapshot: Int? = nil) { self.snapshot = snapshot }
}

/// Scopes and their logs.
extension FragmentLog {
  /// Restores a scope from the log: applies the newest snapshot, then the change sets after it.
  ///
  /// The scope needs a root of the class that the log was made with. Models that are already in the
  /// scope keep their identity if the log contains them; others are detached. Observers fire,
  /// ``Scope/onChanges`` does not. If the log is new, the scope stays unchanged, and its state is
  /// written as the first snapshot, the base of the first change set. Change sets that the scope
  /// makes until that is on disk are appended behind it, without an author. Call
  /// ``record(_:author:date:snapshotEvery:onFailure:)`` right after: what the scope delivers in between
  /// is not appended.
  ///
  /// Cost: reading and applying the snapshot and the change sets after it. Writing the first
  /// snapshot does not block the thread.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)``,
  ///   ``LogError/newerVersion(file:version:)`` or ``LogError/file(_:)``. Changes that were applied before the error
  ///   are kept. If the log is new, also what ``snapshot(of:)`` throws, and ``LogError/backlog(bytes:)`` or
  ///   ``LogError/tooLong(bytes:)`` for change sets that the scope has made meanwhile.
  @discardableResult
  public func restore(into scope: Scope) async throws(LogError) -> LogRestoration {
    let restored = try restoreWhatIsThere(into: scope)
    claim(.app)
    if let restored { return restored }
    // The log may already have records of other kinds.
    var result = LogRestoration(snapshot: lastSequence)
    result.sequence = lastSequence
    Self.sealEverything(in: scope)
    // The scope may change while the snapshot is written, and the app can record it only afterwards. These change sets
    // wait for the snapshot: without it, they would be in a log that has nothing to apply them to.
    var made: [ChangeSet] = []
    let token = scope.onChanges.listen { set in
      var set = set
      set.date = set.date ?? Date()
      made.append(set)
    }
    defer { token.cancel() }
    try await write(scope.fullState())
    if made.isEmpty { return result }
    result.sequence = try append(made).sequence
    records.writeNow()
    return result
  }

  /// Like ``restore(into:)``, without waiting for the disk. If the log has neither a state nor a
  /// change set yet, returns nil and does nothing.
  package func restoreWhatIsThere(into scope: Scope) throws(LogError) -> LogRestoration? {
    let result = try LogReader(records.directory).replay(into: scope, upTo: nil)
    return result.snapshot == nil && result.changeSetCount == 0 ? nil : result
  }

  /// Appends every change set that the scope makes from now on, and writes a snapshot at intervals.
  ///
  /// Only local changes are appended. Changes from the server or a peer, and those made with
  /// ``Scope/apply(_:resettingMissing:)``, are in no change set.
  ///
  /// - Parameters:
  ///   - scope: The scope whose change sets are appended.
  ///   - author: The author that is set on each change set that has none. In an ``UndoHistory``, too, the scope's own
  ///     change sets without an author are changes of this one.
  ///   - date: Returns the current date, which is set on each change set that has none.
  ///   - snapshotEvery: The number of change sets after which a snapshot is written; 0 for never.
  ///     The state is copied in the scope's isolation domain, in O(n) for n models; the rest runs
  ///     on queues of the log.
  ///   - onFailure: Called on a queue of the log after the disk has failed. Nothing is lost: the
  ///     next change set, or ``sync()``, tries again. Also called in the scope's isolation domain
  ///     if a change set cannot be appended at all.
  /// - Returns: A token that ends the recording when it is cancelled.
  @discardableResult
  public func record(
    _ scope: Scope, author: String? = nil, date: @escaping () -> Date = { Date() },
    snapshotEvery: Int = 10_000, onFailure: @escaping @Sendable (LogError) -> Void
  ) -> ObservationToken {
    claim(.app)
    let author = author.map { scope.sealed.defaultAuthors.add($0) }
    var count = records.opening.tailCount
    return scope.onChanges.listen { [weak scope] set in
      do throws(LogError) {
        var set = set
        set.author = set.author ?? author?.name
        set.date = set.date ?? date()
        try self.append(set).whenDurable { result in
          if case .failure(let error) = result { onFailure(error) }
        }
        self.records.writeNow()
      } catch {
        onFailure(error)
      }
      count += 1
      // Only while the state is exactly the result of the change sets appended so far.
      guard snapshotEvery > 0, count >= snapshotEvery, let scope, scope.isSettled else { return }
      count = 0
      let sequence = self.lastSequence
      let state = scope.fullState()
      self.records.snapshot(
        at: sequence, standingFor: [.set], state: { Self.records(of: state) }
      ) { result in
        switch result {
        case .success(let written): if let error = written.removalError { onFailure(error) }
        case .failure(let error): onFailure(error)
        }
      }
    }
  }

  /// Writes a snapshot of the scope, and removes what the configuration does not ask to keep.
  ///
  /// Everything that the scope has changed so far must have been appended, as ``record(_:author:date:snapshotEvery:onFailure:)``
  /// does; changes that are still being collected become a change set first. The state is copied here, in
  /// O(n) for n models, and written elsewhere.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/moved(path:)``; ``LogError/damaged(_:)`` or
  ///   ``LogError/newerVersion(file:version:)`` if records that the snapshot has to keep cannot be read;
  ///   ``LogError/closed``. The log is as it was then, or has the snapshot and more than the configuration asks to keep,
  ///   which the next snapshot removes.
  public func snapshot(of scope: Scope) async throws(LogError) {
    claim(.app)
    Self.sealEverything(in: scope)
    if let error = try await write(scope.fullState()).removalError { throw error }
  }

  /// Has change sets made of what a scope has changed so far. What observers change when they are told of it would be in the
  /// state, and in a change set behind it once more.
  private static func sealEverything(in scope: Scope) {
    if scope.hasCollectedChanges { scope.flush() }
    // Listeners of change sets may go on making changes for ever.
    for _ in 0..<4 where scope.hasCollectedChanges { scope.sealAllChanges() }
  }

  /// Writes a snapshot of the state that the last record has led to.
  @discardableResult
  private func write(_ state: [SyncFragment]) async throws(LogError) -> WrittenSnapshot<LogError> {
    try await records.snapshot(at: lastSequence, standingFor: [.set]) { Self.records(of: state) }
  }

  private static func records(of state: [SyncFragment]) -> [RecordContent] {
    state.map { fragment in
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      return RecordContent(.fragment, payload)
    }
  }
}

extension ChangeSet {
  /// Decodes a change set from a record of the kind ``LogKind/set``.
  ///
  /// - Throws: ``LogError/unreadable(sequence:problem:)`` if the record is of another kind or is not a valid
  ///   change set.
  package init(_ record: LogRecord) throws(LogError) {
    guard record.kind == .set else {
      throw .unreadable(
        sequence: record.sequence, problem: "it is a \(record.kind.rawValue), not a set")
    }
    self = try record.read(ChangeSet.init(json:))
  }
}

extension SyncFragment {
  /// Decodes a fragment from a record of the kind ``LogKind/fragment``.
  ///
  /// - Throws: ``LogError/unreadable(sequence:problem:)`` if the record is of another kind or is not a valid
  ///   fragment.
  package init(_ record: LogRecord) throws(LogError) {
    guard record.kind == .fragment else {
      throw .unreadable(
        sequence: record.sequence, problem: "it is a \(record.kind.rawValue), not a fragment")
    }
    self = try record.read(SyncFragment.init(json:))
  }
}

extension LogSnapshot {
  /// Reads the models of the state, the root first; the state may have lines of other kinds.
  ///
  /// - Throws: ``LogError/unreadable(sequence:problem:)``.
  func fragments() throws(LogError) -> [SyncFragment] {
    var fragments: [SyncFragment] = []
    for record in state where record.kind == .fragment {
      fragments.append(try SyncFragment(record))
    }
    return fragments
  }
}
