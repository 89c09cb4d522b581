import Jetstream

/// Scopes that are opened when clients fetch them.
extension Server {
  /// Opens scopes when clients fetch them, each with its history in a directory, and closes those that are idle. Call it
  /// before the server is used. A server that stops begins to use the directory once it has closed the last one's
  /// scopes.
  ///
  /// ```swift
  /// let directory = try ScopeDirectory("/var/lib/notes")
  /// server.openScopes(in: directory) { request in
  ///   guard try await documents.contains(request.name) else {
  ///     throw WireError.notThere("There is no document \(request.name)")
  ///   }
  ///   return .models(Scope(name: request.name, root: Document()))
  /// }
  /// ```
  ///
  /// The app is asked once for each opening, however many clients wait for it; so it is not the place to decide which
  /// client may have the scope. An idle scope, which no client with a connection has, is written, closed and released
  /// after ``Configuration/idleScopeTime``, or earlier when more than ``Configuration/maximumOpenScopes`` are fetched. Clients
  /// notice nothing of that: those that come back to a scope that was closed fetch it again by themselves.
  ///
  /// A fetch waits for at most ``Configuration/scopeOpeningTime``, and is then refused with a retry time, as it is if the
  /// history cannot be read: ``onDiagnostic`` tells why. When no fetch waits any more, the task in which the app is asked
  /// is cancelled. Until it has ended, it keeps its place among the scopes that may be open; ``stop()`` and
  /// ``remove(_:telling:)-(String,_)`` wait for it, for no longer than that time.
  ///
  /// Scopes that the app hosts itself, and ``resolveScope``, take precedence. The scopes live on the server's actor, also
  /// with ``Configuration/scopeLoops``.
  ///
  /// - Parameters:
  ///   - directory: The directory, used by this server alone.
  ///   - snapshotEvery: The number of records after which a snapshot of a scope is written; 0 for never.
  ///   - resolve: Returns the content of the scope that a client has fetched. It is called on the server's actor. Clients
  ///     are refused with a `WireError` that it throws; any other error is reported, and they ask again later. It must not
  ///     wait for ``stop()``, for ``remove(_:telling:)-(String,_)`` of the same name or, while the server stops, of
  ///     any: all wait for it.
  public func openScopes(
    in directory: ScopeDirectory, snapshotEvery: Int = 10_000,
    resolve: @escaping (ScopeOpening) async throws -> ScopeSource
  ) {
    openScopes(kept: directory, snapshotEvery: snapshotEvery, resolve: resolve)
  }

  /// Opens scopes when clients fetch them, each with its history in a storage.
  package func openScopes(
    kept storage: any ScopeStorage, snapshotEvery: Int = 10_000,
    resolve: @escaping (ScopeOpening) async throws -> ScopeSource
  ) {
    use(
      ScopeOpener(
        storage, snapshotEvery: snapshotEvery, runner: runner,
        report: { [weak self] in self?.onDiagnostic.fire($0) }, resolve: resolve))
  }

  /// The number of scopes that are open of those that are opened on demand, with those that are being opened or closed.
  public var openScopeCount: Int { runner.engine.openScopeCount }
}
