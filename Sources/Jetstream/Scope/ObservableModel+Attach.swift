/// Observers of the scope that a model is in. They are called immediately.
extension ObservableModel {
  /// Calls `handler` immediately when the model enters a scope.
  @discardableResult
  public func observeAttach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onAttach.listen(observer) { handler($0, $1.scope) }
  }

  /// Calls `handler` immediately when the model enters a scope, until the token is cancelled.
  @discardableResult
  public func observeAttach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onAttach.listen { handler($0.scope) }
  }

  /// Calls `handler` immediately when the model leaves its scope, because the root no longer
  /// reaches it.
  @discardableResult
  public func observeDetach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onDetach.listen(observer) { handler($0, $1.scope) }
  }

  /// Calls `handler` immediately when the model leaves its scope, until the token is cancelled.
  @discardableResult
  public func observeDetach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onDetach.listen { handler($0.scope) }
  }
}
