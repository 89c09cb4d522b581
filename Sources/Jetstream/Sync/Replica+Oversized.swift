/// Change sets that fit into no message. A server would close the connection again and again, and whatever
/// is behind them would wait for ever.
extension Replica {
  /// How much a message takes besides the fragments of a set.
  private static let overhead = 4 << 10

  /// How many bytes a set takes as JSON, if that is more than a message of `limit` bytes has room for. Cost: as
  /// ``SyncFragment/roughSize``, unless it comes to an eighth of the limit.
  static func excessiveSize(of set: ChangeSet, limit: Int) -> Int? {
    let room = limit - overhead
    // No value takes more than eight times as much as is guessed.
    guard set.fragments.reduce(0, { $0 + $1.roughSize }) > room / 8 else { return nil }
    var bytes = Array((set.procedure ?? "").utf8)
    for fragment in set.fragments { fragment.write(to: &bytes) }
    return bytes.count > room ? bytes.count : nil
  }

  /// Takes back the set that would be sent next if no message has room for it.
  ///
  /// - Parameter last: the number of the last set that this is about.
  /// - Returns: whether there was one.
  func rejectOversized(limit: Int, upTo last: Int) -> Bool {
    guard hasState, !isRejecting, !scope.isIncomingPaused, sentCount < pending.count,
      pending[sentCount].number <= last,
      let size = Self.excessiveSize(of: pending[sentCount].set, limit: limit)
    else { return false }
    // While a set is delivered, what was changed since is in no set yet. It is when this is tried again.
    if scope.isDelivering {
      scope.incomingResumes = true
      return false
    }
    let error = WireError(
      message: "The change set has \(size) bytes as JSON, and a message may have \(limit): "
        + "several smaller ones can be sent", type: "message-too-large")
    isRejecting = true
    defer { isRejecting = false }
    beginBatch()
    let replies = pending[sentCount].set.fragments.map { _ in FragmentReply(error: error) }
    conclude(sentCount, replies, effective: nil)
    // The server must not decide what is behind it as long as this could be forgotten: it would be taken for
    // accepted.
    if sentCount < pending.count { pending[sentCount].record = madeRecords }
    finishBatch()
    return true
  }
}
