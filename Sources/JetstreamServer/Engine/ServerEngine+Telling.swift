import Jetstream

/// The accepted change sets that other sessions are told.
extension ServerEngine {
  /// Tells all sessions that listen, but for the one that has made the change set: its reply tells it. Sessions of version
  /// 2 are told at the end of the turn.
  func broadcast(_ item: StreamItem, of host: ScopeHost, except origin: ServerSession?) {
    let old = host.audience.valueListeners
    let text = old.count > 1 ? item.whole.map { FragmentsText($0) } : nil
    for (_, subscription) in old where subscription.session !== origin {
      if subscription.session.link.connection == nil {
        subscription.miss(item)
      } else {
        tell(item, as: text, of: subscription)
      }
    }
    if host.order.records.isCurrent { return announce(item, of: host) }
    host.order.records.whenStored { [weak self, unowned host] in self?.announce(item, of: host) }
  }

  private func announce(_ item: StreamItem, of host: ScopeHost) {
    if host.audience.announce(item, frameBytes: configuration.frameBytes) {
      hostsWithNews.append(host)
    }
  }

  /// Sends a session of version 1 an accepted change set, once it is durable.
  private func tell(
    _ item: StreamItem, as text: FragmentsText? = nil, of subscription: Subscription
  ) {
    let session = subscription.session
    session.announce(item.whole ?? [], newcomers: item.newcomers, of: subscription)
    whenStored(subscription, of: session) {
      session.tell(
        item.whole ?? [], as: text, upTo: item.sequence, newcomers: item.newcomers,
        of: subscription)
    }
  }

  /// Queues what a session of version 1 has missed while it had no connection. The messages go out once the client has
  /// said what it has received.
  func tellMissed(to session: ServerSession) {
    for subscription in session.subscriptions.inOrder {
      guard let items = subscription.takeMissed() else {
        return endWithWarning(session, "too far behind")
      }
      for item in items { tell(item, of: subscription) }
    }
    session.link.replaceOutbox(with: [])
  }
}
