extension Scope {
  /// The change sets of ``onChanges`` as an asynchronous sequence: every change set made after the
  /// loop begins, in order.
  ///
  /// ```swift
  /// for await changeSet in scope.changeSets { try await log.append(changeSet) }
  /// ```
  ///
  /// No change set is lost: those that a slow loop has not consumed yet wait in memory, in an
  /// unbounded queue. When the scope is released, the loop ends after the last change set; when the
  /// task is cancelled, it ends at once. Leaving the loop ends the observation. The sequence does
  /// not keep the scope alive, and each iterator has its own queue.
  ///
  /// The loop must run in the scope's isolation domain. The change sets themselves are Sendable.
  public var changeSets: ChangeSets { ChangeSets(scope: self) }

  /// An asynchronous sequence of the change sets of a scope; see ``Scope/changeSets``.
  public struct ChangeSets: AsyncSequence {
    private weak var scope: Scope?

    fileprivate init(scope: Scope) { self.scope = scope }

    /// Returns an iterator with its own queue, which collects change sets from this moment on.
    public func makeAsyncIterator() -> Iterator {
      let feed = QueueFeed<ChangeSet>()
      guard let scope else {
        feed.stop()
        return Iterator(feed: feed)
      }
      feed.start { end in
        scope.onChanges.listen { [weak feed] set in
          feed?.put(set)
          withExtendedLifetime(end) {}
        }
      }
      return Iterator(feed: feed)
    }

    /// Iterates over the change sets of a scope.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let feed: QueueFeed<ChangeSet>

      /// Waits for the next change set. Returns nil when the scope is released or the task is
      /// cancelled.
      public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> ChangeSet? {
        await feed.next()
      }

      /// Like `next(isolation:)`, in the caller's isolation domain.
      public mutating func next() async -> ChangeSet? { await next(isolation: #isolation) }
    }
  }
}

@available(*, unavailable)
extension Scope.ChangeSets: Sendable {}

/// Queues every element for an iterator and hands them out in order.
final class QueueFeed<Element>: Feed {
  private var queue: [Element] = []
  /// Elements taken from the queue, in reverse order: the next one is last.
  private var ready: [Element] = []

  func put(_ element: Element) {
    queue.append(element)
    wakeup.call()
  }

  func next(isolation: isolated (any Actor)? = #isolation) async -> Element? {
    while !Task.isCancelled {
      if ready.isEmpty, !queue.isEmpty {
        ready = queue.reversed()
        queue = []
      }
      if let element = ready.popLast() { return element }
      if wakeup.isOver { return nil }
      await wakeup.wait()
    }
    stop()
    return nil
  }
}
