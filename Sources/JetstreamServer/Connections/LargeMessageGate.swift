/// Decodes and handles large messages one at a time, over all connections of a server.
///
/// A decoded message takes many times its own size, so the sum over all connections would have no bound. Small messages
/// do not wait.
actor LargeMessageGate {
  /// The size in bytes above which a message is large. A connection without a session may send no large message.
  static let threshold = 64 << 10

  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Waits until the message may be handled, in the order of the calls. Call ``leave()`` when it has been.
  func enter() async {
    guard isTaken else { return isTaken = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Lets the next message in.
  func leave() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
