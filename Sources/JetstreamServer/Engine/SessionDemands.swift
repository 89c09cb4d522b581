import Jetstream

/// The work that the messages of one frame ask for and that is done once at the end of the frame, however many messages
/// ask for it.
///
/// Each item takes time in proportion to a scope or to everything that is under way, while a message that asks for it
/// takes a few bytes.
struct SessionDemands {
  /// The subscriptions whose full state, of one part, a client of version 1 has asked for, in the order of its first
  /// requests.
  private(set) var states: [Subscription] = []
  /// True if the frame has fetched a scope with a larger state, in version 1; see ``OpenFetches``.
  var hasOpenFetches = false
  /// The differences that the client has reported, by the index of the scope.
  var differences: [Int: Ping.Difference] = [:]
  /// True if the client has acknowledged something, so that messages that have waited for room may be sent.
  var goesOn = false
  /// True if the client has to send missing messages again.
  var asksAgain = false

  mutating func askState(of subscription: Subscription) {
    if !states.contains(where: { $0 === subscription }) { states.append(subscription) }
  }
}
