import Jetstream

/// A call of a procedure that is not decided.
final class RunningCall: UndecidedSet {
  let request: ProcedureRequest
  /// The sequence of the scope at which the client's changes have met the procedure's constraints.
  private var judgedAt: Int

  init(
    _ request: ProcedureRequest, _ sync: ScopeSync, checksum: UInt32,
    _ submitter: ScopeOrder.Submitter, _ subscription: Subscription
  ) {
    self.request = request
    judgedAt = subscription.host.sequence
    super.init(sync, checksum: checksum, submitter, subscription)
    request.call = self
  }

  /// True until it is decided or was taken out.
  var isOpen: Bool { host.map { $0.undecided[sender] === self } ?? false }

  /// Returns true if the scope has changed since the client's changes have met the constraints.
  func isOutdated(at sequence: Int) -> Bool { judgedAt != sequence }

  /// Notes that the client's changes meet the constraints at a sequence of the scope.
  func meetsConstraints(at sequence: Int) { judgedAt = sequence }

  override func drop(comesAgain: Bool = true) {
    request.end(as: .dropped(comesAgain: comesAgain))
  }
}
