/// Changing models without notifying some observers.
extension Scope {
  /// Runs `changes` without notifying the observers of the given tokens, such as a view that has already changed
  /// and whose state is now being written into the models.
  ///
  /// ```swift
  /// scope.withoutNotifying([rowsToken]) { canvas.shapes.move(from: 3, to: 0) }
  /// ```
  ///
  /// All other observers are notified as usual. Earlier changes are delivered to coalesced observers before
  /// `changes` runs, and its own changes when it returns, instead of in the next tick. If an observer calls this
  /// method in a tick, the muted observers that the tick has not called yet are called before `changes` runs, and the
  /// others afterwards. ``onChanges`` is not affected. The old values and differences that the muted observers
  /// receive later are counted from the end of this call. Calls may be nested.
  public func withoutNotifying<Result>(
    _ tokens: [ObservationToken], _ changes: () throws -> Result
  ) rethrows -> Result {
    ImmediateDelivery.completeAll()
    for token in tokens where !token.isMuted { token.callIfDue() }
    ticker.deliverToObservers()
    let muted = tokens.filter { !$0.isMuted }
    for token in muted { token.isMuted = true }
    defer {
      ticker.deliverToObservers()
      for token in muted { token.isMuted = false }
    }
    return try changes()
  }
}
