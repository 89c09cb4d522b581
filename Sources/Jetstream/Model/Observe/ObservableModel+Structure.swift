/// Observers of a model's place in the tree, which are called at once.
extension ObservableModel {
  /// Calls `handler` at once when the model comes into a scope.
  @discardableResult
  public func observeAttach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onAttach.listen(observer, handler)
  }

  /// Calls `handler` at once when the model comes into a scope, until the token is cancelled.
  @discardableResult
  public func observeAttach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onAttach.listen(handler)
  }

  /// Calls `handler` at once when the model leaves its scope: when nothing that the root reaches
  /// holds it any more.
  @discardableResult
  public func observeDetach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onDetach.listen(observer, handler)
  }

  /// Calls `handler` at once when the model leaves its scope, until the token is cancelled.
  @discardableResult
  public func observeDetach(_ handler: @escaping (Scope) -> Void) -> ObservationToken {
    signals.onDetach.listen(handler)
  }

  /// Calls `handler` at once when a property comes to hold the model, with its owner and its name.
  @discardableResult
  public func observeAddedToParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onAddedToParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }

  /// Calls `handler` at once when a property comes to hold the model, with its owner and its name,
  /// until the token is cancelled.
  @discardableResult
  public func observeAddedToParent(
    _ handler: @escaping (ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onAddedToParent.listen { handler($0.parent, $0.key) }
  }

  /// Calls `handler` at once when a property holds the model no more, with its owner and its name.
  @discardableResult
  public func observeRemovedFromParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onRemovedFromParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }

  /// Calls `handler` at once when a property holds the model no more, with its owner and its name,
  /// until the token is cancelled.
  @discardableResult
  public func observeRemovedFromParent(
    _ handler: @escaping (ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onRemovedFromParent.listen { handler($0.parent, $0.key) }
  }
}
