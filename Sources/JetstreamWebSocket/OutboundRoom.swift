/// Decides how much may wait to be sent on one connection.
///
/// One message that is larger than the limit by itself does not count: it could otherwise never be sent, and neither
/// could anything in front of it or behind it. So at most the limit and one message wait.
struct OutboundRoom: Sendable {
  /// The size of the last message above the limit.
  private var large = 0
  /// The size of all messages that were admitted behind it.
  private var behind = 0

  /// Returns true if a message of `size` bytes may wait beside `waiting` bytes of others, and takes note of it then.
  mutating func admits(_ size: Int, beside waiting: Int, upTo limit: Int) -> Bool {
    if size > limit {
      guard waiting <= limit else { return false }
      (large, behind) = (size, 0)
      return true
    }
    // Messages go out in order: the large one has gone when no more waits than was admitted behind it.
    let rest = max(min(large, waiting - behind), 0)
    guard waiting - rest + size <= limit else { return false }
    behind += size
    return true
  }
}
