/// The subscriptions of a scope, and those of them that are sent each change set, by session number.
///
/// Hosts and subscriptions know each other; ``removeAll()`` ends that.
final class ScopeAudience {
  /// The number by which sessions of version 2 name the scope: the same in all of them.
  let scopeIndex: Int
  // No access to those that are marked is open while other code runs: nothing here calls any.
  /// All subscriptions.
  @exclusivity(unchecked) private(set) var subscriptions: [Int: Subscription] = [:]
  /// The subscriptions of version 2 that are sent each change set as soon as it is durable: those that want all change
  /// sets and were sent all earlier ones.
  @exclusivity(unchecked) private(set) var listeners: [Int: Subscription] = [:]
  /// The subscriptions of version 1 that have missed no change set since their session lost its connection.
  @exclusivity(unchecked) private(set) var valueListeners: [Int: Subscription] = [:]
  /// The number of subscriptions of version 1, whether or not they listen.
  private(set) var valueSessions = 0

  /// The number of sessions of version 1 whose fetches are not answered yet; see ``OpenFetches``.
  var openFetches = 0

  /// The change sets that became durable in this turn, which the listeners of version 2 are told at its end; nil if there
  /// are none.
  @exclusivity(unchecked) private(set) var news: StreamRun?

  /// The rates of the change sets that all sessions send together; nil if there is no limit. Charging them calls a counter of
  /// limits, which reads nothing of the audience.
  @exclusivity(unchecked) var rates: ScopeRates?

  init(scopeIndex: Int) { self.scopeIndex = scopeIndex }

  /// True if some subscription is of version 1, which knows no operations: for them, change sets are also kept as
  /// values, and the histories of collections are kept, since they may leave out an element by mistake.
  var needsValues: Bool { valueSessions > 0 }

  /// Returns whether a subscription of version 2 listens.
  func includes(_ subscription: Subscription) -> Bool {
    listeners[subscription.session.number] === subscription
  }

  /// True if some subscription is of a session that has a connection, or of version 1, or if one of version 1 will begin:
  /// that protocol has no message that tells a client to fetch a scope again.
  var isPresent: Bool {
    openFetches > 0
      || subscriptions.values.contains {
        $0.session.version == 1 || $0.session.link.connection != nil
      }
  }

  func add(_ subscription: Subscription) {
    subscriptions[subscription.session.number] = subscription
    if subscription.session.version == 1 { valueSessions += 1 }
  }

  func remove(_ subscription: Subscription) {
    update(subscription, listens: false)
    subscriptions[subscription.session.number] = nil
    if subscription.session.version == 1 { valueSessions -= 1 }
  }

  /// Notes whether a subscription listens from now on.
  func update(_ subscription: Subscription, listens: Bool) {
    let number = subscription.session.number
    if subscription.session.version == 1 {
      valueListeners[number] = listens ? subscription : nil
    } else {
      listeners[number] = listens ? subscription : nil
    }
  }

  // MARK: News

  /// Adds a change set to the news. Its frames have about `frameBytes` at most.
  ///
  /// - Returns: true if it is the first.
  func announce(_ item: StreamItem, frameBytes: Int) -> Bool {
    let isFirst = news == nil
    let run = news ?? StreamRun(scopeIndex: scopeIndex, frameBytes: frameBytes)
    run.append(item)
    news = run
    return isFirst
  }

  /// Removes and returns the news.
  func takeNews() -> StreamRun? {
    defer { news = nil }
    return news
  }

  func removeAll() { (subscriptions, listeners, valueListeners) = ([:], [:], [:]) }

  /// Describes what must not be the case, a line for each; empty if all is well.
  func checkInvariants() -> [String] {
    var problems: [String] = []
    if valueListeners.count > valueSessions {
      problems.append("\(valueListeners.count) of \(valueSessions) old sessions listen")
    }
    if let news { problems.append("\(news.items.count) change sets are still to be told") }
    let told = Set(listeners.values.filter { $0.session.link.isOpen }.map(\.told))
    if told.count > 1 { problems.append("sessions that listen were told up to \(told.sorted())") }
    return problems
  }
}
