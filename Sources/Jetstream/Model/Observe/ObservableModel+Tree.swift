/// Observers of a model together with everything below it.
extension ObservableModel {
  /// Calls `handler` once in each tick in which this model or one that it holds, at any depth, has
  /// changed; with key paths, once in each tick in which one of these properties, or something at any
  /// depth below what they hold, has.
  ///
  /// ```swift
  /// canvas.observeTreeChange(self, \.shapes, \.selected) { me in me.redraw() }
  /// ```
  ///
  /// A key path that leads to a computed property is a programming error here. Cost: a tick climbs
  /// from each changed model to all that hold it.
  @discardableResult
  public func observeTreeChange<Observer: AnyObject>(
    _ observer: Observer, _ keyPaths: PartialKeyPath<Self>...,
    isolation: (any Actor)? = #isolation, _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    observeTree(observer, pattern(keyPaths), isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which this model or one that it holds, at any depth, has
  /// changed, or one of the named properties or something below them, until the token is cancelled.
  @discardableResult
  public func observeTreeChange(
    _ keyPaths: PartialKeyPath<Self>..., isolation: (any Actor)? = #isolation,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeTree(nil, pattern(keyPaths), isolation: isolation, handler)
  }

  /// Calls `handler` once in each tick in which what a path leads to has changed.
  ///
  /// ```swift
  /// canvas.observeTreeChange(self, path: "shapes.parts.color") { me in me.redraw() }
  /// ```
  ///
  /// A path is made of names of properties, separated by dots. A collection leads to each of its
  /// models. The last name says which property counts, with everything at any depth below what it
  /// holds; other properties of the same model do not. That a model comes to the path or leaves it
  /// counts as well.
  ///
  /// Each name must belong to the class with which the property before it is declared: what only a
  /// subclass has cannot be named. Anything else is a programming error. Cost: a tick climbs from
  /// each changed model to all that hold it, whatever the size of the collections on the path.
  @discardableResult
  public func observeTreeChange<Observer: AnyObject>(
    _ observer: Observer, path: String, isolation: (any Actor)? = #isolation,
    _ handler: @escaping (Observer) -> Void
  ) -> ObservationToken {
    let pattern = TreePattern(path: path, in: schema)
    return observeTree(observer, pattern, isolation: isolation) { [weak observer] in
      if let observer { handler(observer) }
    }
  }

  /// Calls `handler` once in each tick in which what a path leads to has changed, until the token is
  /// cancelled.
  @discardableResult
  public func observeTreeChange(
    path: String, isolation: (any Actor)? = #isolation, _ handler: @escaping () -> Void
  ) -> ObservationToken {
    observeTree(nil, TreePattern(path: path, in: schema), isolation: isolation, handler)
  }

  private func pattern(_ keyPaths: [PartialKeyPath<Self>]) -> TreePattern? {
    keyPaths.isEmpty ? nil : TreePattern(keyPaths.map(index(of:)))
  }

  private func observeTree(
    _ observer: AnyObject?, _ pattern: TreePattern?, isolation: (any Actor)?,
    _ handler: @escaping () -> Void
  ) -> ObservationToken {
    let record = ensureRecord()
    record.needsTicker(of: isolation)
    return record.observeTree(
      TreeObservation(observer: observer, isLoose: scope == nil), pattern, handler)
  }
}

extension ModelRecord {
  /// Adds a tree observation. While its token is muted, the handler is not called.
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
