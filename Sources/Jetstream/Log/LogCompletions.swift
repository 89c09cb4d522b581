import JetstreamWebSocket
import Synchronization

/// Delivers the results of a history's work, which finish on its queues, to the isolation domain that waits for them.
package protocol LogCompletions: AnyObject {
  /// Starts `work`, and calls `then` with its outcome in the isolation domain of the caller.
  func start<Success: Sendable, Failure>(
    _ work: (@escaping @Sendable (Result<Success, Failure>) -> Void) -> Void,
    then: @escaping (Result<Success, Failure>) -> Void)
}

/// Delivers results on one actor: all that have come by the time of a turn in this turn, in their order.
package final class ActorCompletions: LogCompletions {
  /// The results that were not delivered yet, each with the number of its work.
  private final class Mailbox: Sendable {
    private let results = Mutex<[(number: Int, result: any Sendable)]>([])

    /// Returns true if it was empty, so that a turn has to be asked for.
    func put(_ number: Int, _ result: any Sendable) -> Bool {
      results.withLock { results in
        results.append((number, result))
        return results.count == 1
      }
    }

    func take() -> [(number: Int, result: any Sendable)] {
      results.withLock { results in
        defer { results = [] }
        return results
      }
    }
  }

  private let actor: WeakActor
  private let mailbox = Mailbox()
  private var waiting: [Int: (any Sendable) -> Void] = [:]
  private var last = 0
  private lazy var home = HomeReference(self, on: actor)

  /// - Parameter actor: The actor on which this object is used.
  package init(on actor: WeakActor) { self.actor = actor }

  package func start<Success: Sendable, Failure>(
    _ work: (@escaping @Sendable (Result<Success, Failure>) -> Void) -> Void,
    then: @escaping (Result<Success, Failure>) -> Void
  ) {
    last += 1
    let number = last
    waiting[number] = { if let outcome = $0 as? Result<Success, Failure> { then(outcome) } }
    let home = home
    // On an actor with an event loop, the task that brings the outcome home begins on the loop's thread.
    let executor = EventLoop.current.map { $0.tasks as any TaskExecutor }
    work { [mailbox] outcome in
      guard mailbox.put(number, outcome) else { return }
      Task(executorPreference: executor) { await home.perform { $0.deliver() } }
    }
  }

  private func deliver() {
    for (number, result) in mailbox.take() { waiting.removeValue(forKey: number)?(result) }
  }
}
