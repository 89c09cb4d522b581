import Foundation
import Jetstream

/// What has to be kept before anybody is told of it.
extension ScopeHost {
  /// Something was accepted, or decided, or both: it is handed to whoever keeps it.
  func keep(_ item: StreamItem?, _ decision: ScopeRecord.Decision? = nil) {
    if let decision {
      clients.decide(decision, at: item?.sequence, scopeAt: sequence)
    }
    guard item != nil || decision != nil else { return }
    guard let store else { return }
    madeRecords += 1
    store(
      ScopeRecord(
        sequence: item?.sequence, fragments: item?.fragments ?? [], decision: decision,
        origin: item?.origin ?? ChangeOrigin()))
  }

  /// Does something once all that was made until now is kept; in the order of the calls.
  func whenStored(_ action: @escaping () -> Void) {
    if storedRecords >= madeRecords, untold.isEmpty { return action() }
    untold.append((madeRecords, action))
  }

  /// As many records as this, counted from the server's start, will not get lost.
  func stored(_ count: Int) {
    storedRecords = max(storedRecords, count)
    var ready = 0
    while ready < untold.count, untold[ready].records <= storedRecords { ready += 1 }
    let actions = untold.prefix(ready).map(\.action)
    untold.removeFirst(ready)
    for action in actions { action() }
  }

  /// Begins where another process has stopped.
  ///
  /// - Throws: `ScopeError` if the state is not one of the scope.
  func restore(_ history: ScopeHistory) throws(ScopeError) {
    guard let root = history.state.first else {
      throw .invalidState(problem: "the history of scope \(scope.name) has no state.")
    }
    try scope.applyFullState(history.state, rootUUID: root.uuid)
    begin(at: history.sequence, of: history.epoch)
    clients = ClientTable(history)
    written = history.sequence == 0 ? [] : history.written
    for record in history.records {
      if let decision = record.decision {
        clients.decide(
          decision, at: record.sequence, scopeAt: record.sequence ?? sequence)
      }
      guard let sequence = record.sequence else { continue }
      scope.apply(record.fragments)
      noteWritten(record.fragments)
      begin(at: sequence, of: history.epoch)
      let author = record.decision.map {
        StreamItem.Author(client: $0.client, number: $0.number)
      }
      append(
        StreamItem(
          sequence: sequence, author: author, origin: record.origin,
          fragments: record.fragments, whole: nil,
          newcomers: []))
    }
    forget(upTo: sequence)
  }

  /// The history that another process could go on from, if it began now. Seals the changes that were collected so
  /// far. Nil in the middle of a step: as long as the state is not what the records until now amount to.
  ///
  /// A submission is applied before its record is handed over, and observers run meanwhile; a change set of the
  /// server's own has its record while the scope delivers it, which `settle()` knows.
  var history: ScopeHistory? {
    openSteps == 0 && scope.settle() ? state : nil
  }

  /// The state and what goes with it, which is a history if no step is under way.
  var state: ScopeHistory {
    var history = ScopeHistory(
      epoch: epoch, sequence: sequence, state: scope.sharedState(), clients: clients.history)
    history.forgottenUpTo = clients.forgottenUpTo
    history.written = written
    return history
  }
}
