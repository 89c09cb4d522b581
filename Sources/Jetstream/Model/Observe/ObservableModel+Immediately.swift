/// Observers that are called immediately, before the statement after the change runs.
extension ObservableModel {
  /// Calls `handler` immediately after each change of a stored or computed property, with the old
  /// and the new value.
  ///
  /// A key path to a computed property observes the properties that its getter reads, also those of
  /// other models: after each write to one of them the getter runs again, and the handler is called
  /// if the value is different or cannot be compared. The old value of a computed property does not
  /// keep its models alive, as in `observeChange`.
  ///
  /// ```swift
  /// shape.observeChangeImmediately(self, \.area) { me, old, new in me.check(new) }
  /// ```
  ///
  /// The handler may change models. All immediate observers, those of collections and of attaching among them, are
  /// called with changes in the order in which they were made: before those of the handler's own change, the
  /// observers that have not been called with the change before are called.
  @discardableResult
  public func observeChangeImmediately<Observer: AnyObject, Value>(
    _ observer: Observer, _ keyPath: KeyPath<Self, Value>,
    _ handler: @escaping (Observer, Value, Value) -> Void
  ) -> ObservationToken {
    observeImmediately(observer, keyPath) { [weak observer] in
      if let observer { handler(observer, $0, $1) }
    }
  }

  /// Calls `handler` immediately after each change of a stored or computed property, with the old
  /// and the new value, until the token is cancelled.
  @discardableResult
  public func observeChangeImmediately<Value>(
    _ keyPath: KeyPath<Self, Value>, _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    observeImmediately(nil, keyPath, handler)
  }

  private func observeImmediately<Value>(
    _ observer: AnyObject?, _ keyPath: KeyPath<Self, Value>,
    _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    if case .property(let index) = resolve(keyPath) {
      let key = schema.properties[index].name
      return signals.onPropertyChange.listen(for: observer, filter: { $0.key == key }) {
        if let old = $0.old as? Value, let new = $0.new as? Value { handler(old, new) }
      }
    }
    let record = ensureRecord()
    let observation = ImmediateComposite(record, observer: observer)
    var last: RememberedValue<Value>?
    observation.evaluate = { model, isMuted in
      guard let model = model as? Self else { return ([], nil) }
      let (new, reads) = ReadTracker.track { model[keyPath: keyPath] }
      guard let before = last else {
        last = RememberedValue(new, keepsModels: false)
        return (reads, nil)
      }
      if before.isSame(as: new) { return (reads, nil) }
      let old = before.value ?? new
      last = RememberedValue(new, keepsModels: false)
      return (reads, isMuted ? nil : { handler(old, new) })
    }
    observation.update()
    record.ensureObservers().ensureExtras().add(observation)
    return observation
  }
}
