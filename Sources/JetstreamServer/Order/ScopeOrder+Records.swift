import Foundation
import Jetstream

/// The records of a scope. Clients are not told of a change before its record is durable.
extension ScopeOrder {
  /// Records an accepted change set, a decision, or both, and stores the record.
  ///
  /// - Parameter set: the same change set with its inverse.
  func keep(
    _ item: StreamItem?, _ set: ChangeSet?, isRemote: Bool = false,
    _ decision: ScopeRecord.Decision? = nil
  ) {
    if let decision { clients.decide(decision, at: item?.sequence, scopeAt: sequence) }
    guard records.store != nil, item != nil || decision != nil else { return }
    var record = ScopeRecord(
      sequence: item?.sequence, fragments: item?.fragments ?? [], decision: decision,
      origin: item?.origin ?? ChangeOrigin())
    record.text = item?.text
    if item != nil, let set {
      (record.id, record.undo, record.purpose) = (set.id, set.undo, set.purpose)
      record.isRemote = isRemote
    }
    records.keep(record)
  }

  /// Restores the scope from the history that an earlier process has left. What was told of the scope before has no place
  /// in that: the stream begins anew.
  ///
  /// - Parameter isRestored: true if the content has been restored from the history already.
  /// - Throws: `ScopeError` if the state does not fit the scope, or if a class no longer accepts a value.
  func restore(_ history: ScopeHistory, isRestored: Bool = false) throws(ScopeError) {
    if !isRestored { try content.restoreState(of: history) }
    stream = ScopeStream(limit: stream.limit)
    begin(at: history.sequence, of: history.epoch)
    clients = ClientTable(history)
    written = WrittenProperties(history.sequence == 0 ? [] : history.written)
    for record in history.records {
      if let decision = record.decision {
        clients.decide(decision, at: record.sequence, scopeAt: record.sequence ?? sequence)
      }
      guard let sequence = record.sequence else { continue }
      if !isRestored { try content.repeatChanges(of: record) }
      begin(at: sequence, of: history.epoch)
      let author = record.decision.map { StreamItem.Author(client: $0.client, number: $0.number) }
      append(
        StreamItem(
          sequence: sequence, author: author, origin: record.origin,
          fragments: record.fragments, whole: nil, newcomers: [],
          replies: record.decision?.fragmentReplies ?? []))
    }
    measureWholeState()
    forget(upTo: sequence)
    tombstones.forgetRevived()
  }

  /// Returns the current state of the scope, which has these parts, and of its clients as a history without records.
  func history(of parts: [[SyncFragment]]) -> ScopeHistory {
    var history = ScopeHistory(epoch: epoch, sequence: sequence, state: [], clients: clients.all())
    history.parts = parts
    history.forgottenUpTo = clients.forgottenUpTo
    history.written = written.names
    return history
  }
}

/// Restoring from a history. A value that does not fit its property is an error: the scope would have the default
/// instead, and the next snapshot, and the clients, would get that. Rows leave out what their schema does not have, as a
/// schema without a property is meant to: that is noted, for the operator.
extension HostedContent {
  /// Replaces everything by the state with which a history begins.
  func restoreState(of history: ScopeHistory) throws(ScopeError) {
    if history.state.isEmpty {
      throw .invalidState(problem: "the history of scope \(name) has no state.")
    }
    try refuse(restore(history.state))
  }

  /// Applies a record of a history.
  func repeatChanges(of record: ScopeRecord) throws(ScopeError) {
    try refuse(apply(record.fragments, known: { _ in nil }))
  }

  private func refuse(_ misfits: [(fragment: Int, error: ScopeError)]) throws(ScopeError) {
    for (_, error) in misfits {
      if case .invalidValue = error { throw error }
      (self as? RowsContent)?.noteLeftOut(error)
    }
  }
}

extension RowsContent {
  /// Makes the content to which a history has led: of a new root, if there is none.
  ///
  /// - Parameter isMeasured: true to measure it as well, for a scope with a limit on its size.
  convenience init(
    name: String, _ schema: ScopeSchema, from history: ScopeHistory?, isMeasured: Bool = false
  ) throws(ScopeError) {
    self.init(name: name, schema)
    guard let history else { return }
    try restoreState(of: history)
    for record in history.records where record.sequence != nil { try repeatChanges(of: record) }
    if isMeasured { measure() }
  }
}
