/// Decides when received messages are acknowledged before the next ping is due: the other side keeps what it has sent
/// until then.
package struct EarlyAcknowledgement {
  /// The index that was acknowledged last.
  private(set) var index = 0
  /// The number of bytes received since.
  private var bytes = 0

  package init() {}

  /// Notes that bytes were received.
  package mutating func received(bytes count: Int) { bytes += count }

  /// Notes that the messages up to an index are acknowledged.
  package mutating func acknowledged(upTo index: Int) { (self.index, bytes) = (index, 0) }

  /// Returns true if as much as `limit` is not acknowledged of the messages received up to an index.
  package func isDue(at index: Int, limit: ReliableChannel.Limit) -> Bool {
    index > self.index && (index - self.index >= limit.messages || bytes >= limit.bytes)
  }
}
