import Foundation
import Jetstream

/// Hosting scopes with a history on disk.
extension Server {
  /// Offers `scope` to clients under its name, with a history on disk: clients are told of nothing before
  /// it is durable, and whatever was told is there after a crash. Each client's change sets are applied
  /// once, however often client and server are killed.
  ///
  /// What durable means is for the log's `LogConfiguration` to say: with a durability other than each
  /// record, a crash of the machine may take back what was told. A backup that is put in place of what has gone
  /// on since needs `FragmentLog.beginEpoch()`.
  ///
  /// If the log has a history, the scope becomes what it says; otherwise the scope's content is what it
  /// begins with. The log is read here, in the time that takes.
  ///
  /// When the disk fails, ``onDiagnostic`` tells and another attempt is made every second; until one succeeds
  /// clients are told nothing new of the scope, and nothing is lost.
  ///
  /// - Parameters:
  ///   - unknown: what is done with properties and classes that the scope does not know.
  ///   - scope: the scope to offer to clients.
  ///   - log: the history. No other scope, and no other process, may use it.
  ///   - snapshotEvery: after how many records a snapshot is made; 0 for never. The state is copied on the
  ///     server's actor, in O(models); all else happens elsewhere.
  /// - Throws: `LogError`; or `ScopeError` if the history is not one of this scope.
  public func host(
    _ scope: Scope, unknown: UnknownContent = .reject, log: FragmentLog,
    snapshotEvery: Int = 10_000
  ) async throws {
    precondition(
      !engine.keepsHistory(of: scope),
      "Scope \(scope.name) is hosted with a log already: a history has one log.")
    let log = ScopeLog(log.records)
    let history = try log.history()
    let keeper = keeper(of: scope, in: log, snapshotEvery: snapshotEvery)
    let now = try engine.host(scope, unknown: unknown, history: history) { keeper.keep($0) }
    if history == nil { try await log.snapshot(now) }
    // The scope may have been removed in the meantime.
    guard engine.keepsHistory(of: scope) else { return try await log.records.close() }
    offer(scope)
    logs[ObjectIdentifier(scope)] = (log, keeper)
    keeper.begin()
  }

  private func keeper(
    of scope: Scope, in log: ScopeLog, snapshotEvery: Int
  ) -> RecordKeeper<ScopeRecord> {
    RecordKeeper(
      ticker: ticker, completions: ActorCompletions(on: actor),
      tail: log.records.opening.tailCount, snapshotEvery: snapshotEvery,
      owner: .init(
        append: { record throws(LogError) in try log.append(record, date: Date()) },
        stored: { [weak self] in self?.engine.stored($0, of: scope) },
        snapshot: { [weak self] in
          guard let history = self?.engine.history(of: scope) else { return nil }
          let last = log.records.lastSequence
          return RecordSnapshot { log.snapshot(history, at: last, then: $0) }
        },
        note: { [weak self] text in
          self?.onDiagnostic.fire(Diagnostic(.error, .storage, scope: scope.name, text))
        }))
  }
}
