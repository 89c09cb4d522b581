import Foundation

/// What restoring a scope has done.
public struct LogRestoration: Sendable {
  /// The number of the last record.
  public internal(set) var sequence = 0
  /// What the snapshot that restoring began with stands for; nil if there was none.
  public internal(set) var snapshot: Int?
  /// How many change sets were applied after it.
  public internal(set) var setCount = 0
  /// What did not fit the models, with the number of its record. Everything else was applied.
  public internal(set) var misfits: [(sequence: Int, error: ScopeError)] = []
  /// The records of other kinds, whole and in order.
  package internal(set) var others: [LogRecord] = []

  init(snapshot: Int? = nil) { self.snapshot = snapshot }
}

/// Scopes and their logs.
extension FragmentLog {
  /// Brings a scope to the state that the log holds: the newest snapshot, then the sets after it.
  ///
  /// The scope needs a root of the class that the log was made with. Models that it has already keep
  /// their identity if the log knows them; others are detached. Observers fire, ``Scope/onChanges`` does
  /// not. If the log is new, the scope is left as it is, and its state becomes the first snapshot: so the
  /// log knows from what its first set departs.
  ///
  /// Cost: reading and applying the snapshot and the tail; the time the disk needs for the first snapshot
  /// is waited for without blocking.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(_:_:)`` or ``LogError/file(_:)``. What was
  ///   applied until then stays.
  @discardableResult
  public func restore(into scope: Scope) async throws(LogError) -> LogRestoration {
    if let result = try restoreWhatIsThere(into: scope) { return result }
    // It may have records of other kinds.
    var result = LogRestoration(snapshot: lastSequence)
    result.sequence = lastSequence
    try await self.snapshot(of: scope)
    return result
  }

  /// The same without waiting. Nil, and nothing done, if the log has no state and no change set yet.
  package func restoreWhatIsThere(into scope: Scope) throws(LogError) -> LogRestoration? {
    let result = try LogReader(records.directory).replay(into: scope, upTo: nil)
    return result.snapshot == nil && result.setCount == 0 ? nil : result
  }

  /// Appends every change set of the scope from here on, and makes a snapshot now and then.
  ///
  /// Local changes only: what others did and ``Scope/apply(_:resettingMissing:)`` brought in comes in no
  /// change set.
  ///
  /// - Parameters:
  ///   - scope: the scope whose change sets are kept.
  ///   - author: who makes the changes; it stands in each set that has no author.
  ///   - date: tells what time it is; it stands in each set.
  ///   - snapshotEvery: after how many sets a snapshot is made; 0 for never. The state is copied in the
  ///     scope's isolation domain, in O(models); all else happens elsewhere.
  ///   - onFailure: is called, on a queue of the log, when the disk has failed. Nothing is lost: the next
  ///     set, or ``sync()``, is another attempt. Also called when a set cannot be appended at all, in
  ///     the scope's isolation domain.
  /// - Returns: a token that ends it.
  @discardableResult
  public func keep(
    _ scope: Scope, author: String? = nil, date: @escaping () -> Date = { Date() },
    snapshotEvery: Int = 10_000, onFailure: @escaping @Sendable (LogError) -> Void
  ) -> ObservationToken {
    var count = records.opening.tailCount
    return scope.onChanges.listen { [weak scope] set in
      do throws(LogError) {
        var set = set
        set.author = set.author ?? author
        set.date = set.date ?? date()
        try self.append(set).whenDurable { result in
          if case .failure(let error) = result { onFailure(error) }
        }
        self.records.writeNow()
      } catch {
        onFailure(error)
      }
      count += 1
      // Only when the state is what the sets until now have made of it.
      guard snapshotEvery > 0, count >= snapshotEvery, let scope, scope.isSettled else { return }
      count = 0
      let sequence = self.lastSequence
      let state = scope.fullState()
      self.records.snapshot(
        at: sequence, standingFor: [.set], state: { Self.records(of: state) }
      ) { result in
        if case .failure(let error) = result { onFailure(error) }
      }
    }
  }

  /// Writes a snapshot of the scope, and removes what the configuration does not ask to keep.
  ///
  /// Everything that the scope has changed so far must have been appended, as ``keep(_:author:date:snapshotEvery:onFailure:)``
  /// does; changes that are still being collected become a set first. The state is copied here, in
  /// O(models), and written elsewhere.
  public func snapshot(of scope: Scope) async throws(LogError) {
    if scope.hasCollectedChanges { scope.flush() }
    let state = scope.fullState()
    try await records.snapshot(at: lastSequence, standingFor: [.set]) { Self.records(of: state) }
  }

  private static func records(of state: [SyncFragment]) -> [(kind: LogKind, payload: [UInt8])] {
    state.map { fragment in
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      return (.fragment, payload)
    }
  }
}

extension ChangeSet {
  /// Reads a change set from a record of the kind ``LogKind/set``.
  ///
  /// - Throws: ``LogError/unreadable(_:_:)`` if it is no such record, or not what it says it is.
  public init(_ record: LogRecord) throws(LogError) {
    guard record.kind == .set else {
      throw .unreadable(record.sequence, "it is a \(record.kind.rawValue), not a set")
    }
    do {
      self = try ChangeSet(json: JSONValue(parsing: record.payload))
    } catch {
      throw .unreadable(record.sequence, "\(error)")
    }
  }
}

extension SyncFragment {
  /// Reads a fragment from a record of the kind ``LogKind/fragment``.
  ///
  /// - Throws: ``LogError/unreadable(_:_:)`` if it is no such record, or not what it says it is.
  public init(_ record: LogRecord) throws(LogError) {
    guard record.kind == .fragment else {
      throw .unreadable(record.sequence, "it is a \(record.kind.rawValue), not a fragment")
    }
    do {
      self = try SyncFragment(json: JSONValue(parsing: record.payload))
    } catch {
      throw .unreadable(record.sequence, "\(error)")
    }
  }
}

extension LogSnapshot {
  /// Reads the models of the state, the root first; the state may have lines of other kinds.
  ///
  /// - Throws: ``LogError/unreadable(_:_:)``.
  func fragments() throws(LogError) -> [SyncFragment] {
    var fragments: [SyncFragment] = []
    for record in state where record.kind == .fragment {
      fragments.append(try SyncFragment(record))
    }
    return fragments
  }
}
