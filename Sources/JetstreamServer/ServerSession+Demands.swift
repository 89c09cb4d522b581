import Jetstream

extension ServerSession {
  /// What the messages of one frame ask for that is done at the end of the frame, once however many of them ask.
  ///
  /// Each of these takes time in proportion to a scope or to all that is under way, and a message that asks for it
  /// takes a few bytes.
  struct Demands {
    /// The scopes whose whole state a client of version 1 has asked for, in the order of its first requests.
    var states: [Subscription] = []
    /// The scopes that the client has said to differ, by number, with the parts that do.
    var differences: [Int: Ping.Difference] = [:]
    /// True if the client has acknowledged something, so that what has waited for room may go on.
    var goesOn = false
    /// True if the client has to send again what is missing.
    var asksAgain = false

    mutating func askState(of subscription: Subscription) {
      if !states.contains(where: { $0 === subscription }) { states.append(subscription) }
    }
  }

  /// How often what a client has not received is sent to it again: a connection loses nothing, so once for each
  /// connection is what clients need.
  struct ResendAllowance {
    private static let limit = 4
    private var count = 0
    private var end = Duration.zero

    /// Takes one of four for each `interval`; false if they are used up.
    mutating func take(at now: Duration, interval: Duration) -> Bool {
      if end <= now { (count, end) = (0, now + interval) }
      guard count < Self.limit else { return false }
      count += 1
      return true
    }
  }

  /// A scope's state as it is at one place of the order, for all who ask for it until the end of a frame.
  struct StateCopy {
    let sequence: Int
    let state: Subscription.UntoldState
  }
}
