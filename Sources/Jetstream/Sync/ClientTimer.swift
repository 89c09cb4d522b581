/// Serves a client at the time at which it has something to do next.
///
/// It has one entry in the schedule of its ticker, which an earlier time replaces. An entry for each time would schedule
/// the next one when it is due, too: after an hour of polls there would be thousands of them.
///
/// Isolation: the client's actor.
final class ClientTimer: TickClient {
  private(set) lazy var seat = TickSeat(self)
  private let ticker: Ticker
  private let serve: () -> Void
  /// The time for which the timer is set.
  private(set) var due: Duration?

  /// Creates a timer that calls `serve` when a time has come.
  init(on ticker: Ticker, serve: @escaping () -> Void) {
    self.ticker = ticker
    self.serve = serve
  }

  /// Schedules a time, unless an earlier one is scheduled.
  func schedule(at time: Duration?) {
    guard let time, due.map({ time < $0 }) ?? true else { return }
    due = time
    ticker.request(self, after: max(time - ticker.now, .milliseconds(1)))
  }

  func tickWillDeliver() {}

  func tickDidDeliver() {
    due = nil
    serve()
  }
}
