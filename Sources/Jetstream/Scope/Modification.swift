import Foundation

/// A running call of `modify`, with the nested calls that have joined it.
final class Modification {
  /// The handle that the caller gets. Its change set is empty until it is sealed, but has its id, author and
  /// message.
  let handle: ChangeSetHandle
  /// Models that entered and left within the call, or that other replicas do not know: kept, since a rollback may
  /// need them.
  var departed: [ModelObject] = []
  /// The changes of the calls around the innermost one, the outermost first.
  var layers: [Layer] = []
  /// The conflicts that leave the ledger when the outermost call ends.
  var retried: [Conflict.ID] = []
  /// The conflicts that have left the ledger. Logs are told of that once they have the change set, which comes later: the
  /// call was made in an observer of remote changes, or while another change set is being delivered.
  private(set) var withdrawn: [Conflict] = []
  /// True once the outermost call has thrown: changes that observers make during the rollback are not part of it.
  var isOver = false
  /// The number of times that the scope has refused something during the call.
  var refusals = 0
  /// The first thing that the scope has refused.
  var refusal: ScopeError?
  /// True during a rollback: models that leave meanwhile may be about to return.
  var isRollingBack = false

  init(_ set: ChangeSet) { handle = ChangeSetHandle(set) }

  /// Takes conflicts out of the ledger that the change set makes again.
  func withdraw(_ ids: [Conflict.ID], from ledger: ConflictLedger) {
    if !ids.isEmpty { withdrawn += ledger.withdraw(Set(ids)) }
  }

  /// Adds the options and labels of a nested call.
  func join(_ other: ChangeSet) {
    if other.isAtomic { handle.changeSet.isAtomic = true }
    handle.changeSet.message = handle.changeSet.message ?? other.message
    handle.changeSet.author = handle.changeSet.author ?? other.author
  }
}
