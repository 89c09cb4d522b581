import Foundation
import Jetstream

/// Hosting scopes without their model classes.
extension Server {
  /// Offers a scope to clients under a name, as rows of the classes of a schema, without a history on disk. It begins with
  /// a new root, whose properties have their defaults.
  ///
  /// Clients of every kind are served as by a scope of model objects. The server itself cannot look into the content, nor
  /// change it, and what the schema does not know is rejected.
  ///
  /// - Parameters:
  ///   - name: The name by which clients fetch the scope, unless ``resolveScope`` is set. Traps if
  ///     another scope is hosted under it.
  ///   - schema: The classes of the scope.
  public func host(_ name: String, schema: ScopeSchema) {
    requireFree(name)
    if let shard = offers.nextShard(of: shards) {
      offers[name] = .shard(shard)
      return shard.perform { $0.host(name, schema) }
    }
    let content = RowsContent(name: name, schema)
    offers[name] = .here(content, unknown: .reject)
    runner.engine.host(content)
  }

  /// Offers a scope to clients under a name, as rows of the classes of a schema, with its history in a log, in the manner
  /// of ``host(_:unknown:log:snapshotEvery:)``.
  ///
  /// If the log has a history, the scope begins with its state, which may be that of a server that had the model classes.
  ///
  /// - Parameters:
  ///   - name: The name by which clients fetch the scope, unless ``resolveScope`` is set. Traps if
  ///     another scope is hosted under it.
  ///   - schema: The classes of the scope.
  ///   - log: The log of this scope alone, in this process alone.
  ///   - snapshotEvery: The number of records after which a snapshot is written; 0 for never.
  /// - Throws: `LogError`; or `ScopeError` if the root of the history has another class than that of the schema, or if a
  ///   property cannot hold one of its values.
  public func host(
    _ name: String, schema: ScopeSchema, log: FragmentLog, snapshotEvery: Int = 10_000
  ) async throws {
    let left = await shardThatHasLeft(name)
    requireFree(name, leftBy: left)
    offers.begin(name)
    defer { offers.end(name) }
    guard let shard = offers.nextShard(of: shards) else {
      return try await host(as: name, unknown: .reject, log: log, leftBy: left) {
        try await runner.host(name, schema, log: log, snapshotEvery: snapshotEvery)
      }
    }
    await shard.catchUp()
    let isHosted = try await shard.host(name, schema, log: log, snapshotEvery: snapshotEvery)
    guard isHosted else { return }
    offers[name] = .shard(shard)
    if let left, left !== shard { left.perform { $0.forget(name) } }
  }

  /// Returns the shard that has had the scope of a name, and does not serve it any more.
  func shardThatHasLeft(_ name: String) async -> ServerShard? {
    guard case .shard(let shard)? = offers[name], await shard.hasLeft(name) else { return nil }
    return shard
  }

  /// Traps if no scope may be hosted under a name.
  private func requireFree(_ name: String, leftBy left: ServerShard? = nil) {
    precondition(offers.isFree(name, leftBy: left), Self.taken(name))
  }

  /// Traps if another scope than this one is hosted under a name. An app that chooses the scopes itself may have several
  /// with one name.
  func requireFree(_ name: String, for content: any Hostable, leftBy left: ServerShard? = nil) {
    precondition(
      resolveScope != nil || offers.isFree(name, for: content, leftBy: left), Self.taken(name))
  }

  private static func taken(_ name: String) -> String {
    "A scope is hosted as \(name) already: remove it before another one is hosted."
  }

  /// Stops hosting the scope that clients find under a name, in the manner of ``remove(_:telling:)-(Scope,_)``. Does
  /// nothing if there is none. A scope that is being opened is closed once it is open, or is given up if the app has not
  /// named it after ``Configuration/scopeOpeningTime``.
  ///
  /// - Throws: `LogError` if the log could not be written; the scope is no longer hosted all the same. A scope that was
  ///   opened on demand is closed first, as ``remove(_:telling:)-(Scope,_)`` says.
  public func remove(
    _ name: String, telling error: WireError = .gone("The scope is not served any more")
  ) async throws {
    while offers.isBeginning(name) {
      await withCheckedContinuation { offers.whenHosted(name, $0) }
    }
    guard let offer = offers[name] else {
      try await finishStopping(name)
      return try await close(name, telling: error)
    }
    offers[name] = nil
    switch offer {
    case .here(let content, _): try await runner.remove(content, telling: error)
    case .shard(let shard):
      await shard.catchUp()
      try await shard.remove(name, telling: error)
    }
  }
}
