/// The registration of one callback.
///
/// Every observe and listen call returns a token. Dropping the token cancels nothing: the
/// observation ends when ``cancel()`` is called, when the observer passed at registration is
/// released, or when the observed object is released. A token retains neither the observer nor the
/// observed object.
///
/// A token belongs to the isolation domain of the object that it observes, as models do.
public class ObservationToken {
  /// The object on whose behalf the callback runs; nil if none was passed or it has been released.
  final weak var observer: AnyObject?
  private let isBound: Bool
  /// True after ``cancel()`` was called.
  @exclusivity(unchecked) package private(set) final var isCancelled = false
  /// True while the callback is skipped temporarily.
  @exclusivity(unchecked) final var isMuted = false

  init(observer: AnyObject?) {
    self.observer = observer
    self.isBound = observer != nil
  }

  /// Ends the observation. The callback does not run again, not even for a change that is being
  /// delivered at this moment. Cancelling twice has no effect.
  public final func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    forgetHandler()
    leaveHolder()
  }

  /// True while deliveries reach the callback: the token is not cancelled and its observer, if one
  /// was passed, still exists.
  final var isLive: Bool { !isCancelled && (!isBound || observer != nil) }

  /// Calls the callback if a running tick has collected it and has not called it yet; the tick leaves it out then.
  func callIfDue() {}

  /// Releases the objects that the callback captured.
  func forgetHandler() {}

  /// Removes the token from the list that holds it.
  func leaveHolder() {}
}

/// Decides when a list of tokens has grown enough to be searched for dead ones: adding then costs
/// O(1) on average, and at most half of the list is dead.
struct PruneSchedule {
  private var limit = 16

  mutating func isDue(at count: Int) -> Bool { count >= limit }

  mutating func didPrune(to count: Int) { limit = Swift.max(16, 2 * count) }
}
