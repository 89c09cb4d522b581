/// Observers of the steps of a collection, which are called at once when the change has ended.
extension ObservableModel {
  /// Calls `handler` at once with each model inserted into the collection, and its index.
  @discardableResult
  public func observeCollectionAdd<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .insert(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` at once with each model inserted into the collection, and its index, until the
  /// token is cancelled.
  @discardableResult
  public func observeCollectionAdd<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, _ handler: @escaping (Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(nil, index(of: keyPath), Element.self) { element, kind in
      if case .insert(let position) = kind { handler(element, position) }
    }
  }

  /// Calls `handler` at once with each model removed from the collection, and the index it had.
  @discardableResult
  public func observeCollectionRemove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .remove(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` at once with each model removed from the collection, and the index it had, until
  /// the token is cancelled.
  @discardableResult
  public func observeCollectionRemove<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, _ handler: @escaping (Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(nil, index(of: keyPath), Element.self) { element, kind in
      if case .remove(let position) = kind { handler(element, position) }
    }
  }

  /// Calls `handler` at once with each model moved within the collection, the index it had and the
  /// index it has.
  @discardableResult
  public func observeCollectionMove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .move(let from, let to) = kind { handler(observer, element, from, to) }
    }
  }

  /// Calls `handler` at once with each model moved within the collection, the index it had and the
  /// index it has, until the token is cancelled.
  @discardableResult
  public func observeCollectionMove<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, _ handler: @escaping (Element, Int, Int) -> Void
  ) -> ObservationToken {
    observeSteps(nil, index(of: keyPath), Element.self) { element, kind in
      if case .move(let from, let to) = kind { handler(element, from, to) }
    }
  }

  private func observeSteps<Element: ModelObject>(
    _ observer: AnyObject?, _ index: Int, _: Element.Type,
    _ handler: @escaping (Element, CollectionChange.Kind) -> Void
  ) -> ObservationToken {
    let key = schema.properties[index].name
    return signals.onCollectionChange.listen(for: observer, filter: { $0.key == key }) {
      if let element = $0.model as? Element { handler(element, $0.kind) }
    }
  }
}
