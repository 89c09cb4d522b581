/// Observers of the steps of a collection. They are called immediately after a change has ended.
extension ObservableModel {
  /// Calls `handler` immediately with each model inserted into the collection, and its index.
  @discardableResult
  public func observeCollectionAdd<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .insert(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` immediately with each model inserted into the collection, and its index, until
  /// the token is cancelled.
  @discardableResult
  public func observeCollectionAdd<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, _ handler: @escaping (Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(nil, index(of: keyPath), Element.self) { element, kind in
      if case .insert(let position) = kind { handler(element, position) }
    }
  }

  /// Calls `handler` immediately with each model removed from the collection, and its former index.
  @discardableResult
  public func observeCollectionRemove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .remove(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` immediately with each model removed from the collection, and its former index,
  /// until the token is cancelled.
  @discardableResult
  public func observeCollectionRemove<Element>(
    _ keyPath: KeyPath<Self, ModelArray<Element>>, _ handler: @escaping (Element, Int) -> Void
  ) -> ObservationToken {
    observeSteps(nil, index(of: keyPath), Element.self) { element, kind in
      if case .remove(let position) = kind { handler(element, position) }
    }
  }

  /// Calls `handler` immediately with each model moved within the collection, its old index and its
  /// new one.
  @discardableResult
  public func observeCollectionMove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int, Int) -> Void
  ) -> ObservationToken {
    observeSteps(observer, index(of: keyPath), Element.self) { [weak observer] element, kind in
      if let observer, case .move(let from, let to) = kind { handler(observer, element, from, to) }
    }
  }

  /// Calls `handler` immediately with each model moved within the collection, its old index and its
  /// new one, until the token is cancelled.
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
