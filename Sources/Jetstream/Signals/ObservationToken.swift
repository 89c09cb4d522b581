/// One registration of a callback.
///
/// Every observe and listen call returns a token. Dropping it cancels nothing: the observation ends
/// when ``cancel()`` is called, when the observer that was named at registration is gone, or with
/// the thing that is observed. A token retains neither side.
///
/// Tokens belong to the isolation domain of what they observe, like models.
public class ObservationToken {
  /// The object on whose behalf the callback runs, if one was named.
  final weak var observer: AnyObject?
  private let isBound: Bool
  /// Whether ``cancel()`` was called.
  @exclusivity(unchecked) public private(set) final var isCancelled = false
  /// Whether the callback is left out for the time being.
  @exclusivity(unchecked) final var isMuted = false

  init(observer: AnyObject?) {
    self.observer = observer
    self.isBound = observer != nil
  }

  /// Ends the observation: the callback does not run again, not even for something that is being
  /// delivered at this moment. Calling it twice is harmless.
  public final func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    forgetHandler()
    leaveHolder()
  }

  /// Whether a delivery should still reach the callback.
  final var isLive: Bool { !isCancelled && (!isBound || observer != nil) }

  /// Releases what the callback captured.
  func forgetHandler() {}

  /// Leaves the list that holds the token.
  func leaveHolder() {}
}

/// Says when a list of tokens has grown enough to look for dead ones, so that adding to it costs
/// O(1) on average and at most half of it is dead.
struct PruneSchedule {
  private var limit = 16

  mutating func isDue(at count: Int) -> Bool { count >= limit }

  mutating func didPrune(to count: Int) { limit = Swift.max(16, 2 * count) }
}
