import Dispatch
import Foundation
import Synchronization

/// The requests to end a process, in the order in which they come.
///
/// One request may come as several signals: a terminal sends SIGINT to all processes of a group, and a program that has
/// started them passes it on; GNU `timeout` signals the process, and then its group. So a signal right behind the first one
/// is the same request.
struct StopRequests {
  /// The reaction to a signal.
  enum Step: Hashable {
    /// Begin to stop.
    case stop
    /// End at once.
    case exit
  }

  /// The time after the first signal in which all others are the same request.
  static let echo = Duration.milliseconds(500)

  private var first: ContinuousClock.Instant?

  /// Takes a signal. Returns nil if there is nothing to do.
  mutating func take(at now: ContinuousClock.Instant) -> Step? {
    if let first { return now - first >= Self.echo ? .exit : nil }
    first = now
    return .stop
  }
}

/// The signals by which a process is asked to end, SIGINT and SIGTERM. The first one is told, and another one ends the
/// process at once, unless it is a part of the same request.
@MainActor
final class StopSignal {
  private let sources: [any DispatchSourceSignal]
  private let first: AsyncStream<Int32>

  private final class Requests: Sendable {
    private let state = Mutex(StopRequests())

    func take() -> StopRequests.Step? { state.withLock { $0.take(at: .now) } }
  }

  init() {
    let (first, continuation) = AsyncStream.makeStream(of: Int32.self)
    let requests = Requests()
    sources = [SIGINT, SIGTERM].map { number in
      // Otherwise the signal ends the process before its source is asked.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { @Sendable in
        switch requests.take() {
        case .stop: continuation.yield(number)
        // The status that shells give a process which a signal has ended.
        case .exit: exit(128 + number)
        case nil: break
        }
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
