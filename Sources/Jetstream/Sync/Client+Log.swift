import Foundation

/// Syncing scopes with a log, so that their state and their pending changes outlive the app.
extension Client {
  /// Syncs `scope` as ``fetch(_:params:mode:keepingContent:)`` does, and keeps its confirmed and its pending changes on disk.
  ///
  /// ```swift
  /// let client = Client(url: "wss://example.org/sync")
  /// try client.fetch(scope, log: FragmentLog(path))  // Shows what it showed last time.
  /// Task { try await client.connect() }              // Sends what was changed meanwhile.
  /// try await client.waitForDownload(of: scope)      // Optional: returns once the scope is up to date.
  /// ```
  ///
  /// Reads the log before it returns, and waits for nothing else: the scope can be used at once, whatever the server
  /// says. If the log has a state, the scope gets that state with all pending change sets, and catches up once there is
  /// a connection. Otherwise the server's state replaces the scope's content when it arrives; changes made until then,
  /// also before ``connect(params:)``, stay pending on top of it. If the log has such changes from an earlier fetch, they
  /// take the place of the scope's content until that state arrives, in front of the default values of the root.
  ///
  /// An app can give a scope content of its own when it is synced for the first time:
  ///
  /// ```swift
  /// try client.fetch(scope, log: log) { canvas.title = "Untitled" }
  /// ```
  ///
  /// The client calls `initial` if the log has nothing of the scope yet. The changes are visible at once. The server
  /// accepts them property by property of the root, if no client has written the property before; so the initial content
  /// of two clients does not add up. A server of version 1 gets only the properties for which its first state has no content.
  ///
  /// To keep everything that the scope contains before its first fetch:
  ///
  /// ```swift
  /// try client.fetch(scope, log: log, keepingContent: true)
  /// ```
  ///
  /// If the log has nothing of the scope yet, the content becomes one pending change set, as if the app had just written
  /// it: models and collections join those that the server has, and values replace the server's.
  ///
  /// If the server refuses the scope, the client asks again, and ``SyncState/Stall/refused(_:)`` gives the reason, unless
  /// the server says that the scope does not exist or no longer exists: ``Denial``.
  ///
  /// A change set is sent when its record is durable. If the disk fails, ``onDiagnostic`` fires and the client tries again
  /// every second; until an attempt succeeds, new change sets are not sent, and nothing is lost.
  ///
  /// - Parameters:
  ///   - scope: the scope to sync, whose name the server knows.
  ///   - params: parameters for the application on the server, such as the document that is meant.
  ///   - mode: the sync mode.
  ///   - log: the log of this scope alone, in this process alone.
  ///   - snapshotEvery: the number of records after which a snapshot is written, in a turn of its own; 0 for never. A
  ///     snapshot contains the pending change sets: while there are more of them than that, it is written after as many
  ///     records. The state is copied on the client's actor, in O(n) for n models; the rest runs on queues of the log.
  ///   - keepingContent: true if the content of the scope becomes a change set instead of being replaced.
  ///   - initial: writes initial content to the root and to new models.
  /// - Throws: ``LogError``; ``ScopeError`` if the log is not one of this scope; ``SyncError/alreadyFetched(scope:)``; and
  ///   any error that `initial` throws, after its changes were undone. The scope is not synced then.
  public func fetch(
    _ scope: Scope, params: JSONValue = .object([:]), mode: SyncMode = .realtime, log: FragmentLog,
    snapshotEvery: Int = 10_000, keepingContent: Bool = false,
    initial: (() throws -> Void)? = nil
  ) throws {
    let use = log
    let log = ClientLog(log.records)
    let history = try log.history()
    use.claim(.client)
    let kept = Kept()
    let keeper = keeper(of: kept, named: scope.name, in: log, snapshotEvery: snapshotEvery)
    kept.replica = try engine.fetch(
      scope, params: params, mode: mode, history: history, now: ticker.now,
      store: { keeper.keep($0) }
    ) { _ in }
    guard let replica = kept.replica else { throw SyncError.alreadyFetched(scope: scope.name) }
    logs[ObjectIdentifier(scope)] = KeptLog(keeper: keeper, log: log)
    keeper.begin()
    scheduleTimer()
    guard replica.isUntouched else { return }
    if keepingContent { replica.takeContent() }
    guard let initial else { return }
    do {
      try scope.modify(procedure: InitialContent.procedure, initial)
    } catch {
      // The caller takes the scope for one that is not synced.
      _ = engine.leave(scope, now: ticker.now)
      throw error
    }
  }

  /// A weak reference to the replica that the log belongs to.
  private final class Kept {
    weak var replica: Replica?
  }

  private func keeper(
    of kept: Kept, named name: String, in log: ClientLog, snapshotEvery: Int
  ) -> RecordKeeper<ReplicaRecord, LogError> {
    var owner = RecordKeeper<ReplicaRecord, LogError>.Owner(
      encode: \.content, mustOutliveProcess: { _ in true },
      append: {
        log.append(
          $0.records, after: $0.expected, ignoringBacklog: $0.ignoresBacklog, then: $1)
      },
      stored: { kept.replica?.stored($0) },
      snapshot: {
        guard let history = kept.replica?.history else { return nil }
        return RecordSnapshot(carried: history.pending.count) {
          log.snapshot(history, at: $0, then: $1)
        }
      },
      note: { [weak self] text in
        self?.onDiagnostic.fire(Diagnostic(.error, .storage, scope: name, text))
      })
    owner.stalled = { [weak self] in
      kept.replica?.journal.problem = "\($0)"
      self?.engine.reportStates()
    }
    return RecordKeeper(
      ticker: ticker, completions: ActorCompletions(on: actor), after: log.records.lastSequence,
      tail: log.records.opening.tailCount, snapshotEvery: snapshotEvery, owner: owner)
  }
}

/// The logs of scopes that are no longer synced.
extension Client {
  /// The log of a scope.
  struct KeptLog {
    let keeper: RecordKeeper<ReplicaRecord, LogError>
    let log: ClientLog
  }

  /// Has the log of a scope that is no longer synced take all of its records, also those that it has refused, and tries
  /// again every second while they cannot be written. From then on the log has everything in memory at least, so that
  /// closing it throws until it is durable, and another `fetch` with the log finds it.
  func leaveLog(of scope: Scope) {
    guard let kept = logs.removeValue(forKey: ObjectIdentifier(scope)) else { return }
    let key = ObjectIdentifier(kept.keeper)
    leftLogs[key] = kept
    kept.keeper.leave { [weak self] in self?.finishLog(key, after: $0) }
  }

  private func finishLog(_ key: ObjectIdentifier, after outcome: Result<Void, LogError>) {
    // A log is closed only once everything is durable.
    guard let kept = leftLogs[key], case .failure(let error) = outcome, error.remedy != .none,
      !kept.log.records.isClosed
    else { return leftLogs[key] = nil }
    ticker.perform(after: .seconds(1)) { [weak self] in
      self?.leftLogs[key]?.keeper.finish { self?.finishLog(key, after: $0) }
    }
  }
}
