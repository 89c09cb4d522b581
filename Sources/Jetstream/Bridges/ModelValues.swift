extension ObservableModel {
  /// Makes a sequence of the values of a property, or of a computed one: the value there is, then the
  /// latest once in each tick in which `observeChange` would call its handler.
  ///
  /// ```swift
  /// for await area in shape.values(of: \.area) { label.text = "\(area)" }
  /// ```
  ///
  /// A loop that is slower than the ticks gets the latest value and skips those between: nothing
  /// piles up. It ends when the model is gone or the task is cancelled; leaving it ends the
  /// observation. The sequence does not keep the model alive, and each iterator observes by itself,
  /// from its first element on.
  ///
  /// The loop has to run in the isolation domain of the model, where values that are not Sendable
  /// stay.
  public func values<Value>(
    of keyPath: KeyPath<Self, Value>, isolation: any Actor = #isolation
  ) -> some AsyncSequence<Value, Never> {
    ensureRecord().needsTicker(of: isolation)
    return ModelValues(model: self, keyPath: keyPath)
  }
}

private struct ModelValues<Model: ObservableModel, Value>: AsyncSequence {
  typealias Element = Value
  typealias Failure = Never

  private weak var model: Model?
  private let keyPath: KeyPath<Model, Value>

  init(model: Model, keyPath: KeyPath<Model, Value>) {
    self.model = model
    self.keyPath = keyPath
  }

  /// Returns an iterator that starts with the value at its first call of `next()`.
  func makeAsyncIterator() -> Iterator { Iterator(model: model, keyPath: keyPath) }

  struct Iterator: AsyncIteratorProtocol {
    private weak var model: Model?
    private let keyPath: KeyPath<Model, Value>
    private var feed: LatestFeed<Value>?

    fileprivate init(model: Model?, keyPath: KeyPath<Model, Value>) {
      self.model = model
      self.keyPath = keyPath
    }

    mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Value? {
      if let feed { return await feed.next() }
      guard let model, !Task.isCancelled else { return nil }
      let feed = LatestFeed<Value>()
      self.feed = feed
      let keyPath = keyPath
      feed.start { end in
        model.add(observing: [keyPath], isolation: isolation) {
          FreeObservation(properties: $0) { [weak model, weak feed] in
            if let model { feed?.put(model[keyPath: keyPath]) }
            withExtendedLifetime(end) {}
          }
        }
      }
      return model[keyPath: keyPath]
    }

    mutating func next() async -> Value? { await next(isolation: #isolation) }
  }
}
