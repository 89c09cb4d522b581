import Jetstream

/// The work that the messages of one frame ask for and that is done once at the end of the frame, however many messages
/// ask for it.
///
/// Each item takes time in proportion to a scope or to everything that is under way, while a message that asks for it
/// takes a few bytes.
struct SessionDemands {
  /// The subscriptions whose full state a client of version 1 has asked for, in the order of its first requests.
  private(set) var states: [Subscription] = []
  /// The differences that the client has reported, by the number of the scope.
  var differences: [Int: Ping.Difference] = [:]
  /// True if the client has acknowledged something, so that messages that have waited for room may be sent.
  var goesOn = false
  /// True if the client has to send missing messages again.
  var asksAgain = false

  mutating func askState(of subscription: Subscription) {
    if !states.contains(where: { $0 === subscription }) { states.append(subscription) }
  }
}

/// A client's requests to resend what it has missed, and a limit to how often they are answered. A connection loses
/// nothing, so clients need that once per connection.
struct ResendRequests {
  private static let limit = 4
  /// True if the client has made a request and has not been answered.
  private var isPending = false
  private var count = 0
  private var end = Duration.zero

  /// Notes that the client makes a request.
  mutating func ask() { isPending = true }

  /// Takes one of the four answers for each `interval`; returns false if there is no request or they are used up.
  mutating func answer(at now: Duration, interval: Duration) -> Bool {
    guard isPending else { return false }
    if end <= now { (count, end) = (0, now + interval) }
    guard count < Self.limit else { return false }
    count += 1
    isPending = false
    return true
  }
}

/// A scope's full state at one sequence, shared by all requests until the end of a frame.
struct StateCopy {
  let sequence: Int
  let state: Subscription.UntoldState
}
