/// The scopes that a session has fetched and not left, by the indices under which its messages name them.
struct SubscriptionTable {
  private var subscriptions: [Int: Subscription] = [:]
  /// The index of the next subscription: as many as the session has ever had.
  private(set) var nextIndex = 0
  /// A counter that decides which subscription is the first in ``takeTurn()``.
  private var turn = 0

  /// True if the session has ever fetched a scope.
  var wereUsed: Bool { nextIndex > 0 }

  /// The subscriptions in any order.
  var all: some Collection<Subscription> { subscriptions.values }

  /// The subscriptions in the order in which the session has fetched their scopes.
  var inOrder: [Subscription] { subscriptions.values.sorted { $0.index < $1.index } }

  subscript(index: Int) -> Subscription? { subscriptions[index] }

  /// Returns the subscription to a scope.
  subscript(host: ScopeHost) -> Subscription? { subscriptions.values.first { $0.host === host } }

  /// Adds a subscription: in version 1 with the index ``nextIndex``, in version 2 with the number of its scope.
  mutating func add(_ subscription: Subscription) {
    subscriptions[subscription.index] = subscription
    nextIndex += 1
  }

  mutating func remove(_ subscription: Subscription) { subscriptions[subscription.index] = nil }

  /// Returns the subscriptions in order, with each call beginning with a different one.
  mutating func takeTurn() -> [Subscription] {
    let all = inOrder
    turn += 1
    return all.indices.map { all[(turn + $0) % all.count] }
  }
}
