extension ObservableModel {
  /// Returns the values of a stored or computed property as an asynchronous sequence: first the
  /// current value, then the latest value once for each tick in which `observeChange` would call
  /// its handler.
  ///
  /// ```swift
  /// for await area in shape.values(of: \.area) { label.text = "\(area)" }
  /// ```
  ///
  /// A loop that is slower than the ticks gets the latest value and skips those between, so nothing
  /// accumulates. The loop ends when the model is released or the task is cancelled; leaving the
  /// loop ends the observation. The sequence does not keep the model alive. Each iterator observes
  /// independently, from its first element on.
  ///
  /// The loop must run in the isolation domain of the model. The values need not be Sendable.
  public func values<Value>(of keyPath: KeyPath<Self, Value>) -> ModelValues<Self, Value> {
    ModelValues(model: self, keyPath: keyPath)
  }
}

/// The values of a property as they change; see ``ObservableModel/values(of:)``.
public struct ModelValues<Model: ObservableModel, Value>: AsyncSequence {
  private weak var model: Model?
  private let keyPath: KeyPath<Model, Value>

  init(model: Model, keyPath: KeyPath<Model, Value>) {
    self.model = model
    self.keyPath = keyPath
  }

  /// Returns an iterator that starts with the value at its first call of `next()`.
  public func makeAsyncIterator() -> Iterator { Iterator(model: model, keyPath: keyPath) }

  /// Iterates over the values of a property.
  public struct Iterator: AsyncIteratorProtocol {
    private weak var model: Model?
    private let keyPath: KeyPath<Model, Value>
    private var feed: LatestFeed<Value>?

    fileprivate init(model: Model?, keyPath: KeyPath<Model, Value>) {
      self.model = model
      self.keyPath = keyPath
    }

    /// Returns the current value on the first call; afterwards waits for a change and returns the
    /// latest value. Returns nil when the model is released or the task is cancelled.
    public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Value? {
      if let feed { return await feed.next() }
      guard let model, !Task.isCancelled else { return nil }
      let feed = LatestFeed<Value>()
      self.feed = feed
      let keyPath = keyPath
      feed.start { end in
        model.observeChange(keyPath, isolation: isolation) { [weak model, weak feed] in
          if let model { feed?.put(model[keyPath: keyPath]) }
          withExtendedLifetime(end) {}
        }
      }
      return model[keyPath: keyPath]
    }

    /// Like `next(isolation:)`, in the caller's isolation domain.
    public mutating func next() async -> Value? { await next(isolation: #isolation) }
  }
}

@available(*, unavailable)
extension ModelValues: Sendable {}

/// Holds the latest element for an iterator. A new element replaces one that was not consumed.
final class LatestFeed<Element>: Feed {
  private var latest: Element?

  func put(_ element: Element) {
    latest = element
    wakeup.call()
  }

  func next(isolation: isolated (any Actor)? = #isolation) async -> Element? {
    while !Task.isCancelled {
      if let element = latest {
        latest = nil
        return element
      }
      if wakeup.isOver { return nil }
      await wakeup.wait()
    }
    stop()
    return nil
  }
}
