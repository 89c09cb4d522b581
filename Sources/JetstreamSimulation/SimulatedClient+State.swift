import Foundation
import Jetstream

/// What the client says of itself, compared with what has happened.
extension SimulatedClient {
  /// Where the sync state is not what follows from the sets that were made and decided.
  func wrongState() -> [String] {
    guard let state = engine.state(of: scope) else { return ["it does not sync its scope"] }
    var wrong: [String] = []
    if scope.pendingChangeSets.handles.map(\.set.id) != sets.map(\.id) {
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
    if toldState?.told(at: state.oldestPendingAge) != state {
      wrong.append("it is \(state), but what was told last is \(toldState as Any)")
    }
    return wrong + wrongPending()
  }

  /// Models that should be pending, and are not; or the other way round. Looks at the whole scope only if that may
  /// find something.
  private func wrongPending() -> [String] {
    let undecided = undecidedModels
    return mayBeWronglyPending(undecided) ? wrongPending(undecided, among: scope.fullState()) : []
  }

  /// The models of which something was changed in sets that are not decided.
  var undecidedModels: Set<UUID> {
    var models: Set<UUID> = []
    for set in sets {
      for intent in set.intents {
        // The root has another name in sets that were made before the first state.
        let uuid = intent.uuid == ownRoot ? scope.root?.uuid : intent.model
        if let uuid { models.insert(uuid) }
      }
    }
    return models
  }

  /// False if ``wrongPending(_:among:)`` finds nothing in the full state, for sure: asks only about the models that
  /// should be pending, and looks for others where the engine keeps what is.
  func mayBeWronglyPending(_ undecided: Set<UUID>) -> Bool {
    if scope.hasCollectedChanges { return false }
    for uuid in undecided {
      if let model = scope.model(uuid), !engine.isPending(model) { return true }
    }
    return engine.mayHavePending(in: scope, besides: undecided)
  }

  /// The models of a full state of which the engine says something else than that `undecided` are pending.
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

  /// What is wrong with the state when nothing is under way any more.
  func wrongStateAtRest(of position: ScopePosition?) -> [String] {
    guard let state = engine.state(of: scope) else { return [] }
    if !state.isSynced || state.stall != nil { return ["everything rests, but it is \(state)"] }
    // Version 1 tells no position.
    return version == 1 || state.position == position
      ? [] : ["it is at \(state.position as Any), the server at \(position as Any)"]
  }
}

extension SyncState {
  /// The state with another age, which nobody is told.
  fileprivate func told(at age: Duration?) -> SyncState {
    var state = self
    state.oldestPendingAge = age
    return state
  }
}
