/// Decides how much may wait to be sent on one connection.
///
/// One message that is larger than the limit by itself does not count: it could otherwise never be sent, and neither
/// could anything in front of it or behind it. So at most the limit and one message wait.
struct OutboundRoom: Sendable {
  /// The size of the largest message since nothing waited.
  private var largest = 0

  /// Returns true if a message of `size` bytes may wait beside `waiting` bytes of others, and takes note of it then.
  mutating func admits(_ size: Int, beside waiting: Int, upTo limit: Int) -> Bool {
    let most = max(waiting == 0 ? 0 : largest, size)
    guard waiting + size - (most > limit ? most : 0) <= limit else { return false }
    largest = most
    return true
  }
}
