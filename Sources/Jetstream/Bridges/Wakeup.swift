import Synchronization

/// Lets one task wait until something has happened in the isolation domain that it belongs to, or
/// until it is cancelled, from wherever that comes.
final class Wakeup: Sendable {
  private enum State {
    case quiet
    case called
    case over
    case waiting(CheckedContinuation<Void, Never>)
  }

  private let state = Mutex(State.quiet)

  /// Whether there is nothing to wait for any more.
  var isOver: Bool {
    state.withLock { if case .over = $0 { true } else { false } }
  }

  /// Ends the wait; the next one, if none goes on.
  func call() { move(to: .called) }

  /// Ends the wait and all that follow.
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

  /// Returns after the next call of ``call()`` or ``finish()``, or after one that nobody has waited
  /// for. A task that is cancelled finishes it.
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

/// What an iterator has on the side of what it observes. The iterator owns it; the callback leads to
/// it, and neither keeps the other's side alive.
class Feed {
  let wakeup = Wakeup()
  private weak var token: ObservationToken?

  /// Leaving a loop drops its iterator, and with it the observation.
  deinit { token?.cancel() }

  /// Keeps the registration that `register` makes for as long as this feed lives. The callback has to
  /// capture what it is given: that is how the feed learns that what it observes is gone.
  final func start(_ register: (FeedEnd) -> ObservationToken) {
    token = register(FeedEnd(wakeup))
  }

  /// Ends the observation.
  final func stop() {
    token?.cancel()
    wakeup.finish()
  }
}

/// Is released with the callback that holds it.
final class FeedEnd {
  private let wakeup: Wakeup

  init(_ wakeup: Wakeup) { self.wakeup = wakeup }

  deinit { wakeup.finish() }
}
