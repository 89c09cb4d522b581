/// Holds back the server's messages for a scope as long as the app asks for it.
///
/// Its functions call nothing: the scope calls ``onOpen`` and ``onClose`` afterwards, which may use the gate again.
struct IncomingGate {
  private var pauses = 0
  /// True if the gate has opened at a moment when the messages held back could not be applied.
  private(set) var opensLater = false
  /// Applies the messages held back.
  var onOpen: (() -> Void)?
  /// Called when messages begin to be held back.
  var onClose: (() -> Void)?

  var isOpen: Bool { pauses == 0 }

  /// Begins a pause. Returns true for the first one.
  mutating func pause() -> Bool {
    pauses += 1
    return pauses == 1
  }

  /// Ends a pause. Returns true for the last one.
  mutating func resume() -> Bool {
    precondition(pauses > 0, "resumeIncoming() was called more often than pauseIncoming().")
    pauses -= 1
    return pauses == 0
  }

  /// Lets the messages wait for the next call of ``takeOpening()``.
  mutating func openLater() { opensLater = true }

  /// Returns what applies the messages that have waited; nil if there are none, or if another pause has begun.
  mutating func takeOpening() -> (() -> Void)? {
    guard opensLater else { return nil }
    opensLater = false
    return isOpen ? onOpen : nil
  }
}
