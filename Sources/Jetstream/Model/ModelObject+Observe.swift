extension ModelObject {
  /// The model's raw signals.
  public final var signals: ModelSignals { ModelSignals(ensureRecord().ensureObservers()) }

  /// Cancels everything that `observer` observes on this model.
  public final func removeObservers(_ observer: AnyObject) {
    guard let record else { return }
    var own: [ChangeNode] = []
    record.nodes.forEach { if $0.observer === observer { own.append($0) } }
    for node in own { node.cancel() }
    record.observers?.remove(observer)
  }
}

/// What the typed observe methods are written on, so that `Self` is the subclass in key paths.
/// ``ModelObject`` is the only class that conforms.
public protocol ObservableModel: ModelObject {}

extension ModelObject: ObservableModel {}

extension ObservableModel {
  /// Calls `handler` once in each tick in which one of the named properties has changed; without
  /// names, any property.
  ///
  /// A key path that leads to a computed property observes what its getter reads, also through other
  /// models; it counts as changed when its value is different, or when it cannot be compared.
  ///
  /// ```swift
  /// shape.observeChange(self, \.x, \.y) { me in me.redraw() }
  /// ```
  ///
  /// The handler runs in the isolation domain of the model. Outside of a scope that is the actor of
  /// the caller; where there is none, changes are delivered once the model is in a scope.
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPaths: PartialKeyPath<Self>...,
    isolation: (any Actor)? = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    add(observing: keyPaths, isolation: isolation) {
      BoundObservation(observer, properties: $0, handler)
    }
  }

  /// Calls `handler` once in each tick in which the property has changed.
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPath: PartialKeyPath<Self>,
    isolation: (any Actor)? = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let record = ensureRecord()
    guard let index = record.schema.keyPaths.index(of: keyPath) else {
      return add(observing: [keyPath], isolation: isolation) {
        BoundObservation(observer, properties: $0, handler)
      }
    }
    let observation = BoundObservation(observer, properties: PropertySet(index), handler)
    add(observation, to: record, isolation: isolation)
    return observation
  }

  /// Calls `handler` once in each tick in which one of the named properties has changed, until the
  /// token is cancelled.
  @discardableResult
  public func observeChange(
    _ keyPaths: PartialKeyPath<Self>..., isolation: (any Actor)? = #isolation,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    add(observing: keyPaths, isolation: isolation) { FreeObservation(properties: $0, handler) }
  }

  /// Calls `handler` once in each tick in which one of the properties named by text has changed.
  ///
  /// A name that the class does not have is a programming error.
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, keys: [String], isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let properties = PropertySet(schema.indices(of: keys))
    let observation = BoundObservation(observer, properties: properties, handler)
    add(observation, to: ensureRecord(), isolation: isolation)
    return observation
  }

  /// Calls `handler` at once, after each change of the property, with the old and the new value.
  @discardableResult
  public func observeChangeImmediately<Observer: AnyObject, Value: PropertyValue>(
    _ observer: Observer, _ keyPath: KeyPath<Self, Value>,
    _ handler: @escaping (Observer, Value, Value) -> Void
  ) -> ObservationToken {
    let key = name(of: keyPath)
    return signals.onPropertyChange.listen(observer, filter: { $0.key == key }) {
      observer, change in
      guard let new = change.new as? Value else { return }
      if let old = change.old as? Value { handler(observer, old, new) }
    }
  }

  /// Calls `handler` at once, after each change of one of the properties named by text.
  ///
  /// A name that the class does not have is a programming error.
  @discardableResult
  public func observeChangeImmediately<Observer: AnyObject>(
    _ observer: Observer, keys: [String],
    _ handler: @escaping (Observer, PropertyChange) -> Void
  ) -> ObservationToken {
    _ = schema.indices(of: keys)
    return signals.onPropertyChange.listen(observer, filter: { keys.contains($0.key) }, handler)
  }

  /// Calls `handler` at once, after each change of any property.
  @discardableResult
  public func observeChangeImmediately<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, PropertyChange) -> Void
  ) -> ObservationToken {
    signals.onPropertyChange.listen(observer, handler)
  }

  /// Calls `handler` at once with each model inserted into the collection, and its index.
  @discardableResult
  public func observeCollectionAdd<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeCollection(observer, keyPath) { observer, element, kind in
      if case .insert(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` at once with each model inserted into the collection.
  @discardableResult
  public func observeCollectionAdd<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element) -> Void
  ) -> ObservationToken {
    observeCollectionAdd(observer, keyPath) { observer, element, _ in handler(observer, element) }
  }

  /// Calls `handler` at once with each model removed from the collection, and the index it had.
  @discardableResult
  public func observeCollectionRemove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int) -> Void
  ) -> ObservationToken {
    observeCollection(observer, keyPath) { observer, element, kind in
      if case .remove(let position) = kind { handler(observer, element, position) }
    }
  }

  /// Calls `handler` at once with each model removed from the collection.
  @discardableResult
  public func observeCollectionRemove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element) -> Void
  ) -> ObservationToken {
    observeCollectionRemove(observer, keyPath) { observer, element, _ in
      handler(observer, element)
    }
  }

  /// Calls `handler` at once with each model moved within the collection, the index it had and the
  /// index it has.
  @discardableResult
  public func observeCollectionMove<Observer: AnyObject, Element>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, Int, Int) -> Void
  ) -> ObservationToken {
    observeCollection(observer, keyPath) { observer, element, kind in
      if case .move(let from, let to) = kind { handler(observer, element, from, to) }
    }
  }

  /// Calls `handler` once in each tick in which this model or one that it holds, at any depth, has
  /// changed. Cost: a tick climbs from each changed model to all that hold it.
  @discardableResult
  public func observeTreeChange<Observer: AnyObject>(
    _ observer: Observer, isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let observation = TreeObservation(observer: observer, isLoose: scope == nil)
    observation.handler = { [weak observer] in if let observer { handler(observer) } }
    let record = ensureRecord()
    record.needsTicker(of: isolation)
    record.ensureObservers().add(observation)
    return observation
  }

  /// Calls `handler` at once when the model comes into a scope.
  @discardableResult
  public func observeAttach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onAttach.listen(observer, handler)
  }

  /// Calls `handler` at once when the model leaves its scope: when nothing that the root reaches
  /// holds it any more.
  @discardableResult
  public func observeDetach<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, Scope) -> Void
  ) -> ObservationToken {
    signals.onDetach.listen(observer, handler)
  }

  /// Calls `handler` at once when a property comes to hold the model, with its owner and its name.
  @discardableResult
  public func observeAddedToParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onAddedToParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }

  /// Calls `handler` at once when a property holds the model no more, with its owner and its name.
  @discardableResult
  public func observeRemovedFromParent<Observer: AnyObject>(
    _ observer: Observer, _ handler: @escaping (Observer, ModelObject, String) -> Void
  ) -> ObservationToken {
    signals.onRemovedFromParent.listen(observer) { handler($0, $1.parent, $1.key) }
  }
}

// MARK: Inside

/// What a key path leads to.
private enum Resolved {
  case property(Int)
  case composite
}

extension ObservableModel {
  private func observeCollection<Observer: AnyObject, Element: ModelObject>(
    _ observer: Observer, _ keyPath: KeyPath<Self, ModelArray<Element>>,
    _ handler: @escaping (Observer, Element, CollectionChange.Kind) -> Void
  ) -> ObservationToken {
    let key = name(of: keyPath)
    return signals.onCollectionChange.listen(observer, filter: { $0.key == key }) {
      if let element = $1.model as? Element { handler($0, element, $1.kind) }
    }
  }

  /// The property that a key path leads to; a computed one is a programming error here.
  private func name(of keyPath: PartialKeyPath<Self>) -> String {
    guard case .property(let index) = resolve(keyPath) else {
      preconditionFailure(
        "\(keyPath) is not a @Property of \(schema.wireName); observeChange follows computed ones.")
    }
    return schema.properties[index].name
  }

  /// Runs the getter to learn what it reads. One that can be written and reads one property of its
  /// own model, of its own type, is that property.
  private func resolve(_ keyPath: PartialKeyPath<Self>) -> Resolved {
    if let index = schema.keyPaths.index(of: keyPath) { return .property(index) }
    let (_, reads) = ReadTracker.track { self[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === self, keyPath is any WritableRoot,
      schema.properties[reads[0].index].access.valueType == type(of: keyPath).valueType
    else { return .composite }
    schema.keyPaths.store(reads[0].index, for: keyPath)
    return .property(reads[0].index)
  }

  /// Registers what `make` makes of the set of properties that the key paths lead to: nil for all.
  private func add(
    observing keyPaths: [PartialKeyPath<Self>], isolation: (any Actor)?,
    _ make: (PropertySet?) -> ChangeObservation
  ) -> ObservationToken {
    let record = ensureRecord()
    var properties: PropertySet?
    var composites: [PartialKeyPath<Self>] = []
    for keyPath in keyPaths {
      switch resolve(keyPath) {
      case .property(let index): properties = (properties ?? PropertySet()).inserting(index)
      case .composite: composites.append(keyPath)
      }
    }
    let observation = make(keyPaths.isEmpty ? nil : properties ?? PropertySet())
    add(observation, to: record, isolation: isolation)
    for keyPath in composites {
      let watch = CompositeWatch(record, observation: observation) {
        ($0 as! Self)[keyPath: keyPath]
      }
      observation.composites.append(watch)
      _ = watch.evaluate()
    }
    return observation
  }

  @inline(__always)
  private func add(
    _ observation: ChangeObservation, to record: ModelRecord, isolation: (any Actor)?
  ) {
    record.needsTicker(of: isolation)
    record.add(observation)
  }
}

/// Key paths that can be written through a reference: `@Property` members have them, getters do not.
private protocol WritableRoot {}

extension ReferenceWritableKeyPath: WritableRoot {}
