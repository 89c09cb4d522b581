/// A change set that no server would read: it would close the connection again and again, and all later change sets would
/// wait forever.
struct UnsendableSet {
  /// The error with which the change set is rejected.
  let error: WireError

  /// The bytes that a message takes in addition to the fragments of a change set.
  private static let overhead = 4 << 10
  /// The most levels that values may nest: a server reads 64, and up to eight of them stand around a value.
  private static let maxNesting = JSONLimits.default.maxDepth - 8

  /// Checks a change set; nil if it can be sent in a message of `limit` bytes. Costs as much as
  /// ``SyncFragment/roughSize``, unless that exceeds an eighth of the limit.
  init?(_ set: ChangeSet, limit: Int) {
    if Self.isNested(set) {
      error = WireError(
        message: "A value in the change set nests more than \(Self.maxNesting) levels deep",
        type: "nested-too-deep")
      return
    }
    let room = limit - Self.overhead
    // No value takes more than eight times its estimated size.
    let arguments = set.arguments?.roughSize ?? 0
    guard arguments + set.fragments.roughSize > room / 8 else { return nil }
    var bytes = Array((set.procedure ?? "").utf8)
    set.arguments?.write(to: &bytes)
    for fragment in set.fragments { fragment.write(to: &bytes) }
    guard bytes.count > room else { return nil }
    error = .messageTooLarge(
      "The change set has \(bytes.count) bytes as JSON, and a message may have "
        + "\(limit): several smaller ones can be sent")
  }

  /// Makes the error of a change set whose message of this size the server has refused to read.
  init(refusedBytes: Int) {
    error = .messageTooLarge(
      "The change set takes a message of \(refusedBytes) bytes, and the server reads no such message: several "
        + "smaller ones can be sent")
  }

  private static func isNested(_ set: ChangeSet) -> Bool {
    set.arguments?.nests(deeperThan: maxNesting) == true
      || set.fragments.contains { fragment in
        isNested(fragment.properties) || isNested(fragment.bases)
      }
  }

  private static func isNested(_ values: JSONObject) -> Bool {
    values.members.contains { $0.value.nests(deeperThan: maxNesting) }
  }
}

extension Replica {
  /// Notes that the server refuses to read the change set that a message has carried: it is not sent again.
  func noteRefused(_ messageIndex: Int, bytes: Int) {
    let part = session.partMessages[messageIndex].flatMap { pending.place(of: $0.number) }
    guard let place = part ?? pending.place(sentIn: messageIndex) else { return }
    pending.refuse(place, bytes: bytes)
  }

  /// Checks a change set; nil if it can be sent in a message of `limit` bytes.
  func unsendable(_ entry: PendingEntry, limit: Int) -> UnsendableSet? {
    if let bytes = pending.refused[entry.number] { return UnsendableSet(refusedBytes: bytes) }
    return UnsendableSet(entry.set, limit: limit)
  }

  /// Rejects the change set that would be sent next and cannot be.
  ///
  /// - Parameter last: the number of the last change set that may be rejected.
  /// - Returns: false if no change set was rejected.
  func rejectNext(_ unsendable: UnsendableSet, upTo last: Int) -> Bool {
    guard !pending.isRejecting, !scope.isIncomingPaused, let number = pending.next?.number,
      number <= last
    else { return false }
    // Later changes may be in no change set yet. They are when this is tried again.
    if scope.postponesIncoming() { return false }
    pending.isRejecting = true
    defer { pending.isRejecting = false }
    beginBatch()
    // A listener of the change set that this has sealed may have ended the syncing.
    guard observation.isActive, let next = pending.next, next.number == number else {
      finishBatch()
      return false
    }
    conclude(
      pending.sentCount, next.replies(unsendable.error), effective: nil,
      next.failure(unsendable.error))
    // The server must not decide later change sets as long as this rejection could be forgotten: the rejected one
    // would then be taken for accepted.
    if pending.unsentCount > 0 { pending[pending.sentCount].record = journal.made }
    finishBatch()
    return true
  }
}
