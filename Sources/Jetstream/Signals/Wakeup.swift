import Synchronization

/// Lets one task wait for an event in its isolation domain, or for its cancellation from any
/// thread.
///
/// A call that arrives while no task waits is stored, and the next wait returns at once; further
/// calls are merged with it. ``finish()`` is final. All transitions happen under one lock, and the
/// continuation is resumed outside of it, so a call between the check and the wait cannot be lost.
final class Wakeup: Sendable {
  private enum State {
    case quiet
    case called
    case over
    case waiting(CheckedContinuation<Void, Never>)
  }

  private let state = Mutex(State.quiet)

  /// True after ``finish()``: waits return at once.
  var isOver: Bool {
    state.withLock { if case .over = $0 { true } else { false } }
  }

  /// Ends the current wait or, if no task waits, the next one.
  func call() { move(to: .called) }

  /// Ends the current wait and all later ones.
  func finish() { move(to: .over) }

  private func move(to next: State) {
    let waiting: CheckedContinuation<Void, Never>? = state.withLock { state in
      switch state {
      case .over: return nil
      case .quiet, .called:
        state = next
        return nil
      case .waiting(let continuation):
        if case .over = next { state = .over } else { state = .quiet }
        return continuation
      }
    }
    waiting?.resume()
  }

  /// Returns after the next ``call()`` or ``finish()``, or at once if one arrived since the last
  /// wait. Cancelling the task calls ``finish()``. Traps if another task is already waiting.
  func wait(isolation: isolated (any Actor)? = #isolation) async {
    await withTaskCancellationHandler(
      operation: {
        await withCheckedContinuation(isolation: isolation) { continuation in
          let isDue = state.withLock { state in
            switch state {
            case .quiet:
              state = .waiting(continuation)
              return false
            case .called:
              state = .quiet
              return true
            case .over: return true
            case .waiting:
              preconditionFailure("Two tasks wait for the next element of one iterator.")
            }
          }
          if isDue { continuation.resume() }
        }
      }, onCancel: { finish() }, isolation: isolation)
  }
}

/// Connects an iterator to the object that it observes. The iterator owns the feed; the callback
/// refers to it weakly, so that neither side keeps the other alive.
class Feed {
  let wakeup = Wakeup()
  private weak var token: ObservationToken?

  /// Ends the observation: leaving a loop drops its iterator, and the iterator owns the feed.
  deinit { token?.cancel() }

  /// Ties the registration that `register` makes to the lifetime of this feed. The callback must
  /// capture the `FeedEnd` that it is given: its release tells the feed that the observed object is
  /// gone.
  final func start(_ register: (FeedEnd) -> ObservationToken) {
    token = register(FeedEnd(wakeup))
  }

  /// Ends the observation.
  final func stop() {
    token?.cancel()
    wakeup.finish()
  }
}

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

/// Finishes the feed's wakeup when the callback that captures it is released.
final class FeedEnd {
  private let wakeup: Wakeup

  init(_ wakeup: Wakeup) { self.wakeup = wakeup }

  deinit { wakeup.finish() }
}
