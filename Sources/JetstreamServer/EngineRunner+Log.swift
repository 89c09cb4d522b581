import Foundation
import Jetstream

/// Hosting scopes with a history on disk.
extension EngineRunner {
  /// Hosts content with its history in a log, which is read before this returns.
  ///
  /// - Returns: false if the content was removed in the meantime.
  func host(
    _ content: any Hostable, as name: String, unknown: UnknownContent, log: FragmentLog,
    snapshotEvery: Int
  ) async throws -> Bool {
    try await host(
      content, as: name, unknown: unknown, log: log, history: ScopeLog(log.records).history(),
      snapshotEvery: snapshotEvery)
  }

  /// Hosts content whose history was read from a log.
  ///
  /// - Parameter isRestored: true if the content has been restored from the history already.
  /// - Returns: false if the content was removed in the meantime.
  func host(
    _ content: any Hostable, as name: String, unknown: UnknownContent, log: FragmentLog,
    history: ScopeHistory?, isRestored: Bool = false, snapshotEvery: Int
  ) async throws -> Bool {
    log.claim(.server)
    let log = ScopeLog(log.records)
    let keeper = keeper(of: content, as: name, in: log, snapshotEvery: snapshotEvery)
    let new = try engine.host(
      content, unknown: unknown, history: history, isRestored: isRestored
    ) { keeper.keep($0) }
    if let new { try await log.snapshot(new) }
    guard engine.keepsHistory(of: content) else {
      try await log.records.close()
      return false
    }
    logs[ObjectIdentifier(content)] = (log, keeper)
    keeper.begin()
    return true
  }

  /// Stops hosting content: its clients are sent `error`, and its log is written and closed.
  func remove(_ content: any Hostable, telling error: WireError) async throws {
    engine.remove(content, error)
    try await closeLog(of: ObjectIdentifier(content))
  }

  /// Writes and closes the log of content that the engine no longer hosts.
  func closeLog(of content: ObjectIdentifier) async throws {
    guard let (log, keeper) = logs.removeValue(forKey: content) else { return }
    let unwritten = Result { try keeper.finish() }
    try await log.records.close()
    try unwritten.get()
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
          self?.owner.report(Diagnostic(.error, .storage, scope: name, text))
        }))
  }
}
