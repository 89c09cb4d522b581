extension ObservableModel {
  /// Makes a sequence of the changes of a collection: one difference for each tick in which its content has
  /// changed, from what it holds when the first is asked for.
  ///
  /// ```swift
  /// for await difference in canvas.differences(of: \.shapes) { rows.apply(difference) }
  /// ```
  ///
  /// Nothing is lost: applied one after the other, the differences lead from the content at the start
  /// to the content now. What a slow loop has not taken yet becomes one difference, however many ticks
  /// it covers; what is kept for it are the steps, or the old content where that is less. A move is a
  /// removal and an insertion that are associated. Cost: O(k log k) for k steps.
  ///
  /// The loop ends when the model is gone or the task is cancelled; leaving it ends the observation.
  /// The sequence does not keep the model alive. The loop has to run in the isolation domain of the
  /// model.
  public func differences<Element>(
    of keyPath: KeyPath<Self, ModelArray<Element>>, isolation: any Actor = #isolation
  ) -> some AsyncSequence<CollectionDifference<Element>, Never> {
    ensureRecord().needsTicker(of: isolation)
    return ModelDifferences(model: self, keyPath: keyPath)
  }
}

private struct ModelDifferences<Model: ObservableModel, Member: ModelObject>: AsyncSequence {
  typealias Element = CollectionDifference<Member>
  typealias Failure = Never

  private weak var model: Model?
  private let keyPath: KeyPath<Model, ModelArray<Member>>

  init(model: Model, keyPath: KeyPath<Model, ModelArray<Member>>) {
    self.model = model
    self.keyPath = keyPath
  }

  /// Returns an iterator that starts from the content at its first call of `next()`.
  func makeAsyncIterator() -> Iterator { Iterator(model: model, keyPath: keyPath) }

  struct Iterator: AsyncIteratorProtocol {
    private weak var model: Model?
    private let keyPath: KeyPath<Model, ModelArray<Member>>
    private var feed: DifferenceFeed?

    fileprivate init(model: Model?, keyPath: KeyPath<Model, ModelArray<Member>>) {
      self.model = model
      self.keyPath = keyPath
    }

    mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async -> CollectionDifference<Member>? {
      guard let feed = feed ?? start(isolation) else { return nil }
      while !Task.isCancelled {
        await feed.wakeup.wait()
        guard !Task.isCancelled, let model else { break }
        let now = model[keyPath: keyPath].list
        let difference = feed.journal.take(now: now, as: Member.self)
        if !difference.isEmpty { return difference }
        // Another task has ended the iterator.
        if feed.wakeup.isOver { break }
      }
      feed.stop()
      return nil
    }

    mutating func next() async -> CollectionDifference<Member>? {
      await next(isolation: #isolation)
    }

    private mutating func start(_ isolation: (any Actor)?) -> DifferenceFeed? {
      guard let model, !Task.isCancelled else { return nil }
      let feed = DifferenceFeed(StepJournal(index: model.index(of: keyPath)))
      self.feed = feed
      model.ensureRecord().ensureObservers().ensureExtras().add(feed.journal)
      feed.start { end in
        model.add(observing: [keyPath], isolation: isolation) {
          FreeObservation(properties: $0) { [weak feed] in
            feed?.wakeup.call()
            withExtendedLifetime(end) {}
          }
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
