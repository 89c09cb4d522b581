/// Observers of the properties that hold a model. They are called immediately.
extension ObservableModel {
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
