import Jetstream

/// The scopes that a session has fetched and not left, by the indices under which its messages name them.
final class SubscriptionTable {
  // No access to those that are marked is open while other code runs: each is read or written in a single step.
  @exclusivity(unchecked) private var subscriptions: [Int: Subscription] = [:]
  /// The subscription that was looked up last: mostly the next message names it, too.
  @exclusivity(unchecked) private var latest: Subscription?
  /// The index of the next subscription: as many as the session has ever had.
  private(set) var nextIndex = 0
  /// A counter that decides which subscription is the first in ``takeTurn()``.
  private var turn = 0
  /// The fetches of version 1 that are not answered yet, in the order of the first one of each scope.
  @exclusivity(unchecked) private(set) var openFetches: [OpenFetches] = []

  /// The numbers of fetches that wait for their scope to be opened, by its name; see ``OpenScopes``.
  private var openings: [String: Int] = [:]
  /// The number of all fetches that wait for their scope to be opened.
  private(set) var openingCount = 0

  /// The session's rights in the scopes.
  @exclusivity(unchecked) var access = SessionAccess()

  /// A scope that was taken from the session.
  private struct TakenAway {
    /// The index of the message that tells the client so.
    let message: Int
    /// The number of the first of the client's change sets that was dropped; nil if none was.
    var firstDropped: Int?
  }

  /// The scopes that were taken from the session, by their numbers, until the client is known to know. What the client has sent
  /// to them before is dropped; it sends that again if it gets the scope again.
  @exclusivity(unchecked) private var takenAway: [Int: TakenAway] = [:]

  /// The other channels in which the session has fetched scopes.
  private(set) var otherChannels: Set<Int> = []

  /// True if the session has ever fetched a scope.
  var wereUsed: Bool {
    nextIndex > 0 || !openings.isEmpty || access.waitingCount > 0 || !openFetches.isEmpty
      || !otherChannels.isEmpty
  }

  /// Notes that the session fetches a scope in another channel. Returns false if it has done so before.
  func noteChannel(_ channel: Int) -> Bool { otherChannels.insert(channel).inserted }

  func forgetChannel(_ channel: Int) { otherChannels.remove(channel) }

  /// Returns the number of scopes that the session has fetched, with those whose fetches are not answered yet, except for
  /// fetches of the name `name` that wait.
  func count(besides name: String) -> Int {
    subscriptions.count + openings.count - (openings[name] == nil ? 0 : 1)
      + access.waitingNames(besides: name) + openFetches.count { self[$0.host] == nil }
  }

  /// The subscriptions in any order.
  var all: some Collection<Subscription> { subscriptions.values }

  /// The subscriptions in the order in which the session has fetched their scopes.
  var inOrder: [Subscription] { subscriptions.values.sorted { $0.index < $1.index } }

  /// The scopes that the session has, in the order in which it has fetched them, and then those whose first fetch is
  /// open.
  var hosts: [ScopeHost] {
    inOrder.map(\.host) + openFetches.map(\.host).filter { self[$0] == nil }
  }

  subscript(index: Int) -> Subscription? {
    if let latest, latest.index == index { return latest }
    latest = subscriptions[index]
    return latest
  }

  /// Returns the subscription to a scope.
  subscript(host: ScopeHost) -> Subscription? { subscriptions.values.first { $0.host === host } }

  /// Adds a subscription: in version 1 with the index ``nextIndex``, in version 2 with the number of its scope.
  func add(_ subscription: Subscription) {
    subscriptions[subscription.index] = subscription
    latest = nil
    nextIndex += 1
  }

  func remove(_ subscription: Subscription) {
    subscriptions[subscription.index] = nil
    latest = nil
    let host = subscription.host
    host.undecided[subscription.sender]?.left(
      by: subscription, asReadOnly: access.isReadOnly(host))
    access.forget(host)
    _ = closeFetches(of: host)
  }

  /// Notes that a scope is taken from a session of version 2.
  ///
  /// - Parameter undecided: the number of the first of the client's change sets that had come and were not decided.
  func takeAway(
    _ subscription: Subscription, toldWith message: Int, dropping undecided: Int? = nil
  ) {
    // It may be taken once more before the client knows of the first time.
    let firstDropped = takenAway[subscription.index]?.firstDropped ?? undecided
    takenAway[subscription.index] = TakenAway(message: message, firstDropped: firstDropped)
  }

  /// Returns true if a change set is dropped, because the client may not have known that its scope was taken from it when it
  /// sent it.
  ///
  /// The client may have got the scope again by then, for a fetch that it had sent before it knew, too. Then the change sets
  /// behind a dropped one are dropped as well, until that one comes again: the client sends all of them in order.
  func drops(_ sync: ScopeSync) -> Bool {
    if takenAway.isEmpty { return false }
    guard var state = takenAway[sync.scopeIndex] else { return false }
    defer { takenAway[sync.scopeIndex] = state }
    if self[sync.scopeIndex] == nil {
      state.firstDropped = state.firstDropped ?? sync.number
      return true
    }
    guard let first = state.firstDropped, let number = sync.number else { return false }
    if number > first { return true }
    if number == first { state.firstDropped = nil }
    return false
  }

  /// Notes that the client has seen the messages up to an index, and has made what it sends from now on after that.
  func acknowledge(upTo message: Int) {
    if takenAway.isEmpty { return }
    takenAway = takenAway.filter { $0.value.message > message }
  }

  /// Returns true if the session has fetched a scope, even if the fetch is not answered yet.
  func contains(_ host: ScopeHost) -> Bool { hasOpenFetches(of: host) || self[host] != nil }

  // MARK: Openings

  /// Returns true if a fetch of the scope of a name waits for it to be opened.
  func isOpening(_ name: String) -> Bool { openings[name] != nil }

  /// Notes that a fetch waits for its scope to be opened.
  func beginOpening(_ name: String) {
    openings[name, default: 0] += 1
    openingCount += 1
  }

  /// Notes that a fetch that has waited for its scope to be opened is answered.
  func endOpening(_ name: String) {
    guard let count = openings[name] else { return }
    openings[name] = count > 1 ? count - 1 : nil
    openingCount -= 1
  }

  // MARK: Open fetches

  /// The number of fetches that are not answered yet.
  var openFetchCount: Int { openFetches.reduce(0) { $0 + $1.indices.count } }

  /// Returns true if fetches of a scope are not answered yet.
  func hasOpenFetches(of host: ScopeHost) -> Bool {
    openFetches.contains { $0.host === host }
  }

  /// Adds a fetch that is answered later.
  func open(_ fetch: Int, of host: ScopeHost) {
    if let place = openFetches.firstIndex(where: { $0.host === host }) {
      openFetches[place].indices.append(fetch)
    } else {
      openFetches.append(OpenFetches(host: host, indices: [fetch]))
      host.audience.openFetches += 1
    }
  }

  /// Removes and returns the fetches of a scope that are not answered yet.
  func closeFetches(of host: ScopeHost) -> [Int] {
    guard let place = openFetches.firstIndex(where: { $0.host === host }) else { return [] }
    host.audience.openFetches -= 1
    return openFetches.remove(at: place).indices
  }

  /// Drops all fetches that are not answered yet, for a session that ends.
  func closeAllFetches() {
    for fetches in openFetches { _ = closeFetches(of: fetches.host) }
  }

  /// Returns the subscriptions in order, with each call beginning with a different one.
  func takeTurn() -> [Subscription] {
    let all = inOrder
    turn += 1
    return all.indices.map { all[(turn + $0) % all.count] }
  }
}
