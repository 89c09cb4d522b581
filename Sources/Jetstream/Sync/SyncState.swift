/// How a scope stands to its server: what an app can show its users, and nothing that is not so.
public struct SyncState: Sendable, Hashable {
  /// Why nothing moves.
  public enum Stall: Sendable, Hashable {
    /// Nobody has asked for a connection, or the client was closed.
    case notConnected
    /// There is no connection, for this reason; another attempt is under way or follows.
    case connectionLost(String)
    /// The app has paused what comes in; see ``Scope/pauseIncoming()``.
    case incomingPaused
    /// The app has said that the network is not to be used now; see ``Client/permission``.
    case deferred
    /// The server has refused the scope for now, for this reason. The client asks again by itself; until the server
    /// grants the scope, changes stay pending.
    case refused(String)
    /// What was changed cannot be written to the log, for this reason; another attempt follows, and nothing
    /// is sent before.
    case storage(String)
  }

  /// When what happens is sent and taken in.
  public var mode: SyncMode
  /// Whether there is a connection.
  public var connection: ClientStatus
  /// How many change sets are not confirmed.
  public var pendingCount: Int
  /// How many of these the server has decided and keeps, but are not confirmed here: what others have done in
  /// front of them is not taken in yet.
  public var decidedCount: Int
  /// How many of these have not been sent in this session.
  public var unsentCount: Int
  /// How long ago the oldest of them was made, or restored from a log, at the time when the state was asked
  /// for. Nil if nothing is pending.
  public var oldestPendingAge: Duration?
  /// Up to where the server's order is taken in; nil before a state has come, and with a server of version 1
  /// of the protocol.
  public var position: ScopePosition?
  /// Whether there is a connection, and all that the server had when it was made, or asked last, is taken in.
  public var isUpToDate: Bool
  /// Why nothing moves; nil if there is no reason for it.
  public var stall: Stall?

  /// Whether the scope is what the server has, as far as anybody can know.
  public var isSynced: Bool { isUpToDate && pendingCount == 0 }
}

/// The state of one scope has changed.
public struct SyncStateChange {
  /// The scope.
  public let scope: Scope
  /// The new state; nil if the scope is not synced any more.
  public let state: SyncState?
}

extension Replica {
  /// The state, as far as the replica knows it.
  func state(_ connection: ClientStatus) -> SyncState {
    let now = scope.ticker.now
    let reached = position?.sequence ?? 0
    return SyncState(
      mode: mode, connection: connection, pendingCount: pending.count, decidedCount: decidedCount,
      unsentCount: pending.count - sentCount,
      oldestPendingAge: pending.first.map { now - $0.madeAt }, position: position,
      isUpToDate: connection == .online && hasState && held.isEmpty && !dropsHeld
        && isTold && stateStanding == nil && reached >= target,
      stall: storageProblem.map { .storage($0) }
        ?? (scope.isIncomingPaused ? .incomingPaused : nil))
  }

  /// Whether the server has not decided something that was changed of the model.
  func isPending(_ model: ModelObject) -> Bool {
    guard let record = model.record, record.scope === scope else { return false }
    if record.isNew || !record.bases.isEmpty || additions[record.uuid] != nil { return true }
    return record.schema.properties.contains {
      overlay.covers(PropertyKey(uuid: record.uuid, name: $0.wireName))
    }
  }
}

extension ClientEngine {
  /// How a scope stands to the server; nil if it is not synced.
  package func state(of scope: Scope) -> SyncState? {
    replica(of: scope).map(state)
  }

  /// Whether the server has not decided something that was changed of the model.
  package func isPending(_ model: ModelObject) -> Bool {
    guard let scope = model.scope else { return false }
    return replica(of: scope)?.isPending(model) ?? false
  }

  /// The number of the last change set that was made of a scope.
  func lastNumber(of scope: Scope) -> Int {
    (replica(of: scope)?.nextNumber ?? 1) - 1
  }

  /// Whether the server has decided all change sets of a scope up to a number.
  func isDecided(_ scope: Scope, upTo number: Int) -> Bool {
    guard let replica = replicas.first(where: { $0.scope === scope }) else { return false }
    return replica.pending.prefix { $0.number <= number }.allSatisfy { $0.decision != nil }
  }

  private func state(of replica: Replica) -> SyncState {
    var result = replica.state(status)
    switch status {
    case .offline: result.stall = result.stall ?? .notConnected
    case .waiting where deferral != nil && retryDue == nil:
      result.stall = result.stall ?? .deferred
    case .connecting, .waiting:
      if let problem { result.stall = result.stall ?? .connectionLost(problem) }
    case .online:
      if let refusal = replica.refusal {
        result.stall = result.stall ?? .refused(refusal.error.message)
      } else if isDeferred(replica) {
        result.stall = result.stall ?? .deferred
      }
    case .resting: break
    }
    return result
  }

  /// Tells of the states that are not what they were.
  func reportStates() {
    for replica in replicas {
      var state = state(of: replica)
      // That time passes is no news.
      state.oldestPendingAge = replica.pending.first?.madeAt
      guard state != replica.reportedState else { continue }
      replica.reportedState = state
      report(.stateChanged(replica.scope))
    }
  }
}
