import Foundation

/// A call of a procedure, whose outcome the server decides.
///
/// ```swift
/// let call = try scope.call(Sell(item: id, count: 2))
/// do {
///   show(try await call.output())
/// } catch let failure as Sell.Failure {
///   show(failure)
/// }
/// ```
///
/// A call is sent and decided like a change set, once: it waits while the client is away, and its client sends it again after
/// a restart if it has a log. It belongs to the isolation domain of its scope. The app need not keep it.
public final class ProcedureCall<P: Procedure> {
  /// The handle of the change set with what the procedure has changed here. It may be empty. It is accepted when the server
  /// has run the procedure, and rejected with ``ChangeSetError/procedureFailed(_:)`` when that has failed.
  public let changeSet: ChangeSetHandle
  private let local: P.Output

  init(_ changeSet: ChangeSetHandle, local: P.Output) {
    self.changeSet = changeSet
    self.local = local
  }

  /// Waits until the server has run the procedure, and returns the result. In a scope that no client syncs, it is the
  /// one of the scope's own. Cancelling the task ends the wait and does not affect the call.
  ///
  /// In a mode that holds back remote changes, such as ``SyncMode/pushOnly``, the result may come before the changes.
  ///
  /// - Throws: the `Failure` of the procedure; ``ChangeSetError`` if the server has refused the call for another reason, if
  ///   the call is abandoned, or if the task is cancelled; `WireError` if the server has run the procedure and does not tell
  ///   the result: it has no version 2, or has forgotten it. An abandoned call is sent when its scope is fetched with its
  ///   log again: see ``ChangeSetHandle/State/abandoned``.
  public func output() async throws -> P.Output {
    do throws(ChangeSetError) {
      try await changeSet.told()
    } catch {
      guard case .failure(_, let thrown?)? = changeSet.outcome,
        let failure = try? thrown.decoded(as: P.Failure.self)
      else { throw error }
      throw failure
    }
    guard changeSet.isDecidedByServer else { return local }
    guard case .output(let value)? = changeSet.outcome else {
      throw WireError(
        message: "The server does not tell the result of \(P.name)", type: "no-result")
    }
    do {
      return try value.decoded(as: P.Output.self)
    } catch {
      throw WireError(
        message: "The server's result of \(P.name) cannot be read: \(error)", type: "no-result")
    }
  }
}

extension Scope {
  /// Calls a procedure: runs it here, shows its changes, and has the server run it.
  ///
  /// The server's changes replace those that were made here. While the client is away, the call waits. A failed call leaves no
  /// conflicts: its caller is told.
  ///
  /// - Parameters:
  ///   - procedure: the procedure with its arguments.
  ///   - message: the purpose of the changes; see ``ChangeSet/message``.
  ///   - author: the author of the changes; see ``ChangeSet/author``.
  /// - Returns: the call. The outcome is known when ``ProcedureCall/output()`` returns.
  /// - Precondition: the root is one of the procedure's class, and this is not called within `modify`, nor in an observer that
  ///   is told at once of what others did.
  /// - Throws: the error of the procedure, if it fails here, or of an argument that cannot be encoded; ``ScopeError`` if the
  ///   scope refuses a change, such as a model with the UUID of another one. Nothing is changed or sent then.
  @discardableResult
  public func call<P: Procedure>(
    _ procedure: P, message: String? = nil, author: String? = nil
  ) throws -> ProcedureCall<P> {
    guard let root = root as? P.Root else {
      preconditionFailure(
        "Procedure \(P.name) needs a \(P.Root.self) as the root of scope \(name).")
    }
    let set = ChangeSet(
      fragments: [], undo: [], author: author, message: message, isAtomic: true, procedure: P.name,
      arguments: try procedure.arguments)
    var output: P.Output?
    let handle = try makeAlone(set, isWhole: true) { output = try procedure.run(on: root) }.handle
    guard let output else { preconditionFailure("A procedure that has run has an output.") }
    return ProcedureCall(handle, local: output)
  }
}
