/// Change sets that fit into no message. A server would close the connection again and again, and whatever
/// is behind them would wait for ever.
extension Replica {
  /// How large a set is that no message has room for.
  struct Oversize {
    /// How many bytes it takes as JSON.
    let size: Int
    /// How many bytes a message may have.
    let limit: Int

    /// How much a message takes besides the fragments of a set.
    private static let overhead = 4 << 10

    /// Nil if there is room. Cost: as ``SyncFragment/roughSize``, unless it comes to an eighth of the limit.
    init?(of set: ChangeSet, limit: Int) {
      let room = limit - Self.overhead
      // No value takes more than eight times as much as is guessed.
      guard set.fragments.reduce(0, { $0 + $1.roughSize }) > room / 8 else { return nil }
      var bytes = Array((set.procedure ?? "").utf8)
      for fragment in set.fragments { fragment.write(to: &bytes) }
      guard bytes.count > room else { return nil }
      (size, self.limit) = (bytes.count, limit)
    }
  }

  /// Takes back the set that would be sent next, which no message has room for.
  ///
  /// - Parameter last: the number of the last set that may be taken back.
  /// - Returns: whether it was.
  func rejectNext(_ oversize: Oversize, upTo last: Int) -> Bool {
    guard !isRejecting, !scope.isIncomingPaused, sentCount < pending.count,
      pending[sentCount].number <= last
    else { return false }
    // While a set is delivered, what was changed since is in no set yet. It is when this is tried again.
    if scope.isDelivering {
      scope.incomingResumes = true
      return false
    }
    let error = WireError(
      message: "The change set has \(oversize.size) bytes as JSON, and a message may have "
        + "\(oversize.limit): several smaller ones can be sent", type: "message-too-large")
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
