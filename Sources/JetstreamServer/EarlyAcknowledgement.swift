import Jetstream

/// Decides when received messages are acknowledged before the next ping is due: the client keeps what it has sent until
/// then.
struct EarlyAcknowledgement {
  /// The index that was acknowledged to the client last.
  private var index = 0
  /// The number of bytes received since.
  private var bytes = 0

  /// Notes that bytes were received.
  mutating func received(bytes count: Int) { bytes += count }

  /// Notes that the messages up to an index are acknowledged.
  mutating func acknowledged(upTo index: Int) { (self.index, bytes) = (index, 0) }

  /// Returns whether as much as `limit` is not acknowledged of the messages received up to an index.
  func isDue(at index: Int, limit: ReliableChannel.Limit) -> Bool {
    index > self.index && (index - self.index >= limit.messages || bytes >= limit.bytes)
  }
}
