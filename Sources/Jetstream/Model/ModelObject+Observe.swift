extension ModelObject {
  /// The model's raw signals.
  public final var signals: ModelSignals { ModelSignals(ensureRecord()) }

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
///
/// Each way of observing comes with an observer, which is held weakly and handed to the callback,
/// and without one, for short uses: the observation then lasts until its token is cancelled or the
/// model is gone. All of them run in the isolation domain of the model.
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

}

extension ModelObject {
  /// Calls `handler` once in each tick in which one of the properties has changed.
  @discardableResult
  package final func observeChange<Observer: AnyObject>(
    _ observer: Observer, of properties: [ModelSchema.Property],
    isolation: (any Actor)? = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let properties = PropertySet(properties.map(\.index))
    let observation = BoundObservation(observer, properties: properties, handler)
    add(observation, to: ensureRecord(), isolation: isolation)
    return observation
  }

  /// Calls `handler` once in each tick in which one of the properties has changed, until the token is cancelled.
  @discardableResult
  package final func observeChange(
    of properties: [ModelSchema.Property], isolation: (any Actor)? = #isolation,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    let observation = FreeObservation(
      properties: PropertySet(properties.map(\.index)), handler)
    add(observation, to: ensureRecord(), isolation: isolation)
    return observation
  }
}

// MARK: Inside

/// What a key path leads to.
enum ResolvedPath {
  case property(Int)
  case composite
}

extension ObservableModel {
  /// The property that a key path leads to; a computed one is a programming error here.
  func index(of keyPath: PartialKeyPath<Self>) -> Int {
    guard case .property(let index) = resolve(keyPath) else {
      preconditionFailure(
        "\(keyPath) is not a @Property of \(schema.wireName); computed ones can be observed with "
          + "observeChange, and one at a time with observeChangeImmediately.")
    }
    return index
  }

  /// Runs the getter to learn what it reads. One that can be written and reads one property of its
  /// own model, of its own type, is that property.
  func resolve(_ keyPath: PartialKeyPath<Self>) -> ResolvedPath {
    if let index = schema.keyPaths.index(of: keyPath) { return .property(index) }
    let (_, reads) = ReadTracker.track { self[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === self, keyPath is any WritableRoot,
      schema.properties[reads[0].index].access.declaredType == type(of: keyPath).valueType
    else { return .composite }
    schema.keyPaths.store(reads[0].index, for: keyPath)
    return .property(reads[0].index)
  }

  /// Registers what `make` makes of the set of properties that the key paths lead to: nil for all.
  func add(
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
  func add(
    _ observation: ChangeObservation, to record: ModelRecord, isolation: (any Actor)?
  ) {
    record.needsTicker(of: isolation)
    record.add(observation)
  }
}

/// Key paths that can be written through a reference: `@Property` members have them, getters do not.
private protocol WritableRoot {}

extension ReferenceWritableKeyPath: WritableRoot {}
