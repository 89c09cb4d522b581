/// Observers that get the old and the new value once per tick.
extension ObservableModel {
  /// Calls `handler` once in each tick in which a stored or computed property has changed, with the
  /// value at the previous call and the value now. It is not called if the value is the same again.
  ///
  /// ```swift
  /// shape.observeChange(self, \.x) { me, old, new in me.animate(from: old, to: new) }
  /// ```
  ///
  /// If a computed property returns a model, or an array, a set or a dictionary of models, the old value does not keep
  /// them alive: a model that has been released is reported as nil, or left out. That also holds for the target of a
  /// weak reference. For large collections, ``observeDifference(_:_:isolation:_:)`` costs less.
  @discardableResult
  public func observeChange<Observer: AnyObject, Value>(
    _ observer: Observer, _ keyPath: KeyPath<Self, Value>, isolation: any Actor = #isolation,
    _ handler: @escaping (Observer, Value, Value) -> Void
  ) -> ObservationToken {
    observeValue(observer, keyPath, isolation: isolation) { [weak observer] in
      if let observer { handler(observer, $0, $1) }
    }
  }

  /// Calls `handler` once in each tick in which a stored or computed property has changed, with the
  /// value at the previous call and the value now, until the token is cancelled.
  @discardableResult
  public func observeChange<Value>(
    _ keyPath: KeyPath<Self, Value>, isolation: any Actor = #isolation,
    _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    observeValue(nil, keyPath, isolation: isolation, handler)
  }

  private func observeValue<Value>(
    _ observer: AnyObject?, _ keyPath: KeyPath<Self, Value>, isolation: any Actor,
    _ handler: @escaping (Value, Value) -> Void
  ) -> ObservationToken {
    let keepsModels =
      switch resolve(keyPath) {
      case .property(let index): !schema.properties[index].isWeakReference
      case .composite: false
      }
    var last = RememberedValue(self[keyPath: keyPath], keepsModels: keepsModels)
    let record = ensureRecord()
    return add(observing: [keyPath], isolation: isolation) { properties in
      MindfulObservation(observer: observer, properties: properties) { [unowned record] isMuted in
        guard let model = record.model as? Self else { return }
        let new = model[keyPath: keyPath]
        if last.isSame(as: new) { return }
        let old = last.value ?? new
        last = RememberedValue(new, keepsModels: keepsModels)
        if !isMuted { handler(old, new) }
      }
    }
  }
}

/// An observation with state from one call to the next. It is also called while its token is muted,
/// to update that state.
final class MindfulObservation: ChangeObservation {
  private var handler: ((_ isMuted: Bool) -> Void)?

  init(
    observer: AnyObject?, properties: PropertySet?, _ handler: @escaping (_ isMuted: Bool) -> Void
  ) {
    self.handler = handler
    super.init(observer: observer, properties: properties)
  }

  override func call() -> Bool {
    guard isLive else { return false }
    handler?(isMuted)
    return true
  }

  override func forgetHandler() {
    handler = nil
    super.forgetHandler()
  }
}
