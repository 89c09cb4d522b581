/// Observers of a model's place in the tree. They are called immediately.
extension ObservableModel {
  /// Calls `handler` immediately when the model enters a scope.
  @discardableResult
  public func observeAttach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onAttach.listen(observer, handler)
  }

  /// Calls `handler` immediately when the model enters a scope, until the token is cancelled.
  @discardableResult
  public func observeAttach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onAttach.listen(handler)
  }

  /// Calls `handler` immediately when the model leaves its scope, because the root no longer
  /// reaches it.
  @discardableResult
  public func observeDetach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onDetach.listen(observer, handler)
  }

  /// Calls `handler` immediately when the model leaves its scope, until the token is cancelled.
  @discardableResult
  public func observeDetach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onDetach.listen(handler)
  }

  /// Calls `handler` immediately when a property begins to hold the model, with the parent and the
  /// property's name.
  @discardableResult
  public func observeAddedToParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onAddedToParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }

  /// Calls `handler` immediately when a property begins to hold the model, with the parent and the
  /// property's name, until the token is cancelled.
  @discardableResult
  public func observeAddedToParent(
    _ handler: @escaping (ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onAddedToParent.listen { handler($0.parent, $0.key) }
  }

  /// Calls `handler` immediately when a property ceases to hold the model, with the parent and the
  /// property's name.
  @discardableResult
  public func observeRemovedFromParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onRemovedFromParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }

  /// Calls `handler` immediately when a property ceases to hold the model, with the parent and the
  /// property's name, until the token is cancelled.
  @discardableResult
  public func observeRemovedFromParent(
    _ handler: @escaping (ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onRemovedFromParent.listen { handler($0.parent, $0.key) }
  }
}
