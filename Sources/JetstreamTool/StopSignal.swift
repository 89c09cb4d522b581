import Dispatch
import Foundation
import Synchronization

/// The signals by which a process is asked to end, SIGINT and SIGTERM. The first one is told, and the second one ends the
/// process at once.
@MainActor
final class StopSignal {
  private let sources: [any DispatchSourceSignal]
  private let first: AsyncStream<Int32>

  /// The number of signals that have come.
  private final class Counter: Sendable {
    private let count = Atomic(0)

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
  }

  init() {
    let (first, continuation) = AsyncStream.makeStream(of: Int32.self)
    let counter = Counter()
    sources = [SIGINT, SIGTERM].map { number in
      // Otherwise the signal ends the process before its source is asked.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { @Sendable in
        // The status that shells give a process which a signal has ended.
        if counter.next() > 1 { exit(128 + number) }
        continuation.yield(number)
      }
      source.activate()
      return source
    }
    self.first = first
  }

  /// Returns once the first signal has come.
  func wait() async {
    for await _ in first { return }
  }
}
