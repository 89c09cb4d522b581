/// The sync state of scopes.
extension Client {
  /// Returns the sync state of a scope; nil if it is not synced.
  public func syncState(of scope: Scope) -> SyncState? {
    tracking.read(\.trackedSyncStates)
    return engine.state(of: scope)
  }

  /// Returns true if the model has local changes that are not confirmed, also those that are in no change set yet.
  ///
  /// Cost: O(n) for n properties of the model. If its class has a dictionary, O(n) for n properties of all models of the
  /// scope that have such changes.
  public func isPending(_ model: ModelObject) -> Bool {
    tracking.readPending(in: model.scope)
    return engine.isPending(model)
  }

  /// Returns the sync states of a scope as a sequence: the current state, then each new one.
  ///
  /// ```swift
  /// for await state in client.syncStates(of: scope) {
  ///   badge.text = state.pendingCount == 0 ? "" : "\(state.pendingCount)"
  /// }
  /// ```
  ///
  /// A slow loop skips all states but the latest. The loop ends when the scope is no longer synced, when the client
  /// is released or when its task is cancelled. It has to run in the client's isolation domain.
  public func syncStates(of scope: Scope) -> some AsyncSequence<SyncState, Never> {
    SyncStates(client: self, scope: scope)
  }

  /// Returns when the server has decided everything that was changed of a scope until now. A
  /// rejected change set is decided, too: it is in ``Scope/conflicts``. So is an accepted one that is not confirmed here,
  /// because the scope's mode holds back other clients' change sets that come before it. While a scope is paused in which
  /// nothing can be sent, this waits for ``Scope/resumeIncoming()``.
  ///
  /// - Throws: ``SyncError/notFetched(scope:)`` if the scope is not synced, ``SyncError/sessionClosed(reason:)`` if that
  ///   ends before, ``SyncError/cancelled`` if the task is cancelled, and the error of ``connect(params:)`` once the client
  ///   has stopped connecting, until the app connects again.
  public func waitForUpload(
    of scope: Scope
  ) async throws(SyncError) {
    guard engine.replica(of: scope) != nil else { throw .notFetched(scope: scope.name) }
    scope.flush()
    let last = engine.lastNumber(of: scope)
    try await wait(for: scope) { $0.isDecided(scope, upTo: last) }
  }

  /// Waits until there is a connection and the scope has everything that the server had when the connection was
  /// made, or when the client last asked for changes: ``SyncState/isUpToDate``.
  ///
  /// In a mode that closes the connection between syncs, such as ``SyncMode/manual``, that is so at the end of a sync: this
  /// waits for the running or the next one.
  ///
  /// - Throws: ``SyncError/notFetched(scope:)`` if the scope is not synced, ``SyncError/sessionClosed(reason:)`` if the
  ///   syncing of the scope ends before, ``SyncError/cancelled`` if the task is cancelled, and the error of
  ///   ``connect(params:)`` once the client has stopped connecting, until the app connects again.
  public func waitForDownload(
    of scope: Scope
  ) async throws(SyncError) {
    guard engine.replica(of: scope) != nil else { throw .notFetched(scope: scope.name) }
    try await wait(for: scope) { $0.state(of: scope)?.isUpToDate == true }
  }

  /// Waits until `isDone` returns true, which is asked whenever the sync state of the scope changes: a state may be over
  /// before the task that waits has its turn, as when the client closes its connection at the end of a sync.
  private func wait(
    for scope: Scope, until isDone: @escaping (ClientEngine) -> Bool
  ) async throws(SyncError) {
    let outcome = SyncOutcome()
    let check = { (engine: ClientEngine) in
      if isDone(engine) {
        outcome.put(.success(()))
      } else if let error = engine.connection.finalError {
        outcome.put(.failure(error))
      } else if engine.replica(of: scope) == nil {
        outcome.put(.failure(.sessionClosed(reason: "the scope is not synced any more")))
      }
    }
    check(engine)
    let token = onSyncStateChange.listen { [weak engine] changed in
      if changed === scope, let engine { check(engine) }
    }
    defer { token.cancel() }
    let result = await outcome.value
    try result.get()
  }

  /// The sync states of one scope; see ``Client/syncStates(of:)``.
  struct SyncStates: AsyncSequence {
    private weak var client: Client?
    private weak var scope: Scope?

    fileprivate init(client: Client, scope: Scope) {
      self.client = client
      self.scope = scope
    }

    /// Creates an iterator that begins with the current state.
    func makeAsyncIterator() -> Iterator {
      let feed = LatestFeed<SyncState>()
      guard let client, let scope, let state = client.syncState(of: scope) else {
        feed.stop()
        return Iterator(feed: feed)
      }
      feed.put(state)
      feed.start { end in
        client.onSyncStateChange.listen { [weak feed, weak scope, weak client] changed in
          guard changed === scope else { return }
          if let state = client?.engine.state(of: changed) {
            feed?.put(state)
          } else {
            feed?.stop()
          }
          withExtendedLifetime(end) {}
        }
      }
      return Iterator(feed: feed)
    }

    /// Iterates over the states of a scope.
    struct Iterator: AsyncIteratorProtocol {
      fileprivate let feed: LatestFeed<SyncState>

      /// Returns the next state; nil when the scope is no longer synced or the task is cancelled.
      mutating func next(isolation: isolated (any Actor)? = #isolation) async -> SyncState? {
        await feed.next()
      }

      /// Returns the next state, in the caller's isolation domain.
      mutating func next() async -> SyncState? { await next(isolation: #isolation) }
    }
  }
}

@available(*, unavailable)
extension Client.SyncStates: Sendable {}
