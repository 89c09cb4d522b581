import Foundation
import Jetstream

/// A keeper of a server's records.
typealias ScopeRecordKeeper = RecordKeeper<ScopeRecord, StorageError>

/// Hosting scopes with a stored history.
extension EngineRunner {
  /// Hosts content with its history, until ``takeHistory(of:)``.
  ///
  /// - Parameter isRestored: true if the content has been restored from the history already.
  /// - Returns: false if the content was removed in the meantime; the lease is released then.
  /// - Throws: `ScopeError` or `StorageError`. The content is not hosted then.
  func host(
    _ content: any Hostable, as name: String, unknown: UnknownContent, _ leased: LeasedHistory,
    isRestored: Bool = false, snapshotEvery: Int
  ) async throws -> Bool {
    let key = ObjectIdentifier(content)
    let keeper = keeper(of: content, as: name, leased, snapshotEvery: snapshotEvery)
    let new: ScopeHistory?
    do throws(ScopeError) {
      new = try engine.host(
        content, unknown: unknown, history: leased.history, isRestored: isRestored
      ) { keeper.keep($0) }
    } catch {
      // It may have a part of the history.
      engine.remove(content, .notNow("The scope could not be hosted", retryAfter: .zero))
      throw error
    }
    let history = HostedHistory(of: content, leased.lease, keeper)
    histories[key] = history
    do throws(StorageError) {
      if let new {
        let written = try await leased.lease.writeSnapshot(at: leased.last) { new.content }
        if let report = written.report {
          owner.report(Diagnostic(.error, .storage, scope: name, report))
        }
      }
    } catch {
      // Without its first state a history cannot go on: the app hosts the scope once more.
      if histories[key] === history {
        histories[key] = nil
        engine.remove(content, .notNow("The scope could not be hosted", retryAfter: .zero))
      }
      history.closed(.failure(error))
      throw error
    }
    if histories[key] === history, engine.keepsHistory(of: content) {
      history.begin()
      return true
    }
    let outcome = await closeEarly(history)
    // It is still there if the server was stopped: hosting the content again has waited for this.
    if histories[key] === history { histories[key] = nil }
    history.closed(outcome)
    try outcome.get()
    return false
  }

  /// Writes and releases a history that has its first state, and whose content was removed meanwhile.
  private func closeEarly(_ history: HostedHistory) async -> Result<Void, StorageError> {
    do throws(StorageError) {
      return .success(try await close(history))
    } catch {
      return .failure(error)
    }
  }

  /// The content that has a history which is not closed, or is being read.
  var storedScopes: [any Hostable] {
    histories.values.map(\.content) + readings.compactMap(\.content)
  }

  /// Stops hosting content: its clients are sent `error`, and its history is written and released.
  func remove(_ content: any Hostable, telling error: WireError) async throws {
    engine.remove(content, error)
    try await withdrawReading(of: content)
    guard let history = takeHistory(of: ObjectIdentifier(content)) else { return }
    do throws(StorageError) {
      try await close(history) { _ in false }
    } catch {
      throw error.cause
    }
  }

  /// Takes the history of content that the engine no longer hosts, to be closed: another one may begin from now on.
  func takeHistory(of content: ObjectIdentifier) -> HostedHistory? {
    histories.removeValue(forKey: content)
  }

  /// Writes and releases a history that was taken. One whose first state is still being written is closed by
  /// ``host(_:as:unknown:_:isRestored:snapshotEvery:)`` behind that; this waits for it.
  ///
  /// - Parameter isPatient: called after a failure; returns true to try once more.
  func close(
    _ history: HostedHistory, tryingAgain isPatient: (StorageError) async -> Bool
  ) async throws(StorageError) {
    if history.isBeginning { return try await history.waitUntilClosed() }
    while true {
      do throws(StorageError) {
        return try await close(history)
      } catch {
        guard await isPatient(error) else { throw error }
      }
    }
  }

  /// Returns once no history is being read or beginning in a log whose content is not hosted any more: the caller that has
  /// hosted it closes the log.
  func finishBeginnings(in log: FragmentLog) async {
    // Its error is one of that caller.
    while let reading = readings.first(where: { $0.isWithdrawn && $0.log === log }) {
      try? await reading.waitUntilClosed()
    }
    while let history = histories.values.first(where: {
      $0.isBeginning && ($0.lease as? LogLease)?.log === log
        && !engine.keepsHistory(of: $0.content)
    }) {
      // Its error is one of that caller.
      try? await history.waitUntilClosed()
    }
  }

  /// Lets go of the history of content that the engine no longer hosts, once its records are written or cannot be. Its
  /// lease is not released: the app may host the scope with the same log. A history that begins is left alone.
  func leaveHistory(of content: any Hostable) async {
    let key = ObjectIdentifier(content)
    guard let history = histories[key], !history.isBeginning, !engine.keepsHistory(of: content)
    else { return }
    await withCheckedContinuation { done in history.keeper.finish { _ in done.resume() } }
    if histories[key] === history { histories[key] = nil }
  }

  private func close(_ history: HostedHistory) async throws(StorageError) {
    let outcome = await withCheckedContinuation { done in
      history.keeper.finish { done.resume(returning: $0) }
    }
    // A lost lease was reported by the keeper, and nothing of it can be written any more.
    if case .failure(let error) = outcome, error.remedy != .none { throw error }
    try await history.lease.release()
  }

  private func keeper(
    of content: any Hostable, as name: String, _ leased: LeasedHistory, snapshotEvery: Int
  ) -> ScopeRecordKeeper {
    let lease = leased.lease
    // While a history that was removed is still being written, the content may be hosted with the next one, or without.
    weak var keeper: ScopeRecordKeeper?
    let isCurrent = { [weak self] in
      guard let self, let keeper, engine.keepsHistory(of: content) else { return false }
      return histories[ObjectIdentifier(content)]?.keeper === keeper
    }
    var owner = ScopeRecordKeeper.Owner(
      encode: { $0.content(date: Date()) }, mustOutliveProcess: \.mustOutliveProcess,
      append: {
        lease.append(
          $0.records, after: $0.expected, outlivesProcess: $0.outlivesProcess, then: $1)
      },
      stored: { [weak self] in if isCurrent() { self?.engine.stored($0, of: content) } },
      snapshot: { [weak self] in
        guard isCurrent(), let history = self?.engine.history(of: content) else { return nil }
        return RecordSnapshot {
          lease.writeSnapshot(at: $0, state: { history.content }, then: $1)
        }
      },
      note: { [weak self] text in
        self?.owner.report(Diagnostic(.error, .storage, scope: name, text))
      })
    owner.prepareSnapshot = { [weak self] in
      if isCurrent() { self?.engine.prepareHistory(of: content, then: $0) }
    }
    owner.stalled = { [weak self] _ in if isCurrent() { self?.engine.stalled(content) } }
    owner.ended = { [weak self] _ in if isCurrent() { self?.lost(content, named: name) } }
    let made = ScopeRecordKeeper(
      ticker: ticker, completions: ActorCompletions(on: actor), after: leased.last,
      tail: leased.history?.records.count ?? 0, snapshotEvery: snapshotEvery, owner: owner)
    keeper = made
    return made
  }

  /// Stops hosting content whose history this server may not write any more. Its clients come back: to the server that
  /// writes it now, or to this one once it has the lease again. Does nothing for content that is being closed: another scope
  /// may have its name by now.
  private func lost(_ content: any Hostable, named name: String) {
    let error = WireError.notNow("The scope is not served here any more", retryAfter: .seconds(1))
    if engine.openScope(named: name) === content {
      engine.closeScope(name, telling: error)
    } else if engine.keepsHistory(of: content) {
      histories[ObjectIdentifier(content)] = nil
      owner.lost(content)
      engine.remove(content, error)
    }
  }
}

extension ScopeLease {
  /// Writes a snapshot, and returns when it counts.
  @discardableResult
  package func writeSnapshot(
    at sequence: Int, state: @escaping @Sendable () -> [RecordContent]
  ) async throws(StorageError) -> WrittenSnapshot<StorageError> {
    try await withCheckedContinuation { done in
      writeSnapshot(at: sequence, state: state) { done.resume(returning: $0) }
    }.get()
  }
}

extension Diagnostic {
  /// Makes the diagnostic of a scope whose log may have lost its end, such as in a power failure.
  static func uncertainEnd(of name: String) -> Diagnostic {
    Diagnostic(
      .warning, .storage, scope: name,
      "goes on in a new epoch, since the end of its log may be lost: the machine may have stopped "
        + "before all of it was synced")
  }
}
