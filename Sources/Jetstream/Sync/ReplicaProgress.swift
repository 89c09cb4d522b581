/// The progress of a replica in the server's order of change sets.
///
/// A server of version 1 reports no sequences; then there is no position.
struct ReplicaProgress {
  /// The position up to which the server's order is applied; nil if the server does not report it.
  var position: ScopePosition?
  /// True once a full state has been applied.
  var hasBase = false
  /// True after the server reported a different history, until its full state is applied.
  private(set) var hasDiverged = false
  /// The server's sequence when it granted the last request, or when the client resumed the session later.
  private var target = 0
  /// The sequence that was applied when the last request that was granted was made.
  private var requestedAt = 0

  /// The sequence up to which the server's order is applied; 0 if the server does not report it.
  var sequence: Int { position?.sequence ?? 0 }

  /// The position that a change set made now is based on; the beginning if nothing is known of the server's order.
  var basis: ScopePosition? { hasBase ? position : ScopePosition(epoch: "", sequence: 0) }

  /// True if the server can be asked for what follows the position.
  var canResume: Bool { hasBase && position != nil }

  /// True if everything is applied that the server had when it granted the last request, or when the client resumed the
  /// session since.
  var isAtTarget: Bool { sequence >= target }

  /// Returns true if change sets between the position and the one with this sequence have not been applied.
  func hasGap(before sequence: Int?) -> Bool {
    guard let sequence, let position else { return false }
    return sequence > position.sequence + 1
  }

  /// Returns true if a sequence is not reached; false if there is none.
  func isBefore(_ sequence: Int?) -> Bool { sequence.map { $0 > self.sequence } ?? false }

  /// Returns the sequence up to which the maker of a change set had seen the server's order; nil if its basis belongs
  /// to another history.
  func seen(with basis: ScopePosition) -> Int? {
    basis.epoch.isEmpty || basis.epoch == position?.epoch ? basis.sequence : nil
  }

  /// Advances to the sequence of a change set that is about to be applied, if it is reported and not reached yet.
  ///
  /// Never goes back. A reply can be handled after the change set that it decides, and after later ones. While messages
  /// are held, the decision is known as soon as the reply arrives; so if an earlier connection has brought the change set
  /// from the stream, that is concluded first, and the reply changes nothing any more. If it took the sequence back, the
  /// later change sets, which the next connection has brought once more, would be applied twice.
  mutating func advance(to sequence: Int?) {
    guard let sequence, let position else { return }
    self.position?.sequence = max(position.sequence, sequence)
  }

  /// Notes the server's sequence when it granted a request that was made at `since`. If a state follows, changes that it
  /// contains must not disappear until it arrives.
  mutating func aim(at sequence: Int, since: Int) { (target, requestedAt) = (sequence, since) }

  /// Notes a later sequence of the server, whose change sets come without a request.
  mutating func extendTarget(to sequence: Int) { target = max(target, sequence) }

  /// Returns true if later change sets were applied than a position has, although it is part of the known history: its
  /// message was lost and came after them.
  func isAhead(of other: ScopePosition) -> Bool {
    continues(other) && sequence > other.sequence
  }

  /// Notes a position of the server. Returns false if the server does not continue the known history.
  mutating func meets(_ other: ScopePosition) -> Bool {
    if continues(other) { return true }
    hasDiverged = true
    return false
  }

  /// Returns true, once, if the server has lost the known history.
  ///
  /// - Parameters:
  ///   - other: the position that the server reports.
  ///   - isForgotten: true if the server has forgotten decisions about change sets.
  mutating func takeLoss(at other: ScopePosition, isForgotten: Bool) -> Bool {
    guard position != nil, isForgotten || hasDiverged || !continues(other) else { return false }
    hasDiverged = false
    return true
  }

  /// Returns true if the known position is part of the history that another one belongs to: the epoch is the same, and
  /// the sequence is not earlier than the known one was when the client has asked for it.
  private func continues(_ other: ScopePosition) -> Bool {
    guard let position else { return false }
    return other.epoch == position.epoch && other.sequence >= min(position.sequence, requestedAt)
  }
}
