/// One open WebSocket, whichever stack carries it.
///
/// All of it may be used from any task or thread.
public protocol WebSocketChannel: AnyObject, Sendable {
  /// The next message, in the order in which the peer sent them; nil once the connection has been
  /// closed with a close handshake. Suspends until there is one.
  ///
  /// Throws ``WebSocketError/connectionLost`` after an abnormal end,
  /// ``WebSocketError/protocolViolation(_:)`` after the peer broke the protocol, each only once
  /// the messages that came before have been taken, and ``WebSocketError/cancelled`` when the
  /// waiting task is cancelled; no message is lost by that.
  func receive() async throws(WebSocketError) -> WebSocketMessage?

  /// Queues a message and returns at once. Messages arrive in the order of these calls.
  ///
  /// Throws ``WebSocketError/closed`` when the connection is closing or over, and
  /// ``WebSocketError/outboundQueueFull`` when too much is waiting already.
  func send(_ message: WebSocketMessage) throws(WebSocketError)

  /// Starts the close handshake and returns at once. Messages queued before are still sent; those
  /// the peer sends from now on are discarded. Does nothing when a close is already under way.
  ///
  /// A reason longer than ``WebSocketCloseStatus/maximumReasonBytes`` is cut after a whole scalar.
  ///
  /// - Precondition: `code` may be sent, as ``WebSocketCloseCode/isAllowedOnWire`` says.
  func beginClose(code: WebSocketCloseCode, reason: String)

  /// Starts the close handshake and waits for its end, which the close timeout bounds.
  func close(code: WebSocketCloseCode, reason: String) async

  /// Drops the connection at once, without a close handshake and with whatever is still queued.
  func abort()

  /// How the connection ended, or nil while it has not.
  var closeStatus: WebSocketCloseStatus? { get }

  /// Bytes queued by `send` that the operating system has not taken yet.
  var bufferedBytes: Int { get }
}

extension WebSocketChannel {
  /// Queues text given as UTF-8, without copying it. See ``send(_:)``.
  public func send(text bytes: [UInt8]) throws(WebSocketError) {
    try send(WebSocketMessage(kind: .text, bytes: bytes))
  }

  /// Queues text. See ``send(_:)``.
  public func send(text: String) throws(WebSocketError) {
    try send(.text(text))
  }

  /// Queues bytes, without copying them. See ``send(_:)``.
  public func send(binary bytes: [UInt8]) throws(WebSocketError) {
    try send(.binary(bytes))
  }

  /// Starts a close handshake with code 1000 and no reason.
  public func beginClose() {
    beginClose(code: .normal, reason: "")
  }

  /// Closes with code 1000 and no reason, and waits for the end.
  public func close() async {
    await close(code: .normal, reason: "")
  }

  /// The messages still to come, ending and throwing as ``receive()`` does.
  public var messages: WebSocketMessages { WebSocketMessages(channel: self) }
}

/// A connection's messages as a sequence. Several iterators share the messages among them.
public struct WebSocketMessages: AsyncSequence, Sendable {
  /// What iteration yields.
  public typealias Element = WebSocketMessage
  /// What iteration throws.
  public typealias Failure = WebSocketError

  let channel: any WebSocketChannel

  /// Makes an iterator; nothing is read ahead.
  public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

  /// Takes one message after another.
  public struct Iterator: AsyncIteratorProtocol {
    let channel: any WebSocketChannel

    /// The next message, as ``WebSocketChannel/receive()`` gives it.
    public mutating func next() async throws(WebSocketError) -> WebSocketMessage? {
      try await channel.receive()
    }

    /// The next message, as ``WebSocketChannel/receive()`` gives it, for a caller on `actor`.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WebSocketError) -> WebSocketMessage? {
      try await channel.receive()
    }
  }
}
