import Foundation
import Jetstream

/// Checks of the sync state that the client reports.
extension SimulatedClient {
  /// Returns where the sync state does not follow from the change sets that were made and decided.
  func wrongState() -> [String] {
    guard let state = engine.state(of: scope) else { return ["it does not sync its scope"] }
    var wrong: [String] = []
    if scope.pendingChangeSets.handles.map(\.changeSet.id) != sets.map(\.id) {
      wrong.append("the pending sets are not those that were made, in their order")
    }
    if state.pendingCount != sets.count {
      wrong.append("\(state.pendingCount) sets are pending, should be \(sets.count)")
    }
    let age = sets.first.map { ticker.now - $0.madeAt }
    if state.oldestPendingAge != age {
      wrong.append("the oldest is \(state.oldestPendingAge as Any) old, should be \(age as Any)")
    }
    if state.unsentCount > state.pendingCount {
      wrong.append("\(state.unsentCount) sets are unsent of \(state.pendingCount)")
    }
    if state.mode != mode.mode { wrong.append("it syncs as \(state.mode), should be \(mode)") }
    if state.decidedCount + state.unsentCount > state.pendingCount {
      wrong.append("\(state.decidedCount) sets are decided and \(state.unsentCount) unsent")
    }
    let quiet: [SyncState.Stall?] = [nil, .deferred, .incomingPaused]
    if state.isUpToDate, state.connection != .online || !quiet.contains(state.stall) {
      wrong.append("it is up to date, but \(state)")
    }
    if toldState?.told(at: state.oldestPendingAge, isCollecting: state.isCollecting) != state {
      wrong.append("it is \(state), but what was told last is \(toldState as Any)")
    }
    return wrong + wrongPending()
  }

  /// Returns the models that should be pending and are not, and those that are and should not be. Reads the
  /// whole scope only if that may find something.
  private func wrongPending() -> [String] {
    let undecided = undecidedModels
    return mayBeWronglyPending(undecided) ? wrongPending(undecided, among: scope.fullState()) : []
  }

  /// The UUIDs of the models that undecided change sets change.
  var undecidedModels: Set<UUID> {
    var models: Set<UUID> = []
    for set in sets {
      for intent in set.intents + set.guesses {
        // The root has another UUID in change sets that were made before the first full state.
        let uuid = intent.uuid == ownRoot ? scope.root?.uuid : intent.model
        if let uuid { models.insert(uuid) }
      }
    }
    return models
  }

  /// Returns false if ``wrongPending(_:among:)`` would find nothing in the full state. Asks only about the
  /// models that should be pending, and looks for others in the engine's tables of what is pending.
  func mayBeWronglyPending(_ undecided: Set<UUID>) -> Bool {
    if scope.hasCollectedChanges { return false }
    for uuid in undecided {
      if let model = scope.model(uuid), !engine.isPending(model) { return true }
    }
    return engine.mayHavePending(in: scope, besides: undecided)
  }

  /// Returns the models of a full state that are pending for the engine and not in `undecided`, or the other
  /// way round.
  func wrongPending(_ undecided: Set<UUID>, among models: [SyncFragment]) -> [String] {
    if scope.hasCollectedChanges { return [] }
    return models.compactMap { fragment in
      guard let model = scope.model(fragment.uuid) else { return nil }
      let should = undecided.contains(fragment.uuid)
      let isPending = engine.isPending(model)
      return isPending == should
        ? nil
        : "\(fragment.uuid) is \(isPending ? "" : "not ")pending, and should \(should ? "" : "not ")be"
    }
  }

  /// Returns what is wrong with the sync state at rest. `position` is the epoch and sequence of the server.
  func wrongStateAtRest(of position: ScopePosition?) -> [String] {
    guard let state = engine.state(of: scope) else { return [] }
    if !state.isSynced || state.stall != nil { return ["everything rests, but it is \(state)"] }
    if toldState?.isSynced != true { return ["everything rests, but \(toldState as Any) was told"] }
    // Version 1 tells no position.
    return version == 1 || state.position == position
      ? [] : ["it is at \(state.position as Any), the server at \(position as Any)"]
  }
}

extension SyncState {
  /// Returns the state with another age of the oldest pending change set, which is not reported when it alone
  /// changes, and with the beginning of changes, which is reported when the interval ends.
  fileprivate func told(at age: Duration?, isCollecting: Bool) -> SyncState {
    var state = self
    (state.oldestPendingAge, state.isCollecting) = (age, isCollecting)
    return state
  }
}
