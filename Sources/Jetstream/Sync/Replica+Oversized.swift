/// The size of a change set that is too large for a message.
struct OversizedSet {
  /// The size of the change set as JSON, in bytes.
  let size: Int
  /// The most bytes that a message may have.
  let limit: Int

  /// The bytes that a message takes in addition to the fragments of a change set.
  private static let overhead = 4 << 10

  /// Measures a change set; nil if it fits. Costs as much as ``SyncFragment/roughSize``, unless that exceeds an
  /// eighth of the limit.
  init?(of set: ChangeSet, limit: Int) {
    let room = limit - Self.overhead
    // No value takes more than eight times its estimated size.
    let arguments = set.arguments?.roughSize ?? 0
    guard set.fragments.reduce(arguments, { $0 + $1.roughSize }) > room / 8 else { return nil }
    var bytes = Array((set.procedure ?? "").utf8)
    set.arguments?.write(to: &bytes)
    for fragment in set.fragments { fragment.write(to: &bytes) }
    guard bytes.count > room else { return nil }
    (size, self.limit) = (bytes.count, limit)
  }
}

/// Change sets that do not fit into a message. A server would close the connection again and again, and all later
/// change sets would wait forever.
extension Replica {
  /// Rejects the change set that would be sent next but does not fit into a message.
  ///
  /// - Parameter last: the number of the last change set that may be rejected.
  /// - Returns: false if no change set was rejected.
  func rejectNext(_ oversize: OversizedSet, upTo last: Int) -> Bool {
    guard !pending.isRejecting, !scope.isIncomingPaused, let next = pending.next,
      next.number <= last
    else { return false }
    // While a change set is being delivered, later changes are in no change set yet. They are when this is tried
    // again.
    if scope.sealed.isDelivering {
      scope.incoming.openLater()
      return false
    }
    let error = WireError(
      message: "The change set has \(oversize.size) bytes as JSON, and a message may have "
        + "\(oversize.limit): several smaller ones can be sent", type: "message-too-large")
    pending.isRejecting = true
    defer { pending.isRejecting = false }
    beginBatch()
    conclude(pending.sentCount, next.replies(error), effective: nil, next.failure(error))
    // The server must not decide later change sets as long as this rejection could be forgotten: the rejected one
    // would then be taken for accepted.
    if pending.unsentCount > 0 { pending[pending.sentCount].record = journal.made }
    finishBatch()
    return true
  }
}
