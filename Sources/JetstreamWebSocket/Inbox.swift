/// The messages a connection has received and nobody has taken yet, and those who wait for one.
struct Inbox: Sendable {
  typealias Delivery = Result<WebSocketMessage?, WebSocketError>
  typealias Waiter = CheckedContinuation<Delivery, Never>

  private var messages: [WebSocketMessage?] = []
  private var first = 0
  private var waiters: [(id: Int, continuation: Waiter)] = []
  private var lastID = 0

  /// Payload bytes of the unread messages.
  private(set) var bytes = 0

  /// How many messages are unread.
  var count: Int { messages.count - first }

  /// A number for someone who is about to wait.
  mutating func makeID() -> Int {
    lastID += 1
    return lastID
  }

  /// Keeps a message, or names the waiter who gets it.
  mutating func put(_ message: WebSocketMessage) -> Waiter? {
    if !waiters.isEmpty { return waiters.removeFirst().continuation }
    messages.append(message)
    bytes += message.bytes.count
    return nil
  }

  /// Takes the oldest message. Constant time on the average.
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

  /// Remembers someone who waits.
  mutating func wait(_ id: Int, _ continuation: Waiter) {
    waiters.append((id, continuation))
  }

  /// Forgets the one who waits under `id`; nil when it has been served already.
  mutating func stopWaiting(_ id: Int) -> Waiter? {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
    return waiters.remove(at: index).continuation
  }

  /// Forgets everyone who waits.
  mutating func removeWaiters() -> [Waiter] {
    defer { waiters = [] }
    return waiters.map(\.continuation)
  }

  /// Throws the unread messages away.
  mutating func discard() {
    messages = []
    first = 0
    bytes = 0
  }
}
