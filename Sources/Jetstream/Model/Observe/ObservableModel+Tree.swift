/// Observers of a model together with all models below it.
extension ObservableModel {
  /// Calls `handler` once in each tick in which this model, or a model at any depth below it, has
  /// changed. With key paths, only changes of these properties, and of models at any depth below
  /// them, count.
  ///
  /// ```swift
  /// canvas.observeTreeChange(self, \.shapes, \.selected) { me in me.redraw() }
  /// ```
  ///
  /// Traps for a key path to a computed property. Cost: a tick visits all ancestors of each changed
  /// model.
  @discardableResult
  public func observeTreeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPaths: PartialKeyPath<Self>...,
    isolation: any Actor = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    observeTree(observer, pattern(keyPaths), isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which this model, or a model at any depth below it, has
  /// changed, until the token is cancelled. With key paths, only changes of these properties, and
  /// of models at any depth below them, count.
  @discardableResult
  public func observeTreeChange(
    _ keyPaths: PartialKeyPath<Self>..., isolation: any Actor = #isolation,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeTree(nil, pattern(keyPaths), isolation: isolation, handler)
  }

  /// Calls `handler` once in each tick in which the property at the end of a path, or a model below
  /// it, has changed.
  ///
  /// ```swift
  /// canvas.observeTreeChange(self, path: "shapes.parts.color") { me in me.redraw() }
  /// ```
  ///
  /// A path consists of property names separated by dots. A collection leads to each of its models.
  /// The last name is the property that counts, together with all models at any depth below it;
  /// other properties of the same model do not count. It also counts when a model enters or leaves
  /// the path.
  ///
  /// Each name must belong to the class that the property before it is declared with, so that a
  /// path cannot name properties of a subclass only. Traps for any other path. Cost: a tick visits
  /// all ancestors of each changed model, whatever the size of the collections on the path.
  @discardableResult
  public func observeTreeChange<Observer: AnyObject>(
    _ observer: Observer, path: String, isolation: any Actor = #isolation,
    _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let pattern = TreePattern(path: path, in: schema)
    return observeTree(observer, pattern, isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which the property at the end of a path, or a model below
  /// it, has changed, until the token is cancelled. Traps if the path names a property that does
  /// not exist.
  @discardableResult
  public func observeTreeChange(
    path: String, isolation: any Actor = #isolation, _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeTree(nil, TreePattern(path: path, in: schema), isolation: isolation, handler)
  }

  private func pattern(_ keyPaths: [PartialKeyPath<Self>]) -> TreePattern? {
    keyPaths.isEmpty ? nil : TreePattern(keyPaths.map(index(of:)))
  }

  private func observeTree(
    _ observer: AnyObject?, _ pattern: TreePattern?, isolation: any Actor,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    let record = ensureRecord()
    record.needsTicker(of: isolation)
    return record.observeTree(
      TreeObservation(observer: observer, isLoose: record.tree == nil), pattern, handler)
  }
}

extension ModelRecord {
  /// Adds a tree observation. Its handler is not called while its token is muted.
  @discardableResult
  func observeTree(
    _ observation: TreeObservation, _ pattern: TreePattern? = nil, _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observation.pattern = pattern
    observation.handler = { [unowned observation] in if !observation.isMuted { handler() } }
    ensureObservers().add(observation)
    return observation
  }
}
