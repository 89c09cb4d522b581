extension ObservableModel {
  /// The changes of a collection as a sequence: one difference for each tick in which its content has
  /// changed, from what it holds when the first is asked for.
  ///
  /// ```swift
  /// for await difference in canvas.differences(of: \.shapes) { rows.apply(difference) }
  /// ```
  ///
  /// Nothing is lost: applied one after the other, the differences lead from the content at the start
  /// to the content now. What a slow loop has not taken yet is one difference, however many ticks it
  /// covers, so that what waits is bounded by the content before and after. A move is a removal and
  /// an insertion that are associated. Cost: O(n log n) each.
  ///
  /// The loop ends when the model is gone or the task is cancelled; leaving it ends the observation.
  /// The sequence does not keep the model alive, but an iterator keeps the models of the content that
  /// it gave last. The loop has to run in the isolation domain of the model.
  public func differences<Element>(
    of keyPath: KeyPath<Self, ModelArray<Element>>
  ) -> ModelDifferences<Self, Element> {
    ModelDifferences(model: self, keyPath: keyPath)
  }
}

/// The changes of a collection; see ``ObservableModel/differences(of:)``.
public struct ModelDifferences<Model: ObservableModel, Member: ModelObject>: AsyncSequence {
  /// What one tick has changed.
  public typealias Element = CollectionDifference<Member>

  private let values: ModelValues<Model, ModelArray<Member>>

  init(model: Model, keyPath: KeyPath<Model, ModelArray<Member>>) {
    values = ModelValues(model: model, keyPath: keyPath)
  }

  /// Starts anew, with the content there is when the first element is asked for.
  public func makeAsyncIterator() -> Iterator { Iterator(values: values.makeAsyncIterator()) }

  /// Iterates over the changes of a collection.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var values: ModelValues<Model, ModelArray<Member>>.Iterator
    private var given: ModelArray<Member>?

    fileprivate init(values: ModelValues<Model, ModelArray<Member>>.Iterator) {
      self.values = values
    }

    /// What has changed since the one before. Nil when the model is gone or the task is cancelled.
    public mutating func next(
      isolation: isolated (any Actor)? = #isolation
    ) async -> CollectionDifference<Member>? {
      if given == nil { given = await values.next(isolation: isolation) }
      while let old = given, let new = await values.next(isolation: isolation) {
        given = new
        let difference = new.netDifference(from: old)
        if !difference.isEmpty { return difference }
      }
      return nil
    }

    /// The same in the caller's isolation domain.
    public mutating func next() async -> CollectionDifference<Member>? {
      await next(isolation: #isolation)
    }
  }
}

@available(*, unavailable)
extension ModelDifferences: Sendable {}
