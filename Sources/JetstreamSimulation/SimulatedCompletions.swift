import Jetstream
import Synchronization

/// Delivers the outcomes of a simulated disk's work to the process that waits for them, when that has its turn.
final class SimulatedCompletions: LogCompletions {
  /// The outcomes that were not delivered yet, each with the number of its work.
  private final class Mailbox: Sendable {
    private let outcomes = Mutex<[(Int, any Sendable)]>([])

    func put(_ number: Int, _ outcome: any Sendable) {
      outcomes.withLock { $0.append((number, outcome)) }
    }

    func take() -> [(Int, any Sendable)] {
      outcomes.withLock { outcomes in
        defer { outcomes = [] }
        return outcomes
      }
    }
  }

  private let mailbox = Mailbox()
  private var waiting: [Int: (any Sendable) -> Void] = [:]
  private var last = 0

  func start<Success: Sendable, Failure>(
    _ work: (@escaping @Sendable (Result<Success, Failure>) -> Void) -> Void,
    then: @escaping (Result<Success, Failure>) -> Void
  ) {
    last += 1
    let number = last
    waiting[number] = { if let outcome = $0 as? Result<Success, Failure> { then(outcome) } }
    work { [mailbox] in mailbox.put(number, $0) }
  }

  /// Delivers all outcomes, including those of work that is started and ends meanwhile.
  func deliver() {
    while case let outcomes = mailbox.take(), !outcomes.isEmpty {
      for (number, outcome) in outcomes { waiting.removeValue(forKey: number)?(outcome) }
    }
  }
}
