/// The events for which a descriptor is watched, or that have come.
struct Readiness: OptionSet, Sendable {
  let rawValue: UInt8

  /// The descriptor can be read, or has come to its end.
  static let read = Readiness(rawValue: 1)
  /// The descriptor can be written.
  static let write = Readiness(rawValue: 2)
}

/// Waits until descriptors can be read or written: the system's facility for that, or a stand-in of tests.
///
/// A loop uses it on its own thread, and ``wake()`` and ``now`` on any.
protocol Poller {
  /// Watches a descriptor for exactly these events; for none, it is not watched any more.
  ///
  /// - Parameters:
  ///   - id: the name under which ``wait(upTo:_:)`` tells of the descriptor.
  ///   - old: the events for which it was watched until now.
  /// - Returns: false if the system has no room to watch the descriptor for all of them.
  func watch(
    _ descriptor: Int32, as id: UInt64, for events: Readiness, insteadOf old: Readiness
  ) -> Bool

  /// Calls `body` for each descriptor that is ready. An end or an error of the descriptor counts as every event.
  ///
  /// - Parameter limit: the time for which to wait for the first one, or for ``wake()``; zero to return at once, nil to
  ///   wait for as long as it takes.
  func wait(upTo limit: Duration?, _ body: (UInt64, Readiness) -> Void)

  /// Ends the wait that goes on, or else the next one.
  func wake()

  /// The time on a clock that stands still while the system sleeps.
  var now: Duration { get }
}

private let start = SuspendingClock.now

extension Poller {
  var now: Duration { start.duration(to: .now) }
}
