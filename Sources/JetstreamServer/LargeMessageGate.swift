/// Lets one large message of all connections be decoded and handled at a time.
///
/// What a message comes to in memory is many times its own size, so that the sum over all connections would have no
/// bound. Small messages do not wait.
actor LargeMessageGate {
  /// The number of bytes from which a message is large. It is also the most that is read on a connection without a
  /// session.
  static let threshold = 64 << 10

  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Waits for the turn of a message, behind those that have come before. ``leave()`` ends the turn.
  func enter() async {
    guard isTaken else { return isTaken = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Ends the turn of the message that has entered.
  func leave() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
