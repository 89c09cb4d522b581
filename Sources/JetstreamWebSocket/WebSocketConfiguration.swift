/// The limits and timeouts of one connection.
public struct WebSocketConfiguration: Sendable {
  /// The treatment of a connection whose outbound queue is full. In every case, `send` throws
  /// ``WebSocketError/outboundQueueFull``.
  public enum SlowConsumerPolicy: Sendable, Hashable {
    /// The connection stays open: the caller decides what to do.
    case keep
    /// The connection is closed with 1008. It is dropped if the peer does not read even the close frame within the
    /// close timeout.
    case close
    /// The connection is dropped at once.
    case abort
  }

  /// The largest frame and message that the peer may send.
  public var limits: WebSocketLimits

  /// The number of bytes of unread messages at which reading from the socket pauses. One more read, of some 64 KiB, and
  /// one unfinished message may come on top. At least 1.
  public var maximumInboundBytes: Int { didSet { check() } }

  /// The number of unread messages at which reading from the socket pauses. The messages of one more read may come on
  /// top. At least 1.
  public var maximumInboundMessages: Int { didSet { check() } }

  /// The largest number of bytes that may wait to be sent, headers included. One message that is larger than this by
  /// itself may always wait, and does not count.
  public var maximumOutboundBytes: Int

  /// The treatment of a peer that reads more slowly than this side sends.
  public var slowConsumerPolicy: SlowConsumerPolicy

  /// The time that a close may take, from its first frame until the socket is closed. Not negative.
  public var closeTimeout: Duration { didSet { check() } }

  /// Makes a configuration.
  ///
  /// - Precondition: Both limits of what is inbound are at least 1, and the close timeout is not negative.
  public init(
    limits: WebSocketLimits = WebSocketLimits(),
    maximumInboundBytes: Int = 1 << 20,
    maximumInboundMessages: Int = 1024,
    maximumOutboundBytes: Int = 16 << 20,
    slowConsumerPolicy: SlowConsumerPolicy = .close,
    closeTimeout: Duration = .seconds(5)
  ) {
    self.limits = limits
    self.maximumInboundBytes = maximumInboundBytes
    self.maximumInboundMessages = maximumInboundMessages
    self.maximumOutboundBytes = maximumOutboundBytes
    self.slowConsumerPolicy = slowConsumerPolicy
    self.closeTimeout = closeTimeout
    check()
  }

  private func check() {
    precondition(
      maximumInboundBytes >= 1, "A WebSocket connection must take at least 1 inbound byte.")
    precondition(
      maximumInboundMessages >= 1, "A WebSocket connection must take at least 1 inbound message.")
    precondition(
      closeTimeout >= .zero, "The close timeout of a WebSocket connection must not be negative.")
  }
}
