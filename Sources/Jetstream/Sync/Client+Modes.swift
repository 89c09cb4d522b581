/// Sync modes, syncs on demand and the permission to use the network.
extension Client {
  /// Returns the sync mode of a scope; nil if it is not synced.
  package func mode(of scope: Scope) -> SyncMode? { engine.mode(of: scope) }

  /// Changes the sync mode of a scope.
  ///
  /// Pending changes are sent, and missed ones applied, in order, as soon as the new mode allows it. Once this
  /// method has returned, remote changes that the new mode holds back are no longer applied.
  ///
  /// - Throws: ``SyncError/notFetched(scope:)`` if the scope is not synced.
  public func setMode(_ mode: SyncMode, of scope: Scope) throws(SyncError) {
    guard engine.setMode(mode, of: scope, now: ticker.now) else {
      throw .notFetched(scope: scope.name)
    }
    scheduleTimer()
  }

  /// Sends all changes made in `scope` until now, and applies all changes that the server has by then, in any mode
  /// and whatever ``permission`` says. Returns when both are done. Properties whose
  /// ``PropertyOptions/minSyncInterval(_:)`` has not passed are sent, too.
  ///
  /// Without a scope, syncs all scopes at the same time, and throws the first error once all of these have ended. Returns
  /// at once if there are none.
  ///
  /// If there is no connection, the client makes one attempt to connect, and if the server has refused the scope for now,
  /// it asks once more, without waiting any longer. A cancelled task stops waiting; changes that were not sent by then stay
  /// pending.
  ///
  /// While the app holds back what comes in, with ``Scope/pauseIncoming()``, this waits until it has called
  /// ``Scope/resumeIncoming()``.
  ///
  /// With a server of version 1 of the protocol, applies what the server has sent until now.
  ///
  /// - Throws: ``SyncError/connectionFailed(reason:)`` if there is no connection or it is lost meanwhile,
  ///   ``SyncError/notFetched(scope:)`` if the scope is not synced, ``SyncError/notConnected`` before
  ///   ``connect(params:)``, ``SyncError/sessionClosed(reason:)`` if the syncing of the scope ends,
  ///   ``SyncError/scopeDenied(scope:error:)`` if the server refuses the scope for now, and ``SyncError/cancelled`` if the
  ///   task is cancelled.
  public func sync(
    _ scope: Scope? = nil
  ) async throws(SyncError) {
    try await exchange(scope.map { [$0] } ?? scopes)
  }

  private func exchange(
    _ scopes: [Scope]
  ) async throws(SyncError) {
    if scopes.isEmpty { return }
    let waiters = Waiters()
    let outcome = SyncOutcome()
    begin(scopes, waiters) { outcome.put($0) }
    let home = HomeReference(self, on: actor)
    // The awaited operation may run outside the actor, so it must not capture the client.
    let result = await withTaskCancellationHandler {
      await outcome.value
    } onCancel: { [waiters = HomeReference(waiters, on: actor)] in
      Task {
        guard let numbers = await waiters.perform({ $0.numbers }) else { return }
        await home.perform { client in
          for number in numbers { client.engine.cancelSync(number, now: client.ticker.now) }
        }
      }
    }
    try result.get()
  }

  /// Starts to sync scopes. Calls `completion` with the first error once all syncs have ended.
  private func begin(
    _ scopes: [Scope], _ waiters: Waiters,
    completion: @escaping (Result<Void, SyncError>) -> Void
  ) {
    var left = scopes.count
    var first: Result<Void, SyncError> = .success(())
    for scope in scopes {
      let number = engine.sync(scope, now: ticker.now) { result in
        if case .success = first { first = result }
        left -= 1
        if left == 0 { completion(first) }
      }
      if let number { waiters.numbers.append(number) }
    }
    if Task.isCancelled { cancel(waiters) }
    scheduleTimer()
  }

  private func cancel(_ waiters: Waiters) {
    for number in waiters.numbers { engine.cancelSync(number, now: ticker.now) }
  }

  /// Decides whether the client may use the network now. The client asks before it connects, sends or polls on its
  /// own; if this is nil, it may always do so.
  ///
  /// ```swift
  /// client.permission = { _ in battery.isLow ? .later(.seconds(600)) : .granted }
  /// ```
  ///
  /// Nothing is lost by a refusal: changes stay pending, and ``SyncState/stall`` is ``SyncState/Stall/deferred``.
  /// Called on the client's actor, often; it should return quickly.
  public var permission: ((SyncActivity) -> SyncPermission)? {
    get { engine.configuration.permission }
    set {
      engine.configuration.permission = newValue
      permissionDidChange()
    }
  }

  /// Makes the client ask ``permission`` again after a refusal. Call this when the app's answer may have changed.
  public func permissionDidChange() {
    engine.reconsider(now: ticker.now)
    scheduleTimer()
  }

  private final class Waiters {
    var numbers: [Int] = []
  }
}
