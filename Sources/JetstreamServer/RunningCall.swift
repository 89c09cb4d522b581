import Jetstream

/// A call of a procedure that is not decided.
final class RunningCall: UndecidedSet {
  let request: ProcedureRequest

  init(
    _ request: ProcedureRequest, _ sync: ScopeSync, checksum: UInt32,
    _ submitter: ScopeHost.Submitter, _ subscription: Subscription
  ) {
    self.request = request
    super.init(sync, checksum: checksum, submitter, subscription)
  }

  override func drop() { request.end(isCancelled: true, comesAgain: true) }
}
