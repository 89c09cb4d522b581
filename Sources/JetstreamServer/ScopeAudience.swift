/// The subscriptions of a scope that are sent each change set, by session number.
///
/// Hosts and subscriptions know each other; ``removeAll()`` ends that.
struct ScopeAudience {
  /// The subscriptions of version 2 that are sent each change set as soon as it is durable: those that want all change
  /// sets and were sent all earlier ones.
  private(set) var listeners: [Int: Subscription] = [:]
  /// The subscriptions of version 1 that have missed no change set since their session lost its connection.
  private(set) var valueListeners: [Int: Subscription] = [:]
  /// The number of subscriptions of version 1, whether or not they listen.
  var valueSessions = 0

  /// True if some subscription is of version 1, which knows no operations: for them, change sets are also kept as
  /// values, and the histories of collections are kept, since they may leave out an element by mistake.
  var needsValues: Bool { valueSessions > 0 }

  /// Returns whether a subscription of version 2 listens.
  func includes(_ subscription: Subscription) -> Bool {
    listeners[subscription.session.number] === subscription
  }

  /// Notes whether a subscription listens from now on.
  mutating func update(_ subscription: Subscription, listens: Bool) {
    let number = subscription.session.number
    if subscription.session.version == 1 {
      valueListeners[number] = listens ? subscription : nil
    } else {
      listeners[number] = listens ? subscription : nil
    }
  }

  mutating func removeAll() { (listeners, valueListeners) = ([:], [:]) }

  /// Describes what must not be the case, a line for each; empty if all is well.
  func checkInvariants() -> [String] {
    valueListeners.count <= valueSessions
      ? [] : ["\(valueListeners.count) of \(valueSessions) old sessions listen"]
  }
}
