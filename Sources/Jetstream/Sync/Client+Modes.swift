/// When scopes are synced.
extension Client {
  /// When what happens to a scope is sent and taken in; nil if it is not synced.
  public func mode(of scope: Scope) -> SyncMode? { engine.mode(of: scope) }

  /// Changes when what happens to a scope is sent and taken in.
  ///
  /// What is pending, and what was missed, goes out and comes in once, in order, when the new mode lets it.
  /// When this returns, no change of others comes in that the new mode does not let in.
  ///
  /// - Throws: ``SyncError/notFetched(_:)`` if the scope is not synced.
  public func setMode(_ mode: SyncMode, of scope: Scope) throws(SyncError) {
    guard engine.setMode(mode, of: scope, now: ticker.now) else { throw .notFetched(scope.name) }
    scheduleTimer()
  }

  /// Sends all that was changed in `scope` until now, and takes in all that the server has by then, in any
  /// mode and whatever ``permission`` says. Returns when both are done.
  ///
  /// If there is no connection, one attempt is made to get one. A task that is cancelled stops waiting;
  /// what was not sent by then stays pending.
  ///
  /// With a server of version 1 of the protocol, what it has sent until now is taken in.
  ///
  /// - Throws: ``SyncError/connectionFailed(_:)`` if there is no connection or it is lost meanwhile,
  ///   ``SyncError/notFetched(_:)`` if the scope is not synced, ``SyncError/notConnected`` before
  ///   ``connect(params:)``, ``SyncError/sessionClosed(_:)`` if that ends, and ``SyncError/cancelled``.
  public func sync(
    _ scope: Scope, isolation: isolated (any Actor)? = #isolation
  ) async throws(SyncError) {
    let waiter = Waiter()
    let home = HomeReference(self, on: actor)
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        waiter.number = engine.sync(scope, now: ticker.now) { continuation.resume(returning: $0) }
        if Task.isCancelled, let number = waiter.number {
          engine.cancelSync(number, now: ticker.now)
        }
        scheduleTimer()
      }
    } onCancel: { [waiter = HomeReference(waiter, on: actor)] in
      Task {
        guard let number = await waiter.perform({ $0.number }) ?? nil else { return }
        await home.perform { $0.engine.cancelSync(number, now: $0.ticker.now) }
      }
    }
    try result.get()
  }

  /// Does the same for all scopes, at the same time.
  ///
  /// - Throws: the first error, when all are over; see ``sync(_:)``.
  public func sync(isolation: isolated (any Actor)? = #isolation) async throws(SyncError) {
    let all = scopes
    if all.isEmpty { return }
    let result: Result<Void, SyncError> = await withCheckedContinuation { continuation in
      var left = all.count
      var first: Result<Void, SyncError> = .success(())
      for scope in all {
        engine.sync(scope, now: ticker.now) { result in
          if case .success = first { first = result }
          left -= 1
          if left == 0 { continuation.resume(returning: first) }
        }
      }
      scheduleTimer()
    }
    try result.get()
  }

  /// Asked before the client uses the network on its own: before it connects, sends and polls. Without it,
  /// it does so at once.
  ///
  /// ```swift
  /// client.permission = { _ in battery.isLow ? .later(.seconds(600)) : .granted }
  /// ```
  ///
  /// Nothing is lost by a refusal: what was changed stays pending. ``SyncState/Stall/deferred`` tells of it.
  /// Called on the client's actor, often; it should not take long.
  public var permission: ((SyncActivity) -> SyncPermission)? {
    get { engine.configuration.permission }
    set {
      engine.configuration.permission = newValue
      reconsider()
    }
  }

  /// Lets the client ask ``permission`` again, after a refusal; when the app knows that the answer is another
  /// one now.
  public func reconsider() {
    engine.reconsider(now: ticker.now)
    scheduleTimer()
  }

  private final class Waiter {
    var number: Int?
  }
}
