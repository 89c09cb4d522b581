extension ModelObject {
  /// The uncoalesced signals of the model.
  public final var signals: ModelSignals { ModelSignals(ensureRecord()) }

  /// Cancels all observations of this model that were registered with `observer`.
  public final func removeObservers(_ observer: AnyObject) {
    guard let record else { return }
    var own: [ChangeNode] = []
    record.nodes.forEach { if $0.observer === observer { own.append($0) } }
    for node in own { node.cancel() }
    record.observers?.remove(observer)
  }
}

/// Declares the typed observe methods, with `Self` as the subclass in key paths. ``ModelObject`` is
/// the only class that conforms.
///
/// Each method exists with an observer, which is held weakly and passed to the callback, and
/// without one, for short-lived uses: the observation then lasts until its token is cancelled or
/// the model is released. All callbacks run in the isolation domain of the model.
public protocol ObservableModel: ModelObject {}

extension ModelObject: ObservableModel {}

extension ObservableModel {
  /// Calls `handler` once in each tick in which one of the properties has changed; without key
  /// paths, any property of the model.
  ///
  /// A key path to a computed property observes the properties that its getter reads, also those of
  /// other models. The computed property counts as changed when its value is different or cannot be
  /// compared.
  ///
  /// ```swift
  /// shape.observeChange(self, \.x, \.y) { me in me.redraw() }
  /// ```
  ///
  /// The handler runs in the isolation domain of the model. For a model in no scope, that is the
  /// actor of the caller. Code that is on no actor, such as a method of a model, passes that of a
  /// ticker:
  ///
  /// ```swift
  /// final class Note: ModelObject {
  ///   @Property var title = ""
  ///   @Property var edited: Date?
  ///
  ///   func dateEdits(in scope: Scope) {
  ///     observeChange(self, \.title, isolation: scope.ticker.isolation) { note in note.edited = .now }
  ///   }
  /// }
  /// ```
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPaths: PartialKeyPath<Self>...,
    isolation: any Actor = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    add(observing: keyPaths, isolation: isolation) {
      BoundObservation(observer, properties: $0, handler)
    }
  }

  /// Calls `handler` once in each tick in which the stored or computed property has changed.
  @discardableResult
  public func observeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPath: PartialKeyPath<Self>,
    isolation: any Actor = #isolation, _ handler: @escaping (Observer) -> Void
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

  /// Calls `handler` once in each tick in which one of the properties has changed, until the token
  /// is cancelled. Without key paths, any property counts.
  @discardableResult
  public func observeChange(
    _ keyPaths: PartialKeyPath<Self>..., isolation: any Actor = #isolation,
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

/// The target of a key path: a stored property, by index, or a computed one.
enum ResolvedPath {
  case property(Int)
  case composite
}

extension ObservableModel {
  /// Returns the index of the property that a key path leads to. Traps for a computed property.
  func index(of keyPath: PartialKeyPath<Self>) -> Int {
    guard case .property(let index) = resolve(keyPath) else {
      preconditionFailure(
        "\(keyPath) is not a @Property of \(schema.wireName); computed ones can be observed with "
          + "observeChange, and one at a time with observeChangeImmediately.")
    }
    return index
  }

  /// Runs the getter and tracks its reads. A key path leads to a stored property if it is writable, its getter reads
  /// exactly one property, of this model and of the key path's value type, and returns that as it is: this is tried
  /// with some values on another model of the class.
  func resolve(_ keyPath: PartialKeyPath<Self>) -> ResolvedPath {
    if let index = schema.keyPaths.index(of: keyPath) { return .property(index) }
    let (_, reads) = ReadTracker.track { self[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === self, keyPath is any WritableRoot else {
      return .composite
    }
    let property = schema.properties[reads[0].index]
    guard property.access.declaredType == type(of: keyPath).valueType else { return .composite }
    let index = schema.keyPaths.index(of: keyPath) {
      let other = type(of: self).init()
      let isStored = other.isIdentity(of: property, isThorough: false) { other[keyPath: keyPath] }
      // A key path that is not disproved counts as stored: of some types there are no values to try.
      return isStored == false ? nil : property.index
    }
    return index.map(ResolvedPath.property) ?? .composite
  }

  /// Registers the observation that `make` returns for the set of stored properties; nil stands for
  /// all.
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

/// Key paths that can be written through a reference: those of `@Property` members, not of getters.
private protocol WritableRoot {}

extension ReferenceWritableKeyPath: WritableRoot {}
