/// Holds back the server's messages for a scope as long as the app asks for it.
///
/// Its functions call nothing: the scope tells the ``listeners`` afterwards, which may use the gate again.
struct IncomingGate {
  /// A client's replica of the scope. There may be several, each with messages of its own.
  struct Listener {
    weak var owner: AnyObject?
    /// Applies the messages held back.
    let onOpen: () -> Void
    /// Called when messages begin to be held back.
    let onClose: () -> Void
  }

  private(set) var listeners: [Listener] = []
  private var pauses = 0
  /// True if the gate has opened at a moment when the messages held back could not be applied.
  private(set) var opensLater = false

  var isOpen: Bool { pauses == 0 }

  /// True while a client syncs the scope.
  var hasReplicas: Bool { listeners.contains { $0.owner != nil } }

  mutating func add(_ listener: Listener) {
    listeners.removeAll { $0.owner == nil }
    listeners.append(listener)
  }

  mutating func remove(_ owner: AnyObject) {
    listeners.removeAll { $0.owner == nil || $0.owner === owner }
  }

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

  /// Returns those whose messages have waited and are to be applied now: none if another pause has begun.
  mutating func takeOpening() -> [Listener] {
    guard opensLater else { return [] }
    opensLater = false
    return isOpen ? listeners : []
  }
}
