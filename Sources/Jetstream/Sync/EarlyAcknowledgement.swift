/// Decides when received messages are acknowledged before the next ping is due: the other side keeps what it has sent
/// until then.
package struct EarlyAcknowledgement {
  /// The index that was acknowledged last.
  private(set) var index = 0
  /// The number of bytes received since, and of those sent.
  private var bytes = 0

  package init() {}

  /// Notes that bytes were received, or sent: a client's own change sets have their place in the server's order, too.
  package mutating func note(bytes count: Int) { bytes += count }

  /// Notes that the messages up to an index are acknowledged.
  package mutating func acknowledged(upTo index: Int) { (self.index, bytes) = (index, 0) }

  /// Returns true if as much as `limit` is not acknowledged: of the messages received up to an index, together with
  /// `others`, which have none.
  package func isDue(
    at index: Int, others: Int = 0, limit: ReliableChannel.Limit
  ) -> Bool {
    let count = index - self.index + others
    return count > 0 && (count >= limit.messages || bytes >= limit.bytes)
  }
}
