import Foundation
import Jetstream

/// A change set that has begun and is not decided: a ``RunningCall`` or a ``LargeSet``.
class UndecidedSet {
  let sender: UndecidedSets.Sender
  /// Nil once the scope is gone.
  private(set) weak var host: ScopeHost?
  /// The client's message; with another index once the client has sent the change set again.
  private(set) var sync: ScopeSync
  /// The checksum of the change set and its arguments.
  let checksum: UInt32
  /// The approximate size of the client's message, in bytes.
  let roughSize: Int
  /// The state of the session when it sent the change set.
  let submitter: ScopeOrder.Submitter
  /// The subscription that waits for the answer; nil while there is none.
  private(set) weak var subscription: Subscription?
  /// The session that has sent it last, as it was then or, if it has left the scope since or has ended, when it left.
  private(set) var origin: SessionInfo
  /// The name under which that session has fetched the scope.
  private(set) var scopeName: String
  /// True if that session may only read the scope by now, which it has left.
  var isReadOnly = false
  /// The subscriptions with change sets that wait for the decision.
  private(set) var heldBack: [Subscription] = []

  init(
    _ sync: ScopeSync, checksum: UInt32, _ submitter: ScopeOrder.Submitter,
    _ subscription: Subscription
  ) {
    (self.sync, self.checksum) = (sync, checksum)
    roughSize = Message.scopeSync(sync).roughSize
    (self.submitter, self.subscription) = (submitter, subscription)
    (host, sender) = (subscription.host, subscription.sender)
    (origin, scopeName) = (subscription.session.info, subscription.fetchedName)
  }

  /// The session that waits for the answer; nil while there is none.
  var session: ServerSession? { subscription.flatMap { $0.isLive ? $0.session : nil } }

  /// Notes that the client has sent the change set again. What comes late from an earlier session takes the answer from no
  /// other.
  ///
  /// Only its index is taken over: another change set may have the same number and checksum, and was not judged.
  func sent(again sync: ScopeSync, on subscription: Subscription) {
    if let current = self.subscription, current.isLive,
      current.session.number > subscription.session.number
    {
      return
    }
    (self.sync.index, self.sync.scopeIndex) = (sync.index, sync.scopeIndex)
    self.subscription = subscription
    (origin, scopeName) = (subscription.session.info, subscription.fetchedName)
    isReadOnly = false
  }

  /// Notes that a session leaves the scope. If it has sent the change set last, the rights that it has until then
  /// count, and its credentials, which may have been renewed since.
  func left(by subscription: Subscription, asReadOnly: Bool) {
    guard self.subscription === subscription else { return }
    (isReadOnly, origin) = (asReadOnly, subscription.session.info)
  }

  /// Notes that a subscription has change sets that wait for the decision.
  func holdsBack(_ subscription: Subscription) {
    heldBack.removeAll { !$0.isLive }
    if !heldBack.contains(where: { $0 === subscription }) { heldBack.append(subscription) }
  }

  /// Returns true if another subscription than one waits for the answer.
  func isAwaited(besides other: Subscription) -> Bool {
    subscription.map { $0 !== other && $0.isLive } ?? false
  }

  /// Ends it undecided.
  ///
  /// - Parameter comesAgain: false if its client has given up the identity under which it has sent it.
  func drop(comesAgain: Bool = true) {}

  /// The state of the session by now. What a client of version 1 was told since it has sent the change set, it shows over
  /// it, so that it may have to be told again.
  var currentSubmitter: ScopeOrder.Submitter { submitter.updated(from: subscription) }
}

extension Subscription {
  /// The sender of the subscription's change sets.
  var sender: UndecidedSets.Sender {
    if session.version > 1, let client { .client(client) } else { .session(session.number) }
  }

  /// The name under which the session has fetched the scope.
  fileprivate var fetchedName: String {
    session.subscriptions.access.name(of: host) ?? host.content.name
  }
}

extension ScopeOrder.Submitter {
  /// Returns the submitter with what it may have missed by now; see ``Subscription/acknowledge(upTo:)``.
  func updated(from subscription: Subscription?) -> ScopeOrder.Submitter {
    guard !rebases, let subscription, subscription.isLive else { return self }
    var result = self
    result.missed = subscription.values.unacknowledgedWrites
    return result
  }
}
