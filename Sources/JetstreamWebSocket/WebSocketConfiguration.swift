/// How one connection behaves: its limits and its patience.
public struct WebSocketConfiguration: Sendable {
  /// What happens when a message does not fit into the outbound queue, beyond `send` throwing
  /// ``WebSocketError/outboundQueueFull``.
  public enum SlowConsumerPolicy: Sendable, Hashable {
    /// Nothing: the caller decides.
    case keep
    /// The connection is closed with 1008, and dropped if the peer does not even read that within
    /// the close timeout.
    case close
    /// The connection is dropped at once.
    case abort
  }

  /// How large the peer's frames and messages may be.
  public var limits: WebSocketLimits

  /// Reading from the socket pauses while at least this many bytes of messages are unread. What one
  /// read brings, some 64 KiB, and one message under way may come on top.
  public var maximumInboundBytes: Int

  /// Reading from the socket pauses while at least this many messages are unread. What one read
  /// brings may come on top.
  public var maximumInboundMessages: Int

  /// The most bytes that may wait to be sent, headers included. A message larger than this can
  /// never be sent.
  public var maximumOutboundBytes: Int

  /// What to do about a peer that does not read as fast as it is sent to.
  public var slowConsumerPolicy: SlowConsumerPolicy

  /// How long a close may take from its first frame until the socket is gone.
  public var closeTimeout: Duration

  /// Makes a configuration; each value left out has the default shown.
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
  }
}
