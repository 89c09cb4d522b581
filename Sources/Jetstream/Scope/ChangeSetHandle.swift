import Foundation

/// What becomes of a change set.
///
/// ```swift
/// let handle = scope.modifyAtomically("check out") { cart.isOrdered = true }
/// try await handle.finished()
/// ```
///
/// While a client syncs the scope, the server decides: it accepts the set, or rejects fragments of it,
/// which are then not visible any more, whatever came after them. In a scope that no client syncs a set
/// is completed at once.
///
/// A handle belongs to the isolation domain of its scope. Nobody has to keep it.
public final class ChangeSetHandle {
  /// How far a change set is.
  public enum State: Sendable, Hashable {
    /// The server has not decided.
    case syncing
    /// All of it counts.
    case completed
    /// Some of its fragments were rejected, and are taken back.
    case partiallyReverted
    /// None of it counts, and it is taken back.
    case reverted
    /// The client was closed, or the scope is gone, before anything was decided: what was changed stays
    /// visible, and is not sent any more.
    case abandoned

    /// Whether this is the last state.
    public var isFinal: Bool { self != .syncing }
  }

  /// What the server said of one fragment.
  package enum Outcome: Sendable, Hashable {
    /// It counts as it is.
    case accepted
    /// It counts, and then the model got these values, by property name.
    case modified(JSONObject)
    /// It does not count.
    case rejected(WireError)
  }

  /// Fires when ``state`` has changed. That happens once: it is final then.
  public let onStateChange = Signal<State>()
  /// Fires when the set is completed.
  package let onCompletion = Signal<Void>()
  /// Fires when it is known that not all of the set counts, or that nobody will ever decide.
  package let onError = Signal<ChangeSetError>()

  /// The change set. Within the closure of a ``Scope/modify(_:author:_:)`` that has joined another one it
  /// is empty, until the outer closure ends.
  public internal(set) var set: ChangeSet
  /// How far it is.
  public private(set) var state = State.syncing
  /// What became of each of the set's fragments, in their order; empty until the state is final, and for a
  /// set that no server was asked about.
  package private(set) var outcomes: [Outcome] = []
  /// Why not all of it counts; nil if it does, or if that is not known.
  public private(set) var error: ChangeSetError?

  /// How many clients have taken the set on and may decide it.
  var claims = 0
  /// Whether ``PendingChangeSets`` has it.
  var isPending = false
  private var waiting: [(ChangeSetError?) -> Void] = []

  init(_ set: ChangeSet) { self.set = set }

  /// The fragments that were rejected, each with the server's reason, also those that were rejected only
  /// because of others.
  public var rejections: [(fragment: SyncFragment, error: WireError)] {
    zip(set.fragments, outcomes).compactMap { fragment, outcome in
      if case .rejected(let error) = outcome { (fragment, error) } else { nil }
    }
  }

  /// Calls `body` once, when the state is final; at once if it is. The error is nil if the set is
  /// completed.
  package func whenFinished(_ body: @escaping (ChangeSetError?) -> Void) {
    if state.isFinal { body(error) } else { waiting.append(body) }
  }

  /// Returns when the set is completed. A task that is cancelled stops waiting; the set is as it was.
  ///
  /// - Throws: ``ChangeSetError`` if not all of it counts, or if nobody will ever decide; and
  ///   ``ChangeSetError/cancelled``.
  public func finished(isolation: isolated (any Actor)? = #isolation) async throws(ChangeSetError) {
    let outcome = Awaited<ChangeSetError?>(cancelled: .cancelled)
    whenFinished { outcome.put($0) }
    if let error = await outcome.value { throw error }
  }

  /// The server has decided about each fragment.
  ///
  /// - Parameter causes: which fragment's rejection has led to that of another one, by place.
  func decide(_ outcomes: [Outcome], causes: [Int?]) {
    self.outcomes = outcomes
    let count = rejections.count
    if count == 0 { return finish(.completed, nil) }
    var mistakes: [ChangeSetError.Rejection] = []
    var places: [Int: Int] = [:]
    for (at, (fragment, outcome)) in zip(set.fragments, outcomes).enumerated() {
      guard causes[at] == nil, case .rejected(let error) = outcome else { continue }
      places[at] = mistakes.count
      mistakes.append(ChangeSetError.Rejection(fragment: fragment, error: error))
    }
    for (at, cause) in causes.enumerated() {
      guard let place = cause.flatMap({ places[$0] }) else { continue }
      mistakes[place].consequences.append(set.fragments[at])
    }
    finish(count == outcomes.count ? .reverted : .partiallyReverted, .rejected(mistakes))
  }

  func finish(_ state: State, _ error: ChangeSetError?) {
    guard !self.state.isFinal else { return }
    self.state = state
    self.error = error
    let waiting = self.waiting
    self.waiting = []
    onStateChange.fire(state)
    if let error { onError.fire(error) } else { onCompletion.fire(()) }
    for body in waiting { body(error) }
  }
}

/// Why a change set does not count, or not as a whole.
public enum ChangeSetError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A fragment that the server has rejected.
  public struct Rejection: Sendable, Hashable {
    /// What was rejected.
    public let fragment: SyncFragment
    /// Why.
    public let error: WireError
    /// The fragments that were rejected only because this one was.
    public internal(set) var consequences: [SyncFragment] = []
  }

  /// The server has rejected these fragments, and what depends on them.
  case rejected([Rejection])
  /// These fragments meet none of the constraints of the procedure, which is named.
  case constraintsNotMet(procedure: String, fragments: [SyncFragment])
  /// A procedure, which is named, was asked for within another call of `modify`, or in an observer that is
  /// told at once of what others did: what a procedure does has to be a set of its own.
  case procedureWithin(procedure: String)
  /// The closure that made the changes has thrown; what it had changed was taken back.
  case rolledBack
  /// Nobody will decide any more, for this reason: the client was closed, or the scope is gone.
  case abandoned(reason: String)
  /// The task that waited was cancelled. The set is as it was.
  case cancelled

  /// What happened, in words.
  public var description: String {
    switch self {
    case .rejected(let rejections):
      "The server rejected " + rejections.map { "\($0.error)" }.joined(separator: "; ")
    case .constraintsNotMet(let procedure, let fragments):
      "Procedure \(procedure) does not allow "
        + fragments.map { "\($0.kind) of \($0.className) '\($0.uuid.wireText)'" }
        .joined(separator: ", ")
    case .procedureWithin(let procedure):
      "Procedure \(procedure) was asked for in the middle of other changes."
    case .rolledBack: "The closure that made the changes has thrown an error."
    case .abandoned(let reason): "The server has not decided: \(reason)"
    case .cancelled: "The task was cancelled."
    }
  }
}
