import Foundation

/// Syncing scopes with a log, so that their state and their pending changes outlive the app.
extension Client {
  /// Syncs `scope` as ``fetch(_:params:mode:keepingContent:)`` does, and keeps its confirmed and its pending changes on disk.
  ///
  /// ```swift
  /// let client = Client(url: "wss://example.org/sync")
  /// try client.fetch(canvas, log: FragmentLog(path))  // Shows what it showed last time.
  /// Task { try await client.connect() }             // Sends what was changed meanwhile.
  /// try await client.waitForDownload(of: canvas)    // Optional: returns once the scope is up to date.
  /// ```
  ///
  /// Reads the log before it returns, and waits for nothing else: the scope can be used at once, whatever the server
  /// says. If the log has a state, the scope gets that state with all pending change sets, and catches up once there is
  /// a connection. Otherwise the server's state replaces the scope's content when it arrives; changes made until then,
  /// also before ``connect(params:)``, stay pending on top of it.
  ///
  /// A scope that is synced for the first time can begin with content of the app's:
  ///
  /// ```swift
  /// try client.fetch(canvas, log: log) { root.title = "Untitled" }
  /// ```
  ///
  /// `initial` is called if the log has nothing of the scope yet. What it writes to the root is visible at once, and
  /// counts on the server property by property, where no client has written the property before: what two clients bring at
  /// the same time does not add up. A server of version 1 is sent what its first state has no content for.
  ///
  /// What an app has built before it asks for the first time can be kept, too:
  ///
  /// ```swift
  /// try client.fetch(canvas, log: log, keepingContent: true)
  /// ```
  ///
  /// If the log has nothing of the scope yet, all that the scope contains is one pending change set, as if the app had
  /// written it just now: models and collections join those that the server has, and values replace the server's.
  ///
  /// A server that refuses the scope is asked again, and ``SyncState/Stall/refused(_:)`` tells why, unless it says that
  /// there is no such scope, or none any more: ``Denial``.
  ///
  /// A change set is sent when its record is durable. When the disk fails, ``onDiagnostic`` tells and another
  /// attempt is made every second; until one succeeds new change sets are not sent, and nothing is lost.
  ///
  /// - Parameters:
  ///   - scope: the scope to sync, whose name the server knows.
  ///   - params: what the application wants to tell the server, such as which document it means.
  ///   - mode: when what happens is sent and taken in.
  ///   - log: what there is on disk. No other scope, and no other process, may use it.
  ///   - snapshotEvery: after how many records a snapshot is made, in a turn of its own; 0 for never. It carries
  ///     pending change sets along: while there are more of them, after as many. The state is copied on the
  ///     client's actor, in O(models); all else happens elsewhere.
  ///   - keepingContent: whether the content of the scope becomes a change set instead of being replaced.
  ///   - initial: writes initial content to the root and to new models.
  /// - Throws: ``LogError``; ``ScopeError`` if the log is not one of this scope; ``SyncError/alreadyFetched(scope:)``; what
  ///   `initial` throws, and then what it has written is taken back.
  public func fetch(
    _ scope: Scope, params: JSONValue = .object([:]), mode: SyncMode = .realtime, log: FragmentLog,
    snapshotEvery: Int = 10_000, keepingContent: Bool = false,
    initial: (() throws -> Void)? = nil
  ) throws {
    let log = ClientLog(log.records)
    let history = try log.history()
    let kept = Kept()
    let keeper = keeper(of: kept, named: scope.name, in: log, snapshotEvery: snapshotEvery)
    kept.replica = try engine.fetch(
      scope, params: params, mode: mode, history: history, now: ticker.now,
      store: { keeper.keep($0) }
    ) { _ in }
    guard let replica = kept.replica else { throw SyncError.alreadyFetched(scope: scope.name) }
    keeper.begin()
    scheduleTimer()
    guard replica.isUntouched else { return }
    if keepingContent { replica.takeContent() }
    guard let initial else { return }
    try scope.modify(procedure: InitialContent.procedure, initial)
  }

  /// A weak reference to the replica that the log belongs to.
  private final class Kept {
    weak var replica: Replica?
  }

  private func keeper(
    of kept: Kept, named name: String, in log: ClientLog, snapshotEvery: Int
  ) -> RecordKeeper<ReplicaRecord> {
    RecordKeeper(
      ticker: ticker, completions: ActorCompletions(on: actor),
      tail: log.records.opening.tailCount, snapshotEvery: snapshotEvery,
      owner: .init(
        append: { record throws(LogError) in try log.append(record) },
        stored: { kept.replica?.stored($0) },
        snapshot: {
          guard let history = kept.replica?.history else { return nil }
          let last = log.records.lastSequence
          return RecordSnapshot(carried: history.pending.count) {
            log.snapshot(history, at: last, then: $0)
          }
        },
        note: { [weak self] text in
          self?.onDiagnostic.fire(Diagnostic(.error, .storage, scope: name, text))
        },
        stalled: { [weak self] in
          kept.replica?.storageProblem = "\($0)"
          self?.engine.reportStates()
        }))
  }
}
