import Foundation

/// The outcome of a change set: pending, accepted, partly rejected, rejected or abandoned.
///
/// ```swift
/// let handle = scope.modifyAtomically("check out") { cart.isOrdered = true }
/// try await handle.finished()
/// ```
///
/// While a client syncs the scope, the server decides: it accepts the change set, or rejects some of its fragments,
/// which then are no longer visible. In a scope that no client syncs, a change set is completed at once.
///
/// A handle belongs to the isolation domain of its scope. The app need not keep it.
public final class ChangeSetHandle {
  /// The state of a change set.
  public enum State: Sendable, Hashable {
    /// The server has not decided.
    case pending
    /// All of the change set counts: the server accepted it, or no client syncs the scope.
    case accepted
    /// The server rejected some fragments, which were undone.
    case partlyRejected
    /// None of the change set counts, and it was undone: the server rejected it, it did not meet its constraints,
    /// or the closure of `modify` threw.
    case rejected
    /// The handle learns nothing more: the client was closed or released, the app has left the scope, the server has
    /// ended its syncing, or the scope was deallocated, before the server decided.
    ///
    /// The changes stay visible. Without a log they are not sent again. The log of a scope keeps the change set, which is
    /// sent when the scope is fetched with that log: an app must not repeat it.
    case abandoned

    /// True if the state cannot change any more.
    package var isFinal: Bool { self != .pending }
  }

  /// The server's decision about one fragment.
  package enum Outcome: Sendable, Hashable {
    /// The fragment was accepted as it is.
    case accepted
    /// The fragment was accepted, and then the server gave the model these values, by property name.
    case modified(JSONObject)
    /// The fragment was rejected.
    case rejected(WireError)

    fileprivate init(_ reply: FragmentReply) {
      if let error = reply.error {
        self = .rejected(error)
      } else if let values = reply.modifications {
        self = .modified(values)
      } else {
        self = .accepted
      }
    }
  }

  /// Fires when ``state`` becomes final, which happens once.
  public let onStateChange = Signal<State>()

  /// The change set. It is empty until it is sealed: for a nested call of ``Scope/modify(_:author:_:)`` when the
  /// outermost closure has ended, for a call in an immediate observer of another replica's changes in the next
  /// tick.
  public internal(set) var changeSet: ChangeSet
  /// The state of the change set.
  public private(set) var state = State.pending
  /// The server's decision about each fragment, in their order. Empty until the state is final, and for a change
  /// set that was not sent to a server.
  package private(set) var outcomes: [Outcome] = []
  /// The reason why not all of the change set counts; nil if all of it does, or if that is not known yet.
  public private(set) var error: ChangeSetError?

  /// The outcome of the procedure that the change set calls; nil until a server has told it.
  package private(set) var outcome: CallOutcome?
  /// True once a server has decided about the change set.
  private(set) var isDecidedByServer = false

  private var waiting: [(ChangeSetError?) -> Void] = []
  private var waitingForOutcome: [() -> Void] = []

  init(_ changeSet: ChangeSet) { self.changeSet = changeSet }

  /// The rejected fragments, each with the server's error, including those that were rejected only because of
  /// others.
  package var rejections: [(fragment: SyncFragment, error: WireError)] {
    zip(changeSet.fragments, outcomes).compactMap { fragment, outcome in
      if case .rejected(let error) = outcome { (fragment, error) } else { nil }
    }
  }

  /// Calls `body` once, when the state becomes final, or at once if it is final already. The error is nil if the
  /// change set is completed.
  package func whenFinished(_ body: @escaping (ChangeSetError?) -> Void) {
    if state.isFinal { body(error) } else { waiting.append(body) }
  }

  /// Notes the outcome of the procedure that the change set calls, while the state is not final: the server has run it,
  /// and its changes are not here yet.
  func tell(_ outcome: CallOutcome) {
    guard !state.isFinal else { return }
    (self.outcome, isDecidedByServer) = (outcome, true)
    outcomeDidArrive()
  }

  private func outcomeDidArrive() {
    let waiting = waitingForOutcome
    waitingForOutcome = []
    for body in waiting { body() }
  }

  /// Waits until the server has told the outcome of the procedure that the change set calls, or the state is final.
  ///
  /// - Throws: ``ChangeSetError`` as ``finished()`` does.
  func told() async throws(ChangeSetError) {
    let end = Awaited<ChangeSetError?>(cancelled: .cancelled)
    func check() {
      if let outcome {
        end.put(outcome.error.map(ChangeSetError.procedureFailed))
      } else {
        end.put(error)
      }
    }
    if state.isFinal || outcome != nil { check() } else { waitingForOutcome.append(check) }
    if let error = await end.value { throw error }
  }

  /// Waits until the change set is completed. Cancelling the task ends the wait and does not affect the change set.
  ///
  /// - Throws: ``ChangeSetError`` if a part of the change set does not count or if it is abandoned;
  ///   ``ChangeSetError/cancelled`` if the task is cancelled.
  public func finished() async throws(ChangeSetError) {
    let outcome = Awaited<ChangeSetError?>(cancelled: .cancelled)
    whenFinished { outcome.put($0) }
    if let error = await outcome.value { throw error }
  }

  /// Makes the state final according to the server's replies to the fragments, in their order.
  func decide(by replies: [FragmentReply], _ outcome: CallOutcome? = nil) {
    outcomes = replies.map(Outcome.init)
    (self.outcome, isDecidedByServer) = (outcome, true)
    if let error = outcome?.error { return finish(.rejected, .procedureFailed(error)) }
    let causes = replies.indices.map { replies.cause(of: $0) }
    let count = rejections.count
    if count == 0 { return finish(.accepted, nil) }
    var mistakes: [ChangeSetError.Rejection] = []
    var places: [Int: Int] = [:]
    for (at, (fragment, outcome)) in zip(changeSet.fragments, outcomes).enumerated() {
      guard causes[at] == nil, case .rejected(let error) = outcome else { continue }
      places[at] = mistakes.count
      mistakes.append(ChangeSetError.Rejection(fragment: fragment, error: error))
    }
    for (at, cause) in causes.enumerated() {
      guard let place = cause.flatMap({ places[$0] }) else { continue }
      mistakes[place].consequences.append(changeSet.fragments[at])
    }
    finish(count == outcomes.count ? .rejected : .partlyRejected, .rejected(mistakes))
  }

  func finish(_ state: State, _ error: ChangeSetError?) {
    guard !self.state.isFinal else { return }
    self.state = state
    self.error = error
    let waiting = self.waiting
    self.waiting = []
    onStateChange.fire(state)
    for body in waiting { body(error) }
    outcomeDidArrive()
  }
}

/// The reason why a change set does not count, or not as a whole.
public enum ChangeSetError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A fragment that the server rejected.
  public struct Rejection: Sendable, Hashable {
    /// The rejected fragment.
    public let fragment: SyncFragment
    /// The server's error.
    public let error: WireError
    /// The fragments that were rejected only because this one was.
    public internal(set) var consequences: [SyncFragment] = []
  }

  /// The server rejected these fragments, and those that depend on them.
  case rejected([Rejection])
  /// The procedure that was called has made no changes, for this reason.
  case procedureFailed(WireError)
  /// These fragments meet none of the constraints of the procedure, which is named.
  case constraintsNotMet(procedure: String, fragments: [SyncFragment])
  /// The closure that made the changes threw an error, and its changes were rolled back.
  case rolledBack
  /// The handle will not learn the decision, for this reason; see ``ChangeSetHandle/State/abandoned``. If the scope has a
  /// log, the change set is sent when the scope is fetched with it: an app must not repeat it.
  case abandoned(reason: String)
  /// The task that waited was cancelled. The change set is not affected.
  case cancelled

  /// A sentence that describes the error.
  public var description: String {
    switch self {
    case .rejected(let rejections):
      "The server rejected " + rejections.map { "\($0.error)" }.joined(separator: "; ")
    case .procedureFailed(let error): "The procedure has failed: \(error.message)"
    case .constraintsNotMet(let procedure, let fragments):
      "Procedure \(procedure) does not allow "
        + fragments.map { "\($0.kind) of \($0.className) '\($0.uuid.wireText)'" }
        .joined(separator: ", ")
    case .rolledBack: "The closure that made the changes has thrown an error."
    case .abandoned(let reason): "The server has not decided: \(reason)"
    case .cancelled: "The task was cancelled."
    }
  }
}
