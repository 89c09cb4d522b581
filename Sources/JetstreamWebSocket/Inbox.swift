/// The received messages that no receiver has taken yet, and the receivers that wait for one.
struct Inbox: Sendable {
  typealias Delivery = Result<WebSocketMessage?, WebSocketError>
  typealias Waiter = CheckedContinuation<Delivery, Never>

  private var messages: [WebSocketMessage?] = []
  private var first = 0
  private var waiters: [(id: Int, continuation: Waiter)] = []
  private var lastID = 0

  /// The payload bytes of the unread messages.
  private(set) var bytes = 0

  /// The number of unread messages.
  var count: Int { messages.count - first }

  /// Returns a number for a receiver that is about to wait.
  mutating func makeID() -> Int {
    lastID += 1
    return lastID
  }

  /// Stores a message, or returns the waiting receiver that gets it.
  mutating func put(_ message: WebSocketMessage) -> Waiter? {
    if !waiters.isEmpty { return waiters.removeFirst().continuation }
    messages.append(message)
    bytes += message.bytes.count
    return nil
  }

  /// Takes the oldest message. Amortized constant time.
  mutating func take() -> WebSocketMessage? {
    guard first < messages.count, let message = messages[first] else { return nil }
    messages[first] = nil
    first += 1
    bytes -= message.bytes.count
    if first == messages.count {
      messages.removeAll(keepingCapacity: messages.capacity <= 64)
      first = 0
    } else if first > 64, first * 2 > messages.count {
      messages.removeFirst(first)
      first = 0
    }
    return message
  }

  /// Takes all messages, from the oldest to the newest.
  mutating func takeAll() -> [WebSocketMessage] {
    let all = messages[first...].compactMap(\.self)
    discard()
    return all
  }

  /// Adds a receiver that waits.
  mutating func wait(_ id: Int, _ continuation: Waiter) {
    waiters.append((id, continuation))
  }

  /// Removes the receiver that waits under `id`; returns nil when it was served already.
  mutating func stopWaiting(_ id: Int) -> Waiter? {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
    return waiters.remove(at: index).continuation
  }

  /// Removes and returns all receivers that wait.
  mutating func removeWaiters() -> [Waiter] {
    defer { waiters = [] }
    return waiters.map(\.continuation)
  }

  /// Drops the unread messages; those who wait go on waiting.
  mutating func discard() {
    messages = []
    first = 0
    bytes = 0
  }
}
