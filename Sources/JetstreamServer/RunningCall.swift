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
    request.call = self
  }

  /// True until it is decided or was taken out.
  var isOpen: Bool { host.map { $0.undecided[sender] === self } ?? false }

  override func drop() { request.end(isCancelled: true, comesAgain: true) }
}
