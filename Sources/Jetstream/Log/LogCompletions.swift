import Synchronization

/// Delivers the results of a log's work, which finish on its queues, to the isolation domain that
/// waits for them.
package protocol LogCompletions: AnyObject {
  typealias Outcome = Result<Void, LogError>

  /// Starts `work`, and calls `then` with its outcome in the isolation domain of the caller.
  func start(
    _ work: (@escaping @Sendable (Outcome) -> Void) -> Void, then: @escaping (Outcome) -> Void)
}

/// Delivers each result in a turn of its own on one actor.
package final class ActorCompletions: LogCompletions {
  private let actor: WeakActor
  private var waiting: [Int: (Outcome) -> Void] = [:]
  private var last = 0

  /// - Parameter actor: The actor on which this object is used.
  package init(on actor: WeakActor) { self.actor = actor }

  package func start(
    _ work: (@escaping @Sendable (Outcome) -> Void) -> Void, then: @escaping (Outcome) -> Void
  ) {
    last += 1
    let number = last
    waiting[number] = then
    let box = OutcomeBox()
    work { box.put($0) }
    HomeReference(self, on: actor).perform(
      { $0.waiting.removeValue(forKey: number)?($1) }, whenThereIs: { await box.take() })
  }
}

/// Passes one outcome from a queue of the log to the task that waits for it.
private final class OutcomeBox: Sendable {
  private enum State {
    case empty
    case awaited(CheckedContinuation<LogCompletions.Outcome, Never>)
    case full(LogCompletions.Outcome)
  }

  private let state = Mutex(State.empty)

  func put(_ outcome: LogCompletions.Outcome) {
    let before = state.withLock { state in
      defer { state = .full(outcome) }
      return state
    }
    if case .awaited(let continuation) = before { continuation.resume(returning: outcome) }
  }

  /// Returns the outcome once it is there. Call it once.
  func take() async -> LogCompletions.Outcome {
    await withCheckedContinuation { continuation in
      let outcome: LogCompletions.Outcome? = state.withLock { state in
        if case .full(let outcome) = state { return outcome }
        state = .awaited(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }
}
