/// Decodes and handles large messages one at a time, over all connections of a server.
///
/// A decoded message takes many times its own size, so the sum over all connections would have no bound. Small messages
/// do not wait.
actor LargeMessageGate {
  /// The size in bytes above which a message is large. A connection without a session may send no large message.
  static let threshold = 64 << 10

  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Waits for the turn of a message, in the order of the calls. ``leave()`` ends the turn.
  func enter() async {
    guard isTaken else { return isTaken = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Ends the turn that ``enter()`` has begun.
  func leave() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
