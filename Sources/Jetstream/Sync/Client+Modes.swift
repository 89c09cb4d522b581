/// When scopes are synced.
extension Client {
  /// When what happens to a scope is sent and taken in; nil if it is not synced.
  public func mode(of scope: Scope) -> SyncMode? { engine.mode(of: scope) }

  /// Changes when what happens to a scope is sent and taken in.
  ///
  /// What is pending, and what was missed, goes out and comes in once, in order, when the new mode lets it.
  /// When this returns, no change of others comes in that the new mode does not let in.
  ///
  /// - Throws: ``SyncError/notFetched(scope:)`` if the scope is not synced.
  public func setMode(_ mode: SyncMode, of scope: Scope) throws(SyncError) {
    guard engine.setMode(mode, of: scope, now: ticker.now) else { throw .notFetched(scope: scope.name) }
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
  /// - Throws: ``SyncError/connectionFailed(reason:)`` if there is no connection or it is lost meanwhile,
  ///   ``SyncError/notFetched(scope:)`` if the scope is not synced, ``SyncError/notConnected`` before
  ///   ``connect(params:isolation:)``, ``SyncError/sessionClosed(reason:)`` if that ends, and ``SyncError/cancelled``.
  public func sync(
    _ scope: Scope, isolation: isolated (any Actor)? = #isolation
  ) async throws(SyncError) {
    try await exchange([scope])
  }

  /// Does the same for all scopes, at the same time; nothing if there are none.
  ///
  /// - Throws: the first error, when all are over; see ``sync(_:isolation:)``.
  public func sync(isolation: isolated (any Actor)? = #isolation) async throws(SyncError) {
    try await exchange(scopes)
  }

  private func exchange(
    _ scopes: [Scope], isolation: isolated (any Actor)? = #isolation
  ) async throws(SyncError) {
    if scopes.isEmpty { return }
    let waiters = Waiters()
    let outcome = SyncOutcome()
    begin(scopes, waiters) { outcome.put($0) }
    let home = HomeReference(self, on: actor)
    // What is awaited may run anywhere: it has nothing of the client's.
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

  /// Syncs scopes; `completion` gets the first error, when all are over.
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

  private final class Waiters {
    var numbers: [Int] = []
  }
}
