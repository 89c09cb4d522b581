/// The sync state of a scope, for display in an app: its connection, its pending change sets and the reason for a
/// standstill.
public struct SyncState: Sendable, Hashable {
  /// A reason why a scope is not syncing.
  public enum Stall: Sendable, Hashable {
    /// The app has not called `connect`, or the client was closed.
    case notConnected
    /// There is no connection, for this reason; the client is trying again or will try again later.
    case connectionLost(String)
    /// The app has paused incoming changes; see ``Scope/pauseIncoming()``.
    case incomingPaused
    /// The app does not permit the client to use the network now; see ``Client/permission``.
    case deferred
    /// The server has refused the scope for now, for this reason. The client asks again by itself; until the server
    /// grants the scope, changes stay pending.
    case refused(String)
    /// Local changes cannot be written to the log, for this reason. The client tries again every second, and sends
    /// nothing that is not in the log.
    case storage(String)
  }

  /// The scope's sync mode.
  public var mode: SyncMode
  /// The state of the client's connection.
  public var connection: ClientStatus
  /// The number of change sets that are not confirmed. It does not count changes that are in no change set yet; see
  /// ``isSynced``.
  public var pendingCount: Int
  /// True while no change set is pending, and there are local changes that are in no change set yet.
  package var isCollecting = false
  /// The number of pending change sets that the server has decided but that are not confirmed here, because the mode
  /// holds back other clients' change sets that come before them.
  package var decidedCount: Int
  /// The number of pending change sets that have not been sent in this session.
  package var unsentCount: Int
  /// The time since the oldest pending change set was made, or restored from a log, measured when the state was
  /// read. Nil if nothing is pending.
  public var oldestPendingAge: Duration?
  /// The position up to which the replica has applied the server's order. Nil before the first full state, and with
  /// a server of version 1 of the protocol.
  package var position: ScopePosition?
  /// True while there is a connection and the replica has applied everything that the server had when the connection
  /// was made, or when the client last asked for changes.
  public var isUpToDate: Bool
  /// The reason why the scope is not syncing; nil if there is none.
  public var stall: Stall?

  /// The sequence of the last change set in the server's order that the scope contains. Nil before the first full state,
  /// and with a server of version 1 of the protocol.
  public var sequence: Int? { position?.sequence }

  /// True if the scope is up to date and nothing is pending: as far as the client knows, it equals the server's.
  ///
  /// It is false from the first local change on, also while that is in no change set yet: because the
  /// ``Scope/changeInterval`` has not ended, or ``PropertyOptions/minSyncInterval(_:)`` holds the value back.
  /// Observers of the states are told of it when the change interval ends.
  public var isSynced: Bool { isUpToDate && pendingCount == 0 && !isCollecting }
}

extension Replica {
  /// Returns the state as far as the replica knows it; the engine completes it.
  func state(_ connection: ClientStatus) -> SyncState {
    let now = scope.ticker.now
    return SyncState(
      mode: schedule.mode, connection: connection, pendingCount: pending.count,
      isCollecting: isCollecting, decidedCount: pending.decidedCount,
      unsentCount: pending.unsentCount,
      oldestPendingAge: pending.first.map { now - $0.madeAt }, position: progress.position,
      isUpToDate: connection == .online && session.hasState && session.held.isEmpty
        && !session.held.isDropping
        && isTold && session.stateStanding == nil && progress.isAtTarget,
      stall: journal.problem.map { .storage($0) }
        ?? (scope.isIncomingPaused ? .incomingPaused : nil))
  }

  /// True while no change set is pending, and the scope has local changes that are in none.
  private var isCollecting: Bool {
    pending.isEmpty && (!scope.isSettled || scope.isDelivering)
  }

  /// Has the state reported if the scope has begun or ceased to collect changes, and no change set tells of that.
  func collectedChangesMayHaveEnded() {
    if let reportedState, reportedState.isCollecting != isCollecting { delegate?.sendWaiting() }
  }

  /// Notes a state that the app reads. It may be told of an earlier one last: that changes are being collected is reported
  /// when that ends, but not when it begins.
  func noteRead(_ state: SyncState) {
    if state.isCollecting { reportedState?.isCollecting = true }
  }

  /// Notes the state that is reported to the app. Returns false if it was reported before.
  func note(_ state: consuming SyncState) -> Bool {
    // The passing of time alone is not reported.
    state.oldestPendingAge = pending.first?.madeAt
    if let reportedState, reportedState == state { return false }
    reportedState = state
    return true
  }

  /// Returns true if the model has local changes that are not confirmed.
  func isPending(_ model: ModelObject) -> Bool {
    guard let record = model.record, record.tree === scope.tree else { return false }
    if record.isNew || !record.bases.isEmpty || overlay.adds(record.uuid) { return true }
    let schema = record.schema
    // A removed entry of a dictionary is found nowhere but among the covered properties.
    if schema.data.hasDictionaries { return overlay.keys.contains { $0.uuid == record.uuid } }
    return schema.properties.contains {
      overlay.covers(PropertyKey(uuid: record.uuid, name: $0.wireName))
    }
  }
}

extension ClientEngine {
  /// Returns the sync state of a scope; nil if it is not synced.
  package func state(of scope: Scope) -> SyncState? {
    guard let replica = replica(of: scope) else { return nil }
    let state = state(of: replica)
    replica.noteRead(state)
    return state
  }

  /// Returns true if the model has local changes that are not confirmed.
  package func isPending(_ model: ModelObject) -> Bool {
    guard let scope = model.scope else { return false }
    return replica(of: scope)?.isPending(model) ?? false
  }

  /// Returns the number of the last change set that was made of a scope.
  func lastNumber(of scope: Scope) -> Int {
    replica(of: scope)?.pending.lastNumber ?? 0
  }

  /// Returns true if the server has decided all change sets of a scope up to a number.
  func isDecided(_ scope: Scope, upTo number: Int) -> Bool {
    guard let replica = replicas.first(where: { $0.scope === scope }) else { return false }
    return replica.pending.prefix { $0.number <= number }.allSatisfy { $0.isDecided }
  }

  private func state(of replica: Replica) -> SyncState {
    var result = replica.state(status)
    if awaitsAnswer(replica) { result.isUpToDate = false }
    switch status {
    case .offline: result.stall = result.stall ?? .notConnected
    case .waiting where deferral != nil && connection.state == .waiting(retryDue: nil):
      result.stall = result.stall ?? .deferred
    case .connecting, .waiting:
      if let problem = connection.problem {
        result.stall = result.stall ?? .connectionLost(problem)
      }
    case .online:
      if let refusal = replica.request.refusal {
        result.stall = result.stall ?? .refused(refusal.error.message)
      } else if isDeferred(replica) {
        result.stall = result.stall ?? .deferred
      }
    case .resting: break
    }
    return result
  }

  /// True while a sync of a scope is about to ask the server for what the scope has missed, or waits for the answer. In
  /// realtime, the server is not asked but sends everything; and a server of version 1 is never asked.
  private func awaitsAnswer(_ replica: Replica) -> Bool {
    let schedule = replica.schedule
    guard schedule.round != nil, schedule.mode != .realtime, session.version > 1 else {
      return false
    }
    return schedule.hasToAsk || session.isAsking(for: replica)
  }

  /// Reports the scopes whose state has changed since the last report.
  func reportStates() {
    for replica in replicas where replica.note(state(of: replica)) {
      report(.stateChanged(replica.scope))
    }
  }
}
