import Foundation
import Jetstream

/// Hosting scopes with a history on disk.
extension Server {
  /// Offers `scope` to clients under its name, with its history in a log: clients are told nothing before it is durable,
  /// and everything that they were told is there after a crash. The server applies each client's change sets once,
  /// however often client and server are killed.
  ///
  /// The log's `LogConfiguration` decides what durable means: with a durability other than each change set, a crash of the
  /// machine may undo changes that clients were told. After a backup has replaced a log that had gone on since, call
  /// `FragmentLog.beginEpoch()` first.
  ///
  /// If the log has a history, the scope gets its state; otherwise the history begins with the scope's content. The log is
  /// read before this returns.
  ///
  /// If the disk fails, ``onDiagnostic`` fires and the server tries again every second; until an attempt succeeds, clients
  /// are told nothing new of the scope, and nothing is lost.
  ///
  /// - Parameters:
  ///   - scope: the scope to offer to clients.
  ///   - unknown: the treatment of properties and classes that the scope does not know.
  ///   - log: the log of this scope alone, in this process alone.
  ///   - snapshotEvery: the number of records after which a snapshot is written; 0 for never. The state is copied on the
  ///     server's actor, in O(n) for n models, a part at a time: others get their turn between two parts. The rest runs
  ///     on queues of the log.
  /// - Throws: `LogError`; or `ScopeError` if the history is not one of this scope, or if a class no longer accepts one of
  ///   its values.
  public func host(
    _ scope: Scope, unknown: UnknownContent = .reject, log: FragmentLog,
    snapshotEvery: Int = 10_000
  ) async throws {
    try await host(
      scope, as: scope.name, unknown: unknown, log: log, snapshotEvery: snapshotEvery)
  }

  func host(
    _ content: any Hostable, as name: String, unknown: UnknownContent, log: FragmentLog,
    snapshotEvery: Int
  ) async throws {
    precondition(
      !engine.keepsHistory(of: content),
      "Scope \(name) is hosted with a log already: a history has one log.")
    let use = log
    let log = ScopeLog(log.records)
    let history = try log.history()
    use.claim(.server)
    let keeper = keeper(of: content, as: name, in: log, snapshotEvery: snapshotEvery)
    let now = try engine.host(content, unknown: unknown, history: history) { keeper.keep($0) }
    if history == nil { try await log.snapshot(now) }
    // The scope may have been removed in the meantime.
    guard engine.keepsHistory(of: content) else { return try await log.records.close() }
    offer(content, as: name)
    logs[ObjectIdentifier(content)] = (log, keeper)
    keeper.begin()
  }

  private func keeper(
    of content: any Hostable, as name: String, in log: ScopeLog, snapshotEvery: Int
  ) -> RecordKeeper<ScopeRecord> {
    RecordKeeper(
      ticker: ticker, completions: ActorCompletions(on: actor),
      tail: log.records.opening.tailCount, snapshotEvery: snapshotEvery,
      owner: .init(
        append: { record throws(LogError) in try log.append(record, date: Date()) },
        stored: { [weak self] in self?.engine.stored($0, of: content) },
        prepareSnapshot: { [weak self] in self?.engine.prepareHistory(of: content, then: $0) },
        snapshot: { [weak self] in
          guard let history = self?.engine.history(of: content) else { return nil }
          let last = log.records.lastSequence
          return RecordSnapshot { log.snapshot(history, at: last, then: $0) }
        },
        note: { [weak self] text in
          self?.onDiagnostic.fire(Diagnostic(.error, .storage, scope: name, text))
        }))
  }
}
