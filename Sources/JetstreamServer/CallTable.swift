import Foundation
import Jetstream

/// The calls of procedures in a scope that are not decided.
///
/// A client has one at a time. What it sends behind the call waits until that is decided: it may follow from what the call
/// does. A call goes on when its session loses its connection, leaves or expires, and is answered if the client sends it
/// again; it ends undecided when the client's rights are taken away.
struct CallTable {
  /// The sender of calls: a client that numbers its change sets or, in version 1, a session.
  enum Caller: Hashable {
    case client(UUID)
    case session(Int)
  }

  private(set) var running: [Caller: RunningCall] = [:]

  subscript(caller: Caller) -> RunningCall? {
    get { running[caller] }
    set { running[caller] = newValue }
  }

  var isEmpty: Bool { running.isEmpty }

  /// Returns the calls whose time is over, in the order of their ends.
  func late(at now: Duration) -> [RunningCall] {
    running.values.filter { $0.request.deadline <= now }
      .sorted { ($0.request.deadline, $0.request.id) < ($1.request.deadline, $1.request.id) }
  }

  /// Takes all calls out, undecided.
  mutating func removeAll() {
    let calls = running.values
    running = [:]
    for call in calls { call.request.end(isCancelled: true, comesAgain: true) }
  }
}

/// The change sets that wait for a call of their client to be decided, each with the session as it was when it sent it.
struct CallQueue {
  private var sets: [(sync: ScopeSync, submitter: ScopeHost.Submitter)] = []
  private(set) var bytes = 0

  var isEmpty: Bool { sets.isEmpty }

  /// The change set whose turn is next; nil if none waits.
  var first: ScopeSync? { sets.first?.sync }

  var count: Int { sets.count }

  mutating func append(_ sync: ScopeSync, _ submitter: ScopeHost.Submitter) {
    sets.append((sync, submitter))
    bytes += Message.scopeSync(sync).roughSize
  }

  mutating func removeFirst() -> (sync: ScopeSync, submitter: ScopeHost.Submitter) {
    let first = sets.removeFirst()
    bytes -= Message.scopeSync(first.sync).roughSize
    return first
  }
}

/// A call of a procedure that is not decided.
final class RunningCall {
  let caller: CallTable.Caller
  let request: ProcedureRequest
  /// The client's message; another one once the client has sent the call again.
  private(set) var sync: ScopeSync
  /// The checksum of the change set and its arguments.
  let checksum: UInt32
  /// The state of the session when it sent the call.
  let submitter: ScopeHost.Submitter
  /// The subscription that waits for the answer; nil while there is none.
  private(set) weak var subscription: Subscription?
  /// The subscriptions with change sets that wait for the decision.
  private(set) var heldBack: [Subscription] = []

  init(
    _ request: ProcedureRequest, by caller: CallTable.Caller, _ sync: ScopeSync, checksum: UInt32,
    _ submitter: ScopeHost.Submitter, _ subscription: Subscription
  ) {
    (self.caller, self.request, self.sync) = (caller, request, sync)
    (self.checksum, self.submitter, self.subscription) = (checksum, submitter, subscription)
  }

  /// The session that waits for the answer; nil while there is none.
  var session: ServerSession? { subscription.flatMap { $0.isLive ? $0.session : nil } }

  /// Notes that the client has sent the call again. What comes late from an earlier session takes the answer from no other.
  func sent(again sync: ScopeSync, on subscription: Subscription) {
    if let current = self.subscription, current.isLive,
      current.session.number > subscription.session.number
    {
      return
    }
    (self.sync, self.subscription) = (sync, subscription)
  }

  /// Notes that a subscription has change sets that wait for the decision.
  func holdsBack(_ subscription: Subscription) {
    if heldBack.contains(where: { $0 === subscription }) { return }
    heldBack.append(subscription)
  }

  /// Returns true if another subscription than one waits for the answer.
  func isAwaited(besides other: Subscription) -> Bool {
    subscription.map { $0 !== other && $0.isLive } ?? false
  }
}
