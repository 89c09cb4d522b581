extension ObservableModel {
  /// Returns the changes of a collection as an asynchronous sequence: one difference for each tick
  /// in which its content changed. The first difference starts from the content at the first call
  /// of `next()`.
  ///
  /// ```swift
  /// for await difference in canvas.differences(of: \.shapes) { rows.apply(difference) }
  /// ```
  ///
  /// Nothing is lost: applied one after the other, the differences lead from the content at the
  /// start to the content now. Ticks that a slow loop has not consumed yet are combined into one
  /// difference; the iterator stores the steps, or the old content if that is smaller. A move is a
  /// removal and an insertion that are associated. Cost: O(k log k) for k steps.
  ///
  /// The loop ends when the model is released or the task is cancelled; leaving the loop ends the
  /// observation. The sequence does not keep the model alive. The loop must run in the isolation
  /// domain of the model.
  public func differences<Element>(
    of keyPath: KeyPath<Self, ModelArray<Element>>
  ) -> ModelDifferences<Self, Element> {
    ModelDifferences(model: self, keyPath: keyPath)
  }
}

/// The changes of a collection; see ``ObservableModel/differences(of:)``.
public struct ModelDifferences<Model: ObservableModel, Member: ModelObject>: AsyncSequence {
  /// The changes between two elements of the sequence.
  public typealias Element = CollectionDifference<Member>

  private weak var model: Model?
  private let keyPath: KeyPath<Model, ModelArray<Member>>

  init(model: Model, keyPath: KeyPath<Model, ModelArray<Member>>) {
    self.model = model
    self.keyPath = keyPath
  }

  /// Returns an iterator that starts from the content at its first call of `next()`.
  public func makeAsyncIterator() -> Iterator { Iterator(model: model, keyPath: keyPath) }

  /// Iterates over the changes of a collection.
  public struct Iterator: AsyncIteratorProtocol {
    private weak var model: Model?
    private let keyPath: KeyPath<Model, ModelArray<Member>>
    private var feed: DifferenceFeed?

    fileprivate init(model: Model?, keyPath: KeyPath<Model, ModelArray<Member>>) {
      self.model = model
      self.keyPath = keyPath
    }

    /// Waits for the next change and returns the difference to the content at the previous call.
    /// Returns nil when the model is released or the task is cancelled.
    public mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async -> CollectionDifference<Member>? {
      guard let feed = feed ?? start(isolation: isolation) else { return nil }
      while !Task.isCancelled {
        await feed.wakeup.wait()
        guard !Task.isCancelled, let model else { break }
        let now = model[keyPath: keyPath].list
        let difference = feed.journal.take(now: now, as: Member.self)
        if !difference.isEmpty { return difference }
      }
      feed.stop()
      return nil
    }

    /// Like `next(isolation:)`, in the caller's isolation domain.
    public mutating func next() async -> CollectionDifference<Member>? {
      await next(isolation: #isolation)
    }

    private mutating func start(isolation: (any Actor)?) -> DifferenceFeed? {
      guard let model, !Task.isCancelled else { return nil }
      let feed = DifferenceFeed(StepJournal(index: model.index(of: keyPath)))
      self.feed = feed
      model.ensureRecord().ensureObservers().ensureExtras().add(feed.journal)
      feed.start { end in
        model.observeChange(keyPath, isolation: isolation) { [weak feed] in
          feed?.wakeup.call()
          withExtendedLifetime(end) {}
        }
      }
      return feed
    }
  }
}

/// The changes of a collection since the iterator last returned a difference.
private final class DifferenceFeed: Feed {
  let journal: StepJournal

  init(_ journal: StepJournal) { self.journal = journal }
}

@available(*, unavailable)
extension ModelDifferences: Sendable {}
