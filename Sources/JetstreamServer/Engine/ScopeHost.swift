import Foundation
import Jetstream

/// A scope that a server hosts: the order of its change sets, and what the sessions that have fetched it, or want to, need.
///
/// It lives until the server hosts it no more. If it is not pinned, it ends before that once no session has it and only
/// the server holds the scope. As long as the app can name the scope to a client again, its history goes on: clients
/// that have been away know their places in it, and change sets that they send again are applied once.
final class ScopeHost: ScopeOrderObserver {
  let order: ScopeOrder
  /// The subscriptions, and those of them that are sent each change set.
  let audience: ScopeAudience
  /// The full states that sessions are sent, and of which the log has snapshots.
  var states = ScopeStates()
  private let undecidedHosts: UndecidedHosts
  // No access to those that are marked is open while other code runs: each is read or written in a single step.
  /// The change sets that have begun and are not decided.
  @exclusivity(unchecked) var undecided = UndecidedSets() {
    didSet { undecidedHosts.note(self, isUndecided: !undecided.isEmpty) }
  }
  /// The order of the same scope as rows, in simulations.
  @exclusivity(unchecked) var twin: OrderTwin?
  /// True if the scope is hosted whether or not a session has fetched it.
  var isPinned = false
  /// True once the scope is not hosted any more.
  @exclusivity(unchecked) private(set) var hasEnded = false

  /// Hosts a scope.
  ///
  /// - Parameters:
  ///   - number: the number by which sessions of version 2 name it.
  ///   - undecidedHosts: lists it as long as it has change sets that are not decided.
  init(_ order: ScopeOrder, number: Int, _ undecidedHosts: UndecidedHosts) {
    self.order = order
    self.undecidedHosts = undecidedHosts
    audience = ScopeAudience(scopeIndex: number)
    order.observer = self
  }

  var content: any HostedContent { order.content }

  /// The sequence of the last change set.
  var sequence: Int { order.sequence }

  /// Adds a subscription.
  func add(_ subscription: Subscription) {
    audience.add(subscription)
    order.needsValues = audience.needsValues
  }

  /// Removes a subscription.
  func remove(_ subscription: Subscription) {
    audience.remove(subscription)
    order.needsValues = audience.needsValues
    if let client = subscription.client { order.clients.left(client) }
  }

  func changed(_ uuid: UUID) { states.note(uuid) }

  func arrived(_ uuid: UUID) {
    if !undecided.isEmpty { undecided.noteArrival(of: uuid) }
    states.note(uuid)
  }

  func arrived(all uuids: [UUID]) {
    if !undecided.isEmpty { for uuid in uuids { undecided.noteArrival(of: uuid) } }
    states.note(all: uuids)
  }

  func appended(_ sealed: SealedChanges) { twin?.localChange(sealed, of: order) }

  /// Forgets what is gone up to `horizon`, which every session has seen.
  func forget(upTo horizon: Int) {
    if order.forget(upTo: horizon) { twin?.forget(upTo: horizon) }
  }

  /// Forgets which additions were rejected, since no session has the scope.
  func forgetRejected() {
    order.forgetRejected()
    twin?.forgetRejected()
  }

  /// Ends everything that goes on in the scope. Change sets that are not decided are dropped.
  func end() {
    hasEnded = true
    content.end()
    letGo()
  }

  /// Breaks the cycles: subscriptions, and what waits for records, know the host.
  func letGo() {
    for set in undecided.takeAll() { set.drop() }
    audience.removeAll()
    states = ScopeStates()
    order.records.forgetWaiting()
  }

  // MARK: History

  /// Restores the scope from the history that an earlier process has left.
  ///
  /// - Parameter isRestored: true if the content has been restored from the history already.
  /// - Throws: `ScopeError` if the state does not fit the scope, or if a class no longer accepts a value.
  func restore(_ history: ScopeHistory, isRestored: Bool = false) throws(ScopeError) {
    states.forget()
    try order.restore(history, isRestored: isRestored)
  }

  /// The history from which another process could continue. Seals the changes that were collected so far. Nil in the
  /// middle of a step, while the state does not equal the result of the records made so far, and while the scope has no
  /// root: no process could continue from a state without one.
  ///
  /// A submission is applied before its record is handed over, and observers run in between. For a change set of the
  /// server's own, there is such a moment while the scope delivers it; `settle()` returns false then.
  var history: ScopeHistory? {
    !order.records.isInStep && content.settle() && content.root != nil ? state : nil
  }

  /// The current state of the scope and of its clients, as a history without records. It is consistent only if no step
  /// is under way.
  var state: ScopeHistory {
    order.history(
      of: states.takeParts(at: sequence, below: content.root?.uuid) ?? [content.sharedState()])
  }

  /// Describes what must not be the case between two inputs, a line for each; empty if all is well.
  func checkInvariants() -> [String] {
    var problems = audience.checkInvariants()
    if order.needsValues != audience.needsValues { problems.append("its order keeps no values") }
    if content.isSealed, !order.records.isInStep { problems += states.checkInvariants() }
    return order.checkInvariants() + problems.map { "scope \(content.name): \($0)" }
  }
}
