/// Changes that some observers are not told about.
extension Scope {
  /// Runs `changes` without telling the observers of these tokens what it changes, such as a view
  /// that has changed already and whose state is being written into the models.
  ///
  /// ```swift
  /// scope.withoutNotifying([rowsToken]) { canvas.shapes.move(from: 3, to: 0) }
  /// ```
  ///
  /// All others are told as always. What had been changed before is delivered to coalesced observers
  /// before this begins, and what is changed is delivered when it ends, instead of in the next tick;
  /// ``onChanges`` is not affected. The observers left out count the old values and differences that
  /// they are told later from here on. Calls may be nested.
  public func withoutNotifying<Result>(
    _ tokens: [ObservationToken], _ changes: () throws -> Result
  ) rethrows -> Result {
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
