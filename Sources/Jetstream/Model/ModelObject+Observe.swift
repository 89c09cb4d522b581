extension ModelObject {
  /// The model's raw signals.
  public final var signals: ModelSignals { ModelSignals(ensureRecord()) }

  /// Cancels everything that `observer` observes on this model.
  public final func removeObservers(_ observer: AnyObject) { record?.observers?.remove(observer) }
}

/// What the typed observe methods are written on, so that `Self` is the subclass in key paths.
/// ``ModelObject`` is the only class that conforms.
///
/// Each way of observing comes with an observer, which is held weakly and handed to the callback,
/// and without one, for short uses: the observation then lasts until its token is cancelled or the
/// model is gone. All of them run in the isolation domain of the model.
public protocol ObservableModel: ModelObject {}

extension ModelObject: ObservableModel {}

// MARK: Once a tick

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
    observeChange(observer, paths: keyPaths, isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which one of the named properties has changed, until the
  /// token is cancelled.
  @discardableResult
  public func observeChange(
    _ keyPaths: PartialKeyPath<Self>..., isolation: (any Actor)? = #isolation,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeChange(nil, paths: keyPaths, isolation: isolation, handler)
  }

  /// Calls `handler` once in each tick in which one of the properties named by text has changed.
  ///
  /// A name that the class does not have is a programming error.
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, keys: [String], isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    observeChange(observer, keys: keys, isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which one of the properties named by text has changed,
  /// until the token is cancelled.
  @discardableResult
  public func observeChange(
    keys: [String], isolation: (any Actor)? = #isolation, _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeChange(nil, keys: keys, isolation: isolation, handler)
  }

  /// Calls `handler` once in each tick in which the value has changed, with the value as it was the
  /// last time and as it is now. A value that is back where it was is not told.
  ///
  /// ```swift
  /// shape.observeChange(self, \.x) { me, old, new in me.animate(from: old, to: new) }
  /// ```
  ///
  /// Of a computed property the last value is kept without keeping its models alive: one that is
  /// gone by then is reported as nil, or left out of an array. For large collections
  /// ``observeDifference(_:_:isolation:_:)`` costs less.
  @discardableResult
  public func observeChange<Observer: AnyObject, Value>(
    _ observer: Observer, _ keyPath: KeyPath<Self, Value>, isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer, Value, Value) -> Void
  ) -> ObservationToken {
    observeValue(observer, keyPath, isolation: isolation) { [weak observer] in
      if let observer { handler(observer, $0, $1) }
    }
  }

  /// Calls `handler` once in each tick in which the value has changed, with the value as it was the
  /// last time and as it is now, until the token is cancelled.
  @discardableResult
  public func observeChange<Value>(
    _ keyPath: KeyPath<Self, Value>, isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    observeValue(nil, keyPath, isolation: isolation, handler)
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
    let (_, reads) = ReadTracker.track { self[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === self, keyPath is any WritableRoot,
      schema.properties[reads[0].index].access.valueType == type(of: keyPath).valueType
    else { return .composite }
    return .property(reads[0].index)
  }

  private func observeChange(
    _ observer: AnyObject?, paths: [PartialKeyPath<Self>], isolation: (any Actor)?,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    let observation = ChangeObservation(observer: observer)
    observation.run(handler)
    var properties: [Int] = []
    for path in paths {
      switch resolve(path) {
      case .property(let index): properties.append(index)
      case .composite: addComposite(path, to: observation)
      }
    }
    let token = add(
      observation, properties: paths.isEmpty ? nil : PropertySet(properties), isolation: isolation)
    for composite in observation.composites { _ = composite.evaluate() }
    return token
  }

  private func observeChange(
    _ observer: AnyObject?, keys: [String], isolation: (any Actor)?,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    let indices = schema.indices(of: keys)
    let observation = ChangeObservation(observer: observer)
    observation.run(handler)
    return add(observation, properties: PropertySet(indices), isolation: isolation)
  }

  private func observeValue<Value>(
    _ observer: AnyObject?, _ keyPath: KeyPath<Self, Value>, isolation: (any Actor)?,
    _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    let observation = ChangeObservation(observer: observer)
    var properties: [Int] = []
    var keepsModels = false
    switch resolve(keyPath) {
    case .property(let index):
      properties = [index]
      keepsModels = true
    case .composite: addComposite(keyPath, to: observation)
    }
    var last = RememberedValue(self[keyPath: keyPath], keepsModels: keepsModels)
    let record = ensureRecord()
    observation.run { [unowned record] isMuted in
      guard let model = record.model as? Self else { return }
      let new = model[keyPath: keyPath]
      if last.isSame(as: new) { return }
      let old = last.value ?? new
      last = RememberedValue(new, keepsModels: keepsModels)
      if !isMuted { handler(old, new) }
    }
    let token = add(observation, properties: PropertySet(properties), isolation: isolation)
    for composite in observation.composites { _ = composite.evaluate() }
    return token
  }

  private func addComposite(_ path: PartialKeyPath<Self>, to observation: ChangeObservation) {
    let watch = CompositeWatch(ensureRecord(), observation: observation) { model in
      (model as! Self)[keyPath: path]
    }
    observation.composites.append(watch)
  }

  func add(
    _ observation: ChangeObservation, properties: PropertySet?, isolation: (any Actor)?
  ) -> ObservationToken {
    let observers = ensureRecord().ensureObservers(ticker: isolation.map { Ticker.on($0) })
    observers.add(observation)
    if properties?.isEmpty != true {
      observers.changes.append(.init(properties: properties, target: .observation(observation)))
    }
    return observation
  }
}

extension ChangeObservation {
  /// Sets the handler. While the token is muted, it is not called.
  func run(_ handler: @escaping () -> Void) {
    run { isMuted in if !isMuted { handler() } }
  }

  /// Sets the handler, which is told whether the token is muted: it may have something to forget.
  func run(_ handler: @escaping (_ isMuted: Bool) -> Void) {
    self.handler = { [unowned self] in handler(isMuted) }
  }
}

/// Key paths that can be written through a reference: `@Property` members have them, getters do not.
private protocol WritableRoot {}

extension ReferenceWritableKeyPath: WritableRoot {}
