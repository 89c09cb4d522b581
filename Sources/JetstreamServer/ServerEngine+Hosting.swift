import Foundation
import Jetstream

/// The scopes that are offered.
extension ServerEngine {
  /// Collects the local changes of `scope` from now on, so that they are ordered with those of the
  /// sessions that will fetch it.
  package func host(_ scope: Scope, unknown: UnknownContent = .reject) {
    pinned.insert(ObjectIdentifier(scope))
    hostedScope(scope).unknown = unknown
  }

  /// The same for a scope whose history is kept: nobody is told of anything before `store` was given it
  /// and ``stored(_:of:)`` has said that it is safe. Begins with `history`, or as a new one.
  ///
  /// - Returns: what a process would have to begin with that started now.
  /// - Throws: `ScopeError` if the history is not one of the scope.
  @discardableResult
  package func host(
    _ scope: Scope, unknown: UnknownContent = .reject, history: ScopeHistory?,
    store: @escaping (ScopeRecord) -> Void
  ) throws(ScopeError) -> ScopeHistory {
    pinned.insert(ObjectIdentifier(scope))
    let host = hostedScope(scope)
    host.unknown = unknown
    if let history { try host.restore(history) }
    host.store = store
    return host.state
  }

  /// Ends the hosting of a scope: all who have fetched it are told `error`. What waits for its log to be written is
  /// not answered: a client that comes back later is told how it was decided then.
  package func remove(_ scope: Scope, _ error: WireError) {
    let key = ObjectIdentifier(scope)
    pinned.remove(key)
    guard let host = hosts.removeValue(forKey: key) else { return }
    scope.sealChanges()
    leave(host, error)
    host.end()
    if !isHandling { flush() }
  }

  /// As many records of a scope as this, counted from when it was hosted, will not get lost.
  package func stored(_ count: Int, of scope: Scope) {
    hosts[ObjectIdentifier(scope)]?.stored(count)
    if !isHandling { flush() }
  }

  /// Whether a scope is hosted and its history is kept.
  package func keepsHistory(of scope: Scope) -> Bool {
    hosts[ObjectIdentifier(scope)]?.store != nil
  }

  /// The history of a hosted scope until now; nil in the middle of a step.
  package func history(of scope: Scope) -> ScopeHistory? {
    hosts[ObjectIdentifier(scope)]?.history
  }

  /// The host of a scope, made on first use.
  func hostedScope(_ scope: Scope) -> ScopeHost {
    if let host = hosts[ObjectIdentifier(scope)] { return host }
    let host = ScopeHost(
      scope: scope, epoch: hooks.makeEpoch(),
      streamLimit: .init(sets: configuration.streamLimit, bytes: configuration.streamBytes))
    hosts[ObjectIdentifier(scope)] = host
    host.date = hooks.date
    host.onLocalChanges = { [weak self, unowned host] item in
      guard let self else { return }
      host.keep(item)
      broadcast(item, of: host, except: nil)
      if !isHandling { flush() }
    }
    return host
  }

  /// Lets the hosts forget what every session has seen.
  func forgetSeen() {
    var horizons: [ObjectIdentifier: Int] = [:]
    for session in sessions.values {
      for subscription in session.subscriptions.values {
        let key = ObjectIdentifier(subscription.host)
        horizons[key] = min(horizons[key] ?? .max, subscription.seen)
      }
    }
    for (key, host) in hosts
    where horizons[ObjectIdentifier(host)] == nil && !pinned.contains(key) {
      host.end()
      hosts[key] = nil
    }
    for host in hosts.values {
      host.forget(upTo: horizons[ObjectIdentifier(host)] ?? host.sequence)
    }
  }
}
