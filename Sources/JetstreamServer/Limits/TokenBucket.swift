/// An allowance that is replenished at a rate, and that may be overdrawn: what was received cannot be unread.
///
/// It holds tokens for ten seconds at its rate, so that a burst of ten times the rate passes. It is kept as the time
/// at which it will be full again: each token that is taken makes that later by the time in which one comes. It has
/// no clock.
struct TokenBucket {
  /// The time at the rate that may be taken at once.
  static let burst = Duration.seconds(10)

  /// The time in which a token comes; nil if there is no limit.
  private let interval: Duration?
  private var fullAt = Duration.zero

  /// Makes a full bucket.
  ///
  /// - Parameter rate: the number of tokens that come in a second; nil for no limit.
  init(perSecond rate: Int?) { interval = rate.map { .seconds(1) / max(1, $0) } }

  /// Takes tokens. Cost: O(1), whatever their number.
  ///
  /// - Returns: the time until nothing is owed.
  mutating func take(_ count: Int, at now: Duration) -> Duration {
    guard let interval, count > 0 else { return .zero }
    fullAt = max(fullAt, now) + interval * count
    return max(.zero, fullAt - now - Self.burst)
  }
}
