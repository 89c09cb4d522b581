extension Scope {
  /// The sequence of the change sets of ``onChanges``: every one that is made from the moment on at
  /// which a loop begins, in order.
  ///
  /// ```swift
  /// for await changeSet in scope.changeSets { print(changeSet.fragments.count) }
  /// ```
  ///
  /// None is lost: those that a slow loop has not taken yet wait in a queue without a bound, in
  /// memory. The loop ends when the scope is gone, after the last change set, or at once when its task is
  /// cancelled; leaving it ends the observation. The sequence does not keep the scope alive, and each
  /// iterator has a queue of its own.
  ///
  /// The loop has to run in the scope's isolation domain; the change sets themselves are Sendable.
  public var changeSets: some AsyncSequence<ChangeSet, Never> { ChangeSetSequence(scope: self) }
}

private struct ChangeSetSequence: AsyncSequence {
  typealias Element = ChangeSet
  typealias Failure = Never

  weak var scope: Scope?

  /// Returns an iterator with its own queue, which collects change sets from this moment on.
  func makeAsyncIterator() -> Iterator {
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

  struct Iterator: AsyncIteratorProtocol {
    let feed: QueueFeed<ChangeSet>

    mutating func next(isolation: isolated (any Actor)? = #isolation) async -> ChangeSet? {
      await feed.next()
    }

    mutating func next() async -> ChangeSet? { await next(isolation: #isolation) }
  }
}

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
