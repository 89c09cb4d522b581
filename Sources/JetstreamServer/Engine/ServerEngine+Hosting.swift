import Foundation
import Jetstream

/// Hosting of scopes.
extension ServerEngine {
  /// Collects the local changes of `scope` from now on, so that they are ordered with those of the sessions that fetch
  /// it later.
  package func host(_ scope: any Hostable, unknown: UnknownContent = .reject) {
    let host = hostedScope(scope)
    host.isPinned = true
    host.order.policy.unknown = unknown
  }

  /// Hosts a scope with a stored history: clients are told of a change only after its record was given to `store` and
  /// ``stored(_:of:)`` has confirmed it. Begins with `history`, or with a new history if that is nil.
  ///
  /// A scope that is hosted already is not hosted any more then, unless its history is new: what its sessions were told is
  /// no part of `history`. They fetch the scope again.
  ///
  /// - Parameter isRestored: true if the content has been restored from the history already.
  /// - Returns: the history from which another process could continue; nil if it is `history`.
  /// - Throws: `ScopeError` if the history does not fit the scope, or if a new one would have nothing to begin with: the
  ///   scope has no root.
  @discardableResult
  package func host(
    _ scope: any Hostable, unknown: UnknownContent = .reject, history: ScopeHistory?,
    isRestored: Bool = false, store: @escaping (ScopeRecord) -> Void
  ) throws(ScopeError) -> ScopeHistory? {
    if history != nil {
      remove(scope, .notNow("The scope goes on from its history", retryAfter: .zero))
    }
    self.host(scope, unknown: unknown)
    let host = hostedScope(scope)
    if let history {
      try host.restore(history, isRestored: isRestored)
      reportLeftOut(of: host)
    } else {
      host.content.seal()
      guard host.content.root != nil else {
        throw .invalidState(problem: "scope \(host.content.name) has no root.")
      }
    }
    host.order.records.store = store
    return history == nil ? host.state : nil
  }

  /// Reports what a history has and the schema of rows does not have.
  private func reportLeftOut(of host: ScopeHost) {
    guard let rows = host.content as? RowsContent else { return }
    for name in rows.leftOut.keys.sorted() {
      hooks.report(
        Diagnostic(
          .warning, .scope, scope: rows.name,
          "its history has content of \(name), which its schema does not have: it is left out, and "
            + "the next snapshot is without it"))
    }
  }

  /// Stops hosting a scope: all sessions that have fetched it are sent `error`. Submissions whose records are not
  /// durable yet are not answered: a client that comes back later learns then how they were decided.
  package func remove(_ scope: any Hostable, _ error: WireError) {
    let key = ObjectIdentifier(scope)
    guard let host = hosts.removeValue(forKey: key) else { return }
    host.content.sealAll()
    // Change sets that were accepted in this turn are answered first.
    if isHandling { tellNews() } else { flush() }
    leave(host, by: sessions.values, error)
    host.end()
    if !isHandling { flush() }
  }

  /// Marks the first `count` records of a scope since it was hosted as durable.
  package func stored(_ count: Int, of scope: any Hostable) {
    if let host = hosts[ObjectIdentifier(scope)] {
      // A session may end for what it has waited for, and the app may remove the scope when it is told of that.
      withExtendedLifetime(host) { host.order.records.stored(count) }
    }
    if !isHandling { flush() }
  }

  /// Takes note that the records of a scope cannot be stored, which is tried again. Clients that have the scope go on with
  /// what is durable; those that want to have it, and would be shown changes that are not, are told to ask again. Clients
  /// of version 1 do not ask again: they wait.
  package func stalled(_ scope: any Hostable) {
    // From then on, none is granted.
    guard let host = hosts[ObjectIdentifier(scope)], host.order.records.stalled() else { return }
    let subscriptions = host.audience.subscriptions.sorted { $0.key < $1.key }
    for (_, subscription) in subscriptions where !subscription.hasBegun {
      refuseOpenFetches(of: subscription, .historyStalled)
    }
    if !isHandling { flush() }
  }

  /// Returns whether a scope is hosted with a stored history.
  package func keepsHistory(of scope: any Hostable) -> Bool {
    hosts[ObjectIdentifier(scope)]?.order.records.store != nil
  }

  /// Returns true if a scope is hosted.
  package func isHosted(_ scope: any Hostable) -> Bool { hosts[ObjectIdentifier(scope)] != nil }

  /// Reads the state of a hosted scope, a part at a time, so that ``history(of:)`` takes no longer than what changes
  /// from then on.
  ///
  /// - Parameter action: runs when that is done, at once if the state is small; or never, if the scope is removed before.
  package func prepareHistory(of scope: any Hostable, then action: @escaping () -> Void) {
    guard let host = hosts[ObjectIdentifier(scope)], host.content.settle(),
      let root = host.content.root
    else { return action() }
    let isReady = host.states.prepare(
      host, below: root, partBytes: configuration.stateBytes, now: now, then: action)
    encodeNext(of: host)
    if isReady { action() }
    if !isHandling { flush() }
  }

  /// Returns the history of a hosted scope until now; nil in the middle of a step, and while the scope has no root.
  package func history(of scope: any Hostable) -> ScopeHistory? {
    hosts[ObjectIdentifier(scope)]?.history
  }

  /// Returns the host of a scope, which is made on first use.
  func hostedScope(_ scope: any Hostable) -> ScopeHost {
    if let host = hosts[ObjectIdentifier(scope)] { return host }
    defer { next.scope += 1 }
    let content = scope.makeContent()
    let order = ScopeOrder(
      content: content, epoch: hooks.makeEpoch(),
      policy: ScopeOrder.Policy(
        unknownValueBytes: configuration.limits.bytesPerChangeSet ?? .max,
        rules: configuration.rules(content.name).map(RuleBook.init)),
      streamLimit: configuration.streamExtent)
    // Rows that were made elsewhere were measured there: their history is restored next.
    if order.hasSizeLimit, (content as? RowsContent)?.isMeasured != true {
      order.measureWholeState()
    }
    let host = ScopeHost(
      order, number: next.scope * configuration.channel.count + configuration.channel.number,
      work.undecidedHosts)
    hosts[ObjectIdentifier(scope)] = host
    host.audience.rates = ScopeRates(configuration.limits)
    host.order.date = hooks.date
    host.order.records.inverseLeftOut = { [weak self, name = content.name] in
      self?.hooks.report(
        Diagnostic(
          .warning, .storage, scope: name,
          "a change set cannot be undone: its record would be too long with its inverse"))
    }
    // Unowned is sound: the end of the engine takes the closure away.
    host.order.onLocalChanges = { [unowned self, weak host] item, set in
      guard let host else { return }
      host.order.keep(item, set)
      broadcast(item, of: host, except: nil)
      if !isHandling { flush() }
    }
    return host
  }

  /// Lets every host drop what all of its sessions have seen, and ends hosts that no session uses, that the app does
  /// not offer, and whose scopes it cannot name to clients again.
  func forgetSeen() {
    var horizons: [ObjectIdentifier: Int] = [:]
    for session in sessions.values {
      for subscription in session.subscriptions.all {
        let key = ObjectIdentifier(subscription.host)
        horizons[key] = min(
          horizons[key] ?? .max, subscription.seen, subscription.queued.proven ?? .max)
      }
      for host in session.subscriptions.openFetches.map(\.host) {
        let key = ObjectIdentifier(host)
        horizons[key] = min(horizons[key] ?? .max, host.sequence)
      }
    }
    // The server judges a change set by what its client had seen when it sent that.
    for host in hosts.values {
      let key = ObjectIdentifier(host)
      for set in host.undecided.all {
        horizons[key] = min(horizons[key] ?? host.sequence, set.submitter.proven)
      }
    }
    for (key, host) in hosts
    where horizons[ObjectIdentifier(host)] == nil && !host.isPinned && !host.content.isHeldByApp {
      host.end()
      hosts[key] = nil
    }
    for host in hosts.values {
      let horizon = horizons[ObjectIdentifier(host)]
      host.forget(upTo: horizon ?? host.sequence)
      if horizon == nil { host.forgetRejected() }
      trimClients(of: host)
    }
  }
}

extension WireError {
  static let historyStalled = notNow(
    "The server cannot keep the scope's changes at the moment", retryAfter: .seconds(1))
}
