import JetstreamWebSocket

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
    let home = HomeReference(self, on: actor)
    // On an actor with an event loop, the task that brings the outcome home begins on the loop's thread.
    let executor = EventLoop.current.map { $0.tasks as any TaskExecutor }
    work { outcome in
      Task(executorPreference: executor) {
        await home.perform { $0.waiting.removeValue(forKey: number)?(outcome) }
      }
    }
  }
}
