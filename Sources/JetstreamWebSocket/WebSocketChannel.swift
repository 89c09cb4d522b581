/// One open WebSocket, over this module's sockets or over the system's.
///
/// All members may be used from any task or thread.
public protocol WebSocketChannel: AnyObject, Sendable {
  /// Returns the next message, in the order in which the peer sent them; nil once the connection was closed with a
  /// close handshake. Suspends until there is one.
  ///
  /// Throws ``WebSocketError/connectionLost`` after an abnormal end and ``WebSocketError/protocolViolation(_:)`` after
  /// the peer broke the protocol, but only once all earlier messages were received. Throws ``WebSocketError/cancelled``
  /// when the waiting task is cancelled; no message is lost by that.
  func receive() async throws(WebSocketError) -> WebSocketMessage?

  /// Queues a message and returns at once. Messages arrive in the order of these calls.
  ///
  /// Throws ``WebSocketError/closed`` when the connection is closing or closed, and
  /// ``WebSocketError/outboundQueueFull`` when too much is waiting to be sent.
  func send(_ message: WebSocketMessage) throws(WebSocketError)

  /// Starts the close handshake and returns at once. Messages queued before are still sent; messages that the peer
  /// sends from now on are discarded. Does nothing when a close is already under way.
  ///
  /// A reason longer than ``WebSocketCloseStatus/maximumReasonBytes`` is cut after a whole scalar.
  ///
  /// - Precondition: ``WebSocketCloseCode/isAllowedOnWire`` is true for `code`.
  func beginClose(code: WebSocketCloseCode, reason: String)

  /// Starts the close handshake and waits for its end, at most for the close timeout.
  func close(code: WebSocketCloseCode, reason: String) async

  /// Drops the connection at once, without a close handshake. Everything still queued is lost.
  func abort()

  /// The close code, the reason and the side that closed first; nil until the connection has ended.
  var closeStatus: WebSocketCloseStatus? { get }

  /// The number of bytes queued by `send` that the operating system has not taken yet.
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

  /// Starts a close handshake with code 1000 and no reason, and waits for its end.
  public func close() async {
    await close(code: .normal, reason: "")
  }

  /// The messages still to come, as a sequence that ends and throws as ``receive()`` does.
  public var messages: WebSocketMessages { WebSocketMessages(channel: self) }
}

/// A connection's messages as a sequence. If there are several iterators, each message goes to one of them.
public struct WebSocketMessages: AsyncSequence, Sendable {
  /// The type of the elements.
  public typealias Element = WebSocketMessage
  /// The type of the errors.
  public typealias Failure = WebSocketError

  let channel: any WebSocketChannel

  /// Makes an iterator. Nothing is read ahead.
  public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

  /// An iterator over a connection's messages.
  public struct Iterator: AsyncIteratorProtocol {
    let channel: any WebSocketChannel

    /// Returns the next message, as ``WebSocketChannel/receive()`` does.
    public mutating func next() async throws(WebSocketError) -> WebSocketMessage? {
      try await channel.receive()
    }

    /// Returns the next message, as ``WebSocketChannel/receive()`` does, for a caller on `actor`.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WebSocketError) -> WebSocketMessage? {
      try await channel.receive()
    }
  }
}
