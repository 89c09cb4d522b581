import Foundation
import Jetstream

/// Hosting scopes with a history on disk.
extension Server {
  /// Offers `scope` to clients under its name, with its history in a log: clients are told nothing before it is durable,
  /// and everything that they were told is there after a crash. The server applies each client's change sets once,
  /// however often client and server are killed.
  ///
  /// The log's `LogConfiguration` decides what durable means. With an interval, clients are told after the sync at its
  /// end: each change set is accepted, and seen by others, up to so much later. Without durability, clients are told of
  /// what is written: a power failure may take it back, and the server begins a new epoch when it hosts the log again.
  ///
  /// After a backup has replaced a log that had gone on since, call `FragmentLog.beginEpoch()` first.
  ///
  /// If the log has a history, the scope gets its state; otherwise the history begins with the scope's content. The log is
  /// read before this returns, on another thread: the server goes on with other scopes. Clients that fetch the scope
  /// meanwhile are told to ask again. If the scope is removed, or the server stopped, before the scope is hosted, it is not
  /// hosted, and the log is closed.
  ///
  /// If the disk fails, ``onDiagnostic`` fires and the server tries again every second; until an attempt succeeds, clients
  /// are told nothing new of the scope, and nothing is lost.
  ///
  /// - Parameters:
  ///   - scope: the scope to offer to clients. Traps if another scope is hosted under its name, unless ``resolveScope`` is
  ///     set.
  ///   - unknown: the treatment of properties and classes that the scope does not know.
  ///   - log: the log of this scope alone, in this process alone.
  ///   - snapshotEvery: the number of records after which a snapshot is written; 0 for never. The state is copied on the
  ///     server's actor, in O(n) for n models, a part at a time: others get their turn between two parts. The rest runs
  ///     on queues of the log.
  /// - Throws: `LogError`; or `ScopeError` if the scope has no root, if the history is not one of this scope, or if a class
  ///   no longer accepts one of its values.
  public func host(
    _ scope: Scope, unknown: UnknownContent = .reject, log: FragmentLog,
    snapshotEvery: Int = 10_000
  ) async throws {
    let name = scope.name
    let left = await shardThatHasLeft(name)
    requireFree(name, for: scope, leftBy: left)
    try await host(as: name, unknown: unknown, log: log, leftBy: left) {
      do {
        return try await runner.host(
          scope, as: name, unknown: unknown, log: log, snapshotEvery: snapshotEvery) ? scope : nil
      } catch {
        // It may still be hosted without a history.
        if !runner.engine.isHosted(scope) { offers.close(scope) }
        throw error
      }
    }
  }

  /// Hosts content with a log under a name.
  ///
  /// - Parameters:
  ///   - left: the shard that does not serve the scope any more that it has under the name.
  ///   - begin: hosts the content, and returns it; nil if it was removed, or the server was stopped, in the meantime.
  func host(
    as name: String, unknown: UnknownContent, log: FragmentLog, leftBy left: ServerShard?,
    _ begin: () async throws -> (any Hostable)?
  ) async throws {
    offers.begin(name)
    defer { offers.end(name) }
    // Under the name, another scope may have been served until its log was closed or the server stopped.
    if case .here(let old, _)? = offers[name], offers.isClosed(old) {
      await runner.leaveHistory(of: old)
    }
    // It has no place if the server was stopped while the first state of its history was written.
    await runner.finishBeginnings(in: log)
    do {
      guard let content = try await begin() else { return }
      // Another scope may have been hosted meanwhile.
      requireFree(name, for: content, leftBy: left)
      offers[name] = .here(content, unknown: unknown)
      left?.perform { $0.forget(name) }
    } catch {
      throw (error as? StorageError)?.cause ?? error
    }
  }
}
