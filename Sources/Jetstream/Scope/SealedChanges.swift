import Foundation

/// A change set together with the values before and after its operations.
///
/// It is for listeners that keep the underlying values, or that have to send values to peers that do not know
/// operations. Collections are kept as they are, which costs next to nothing; their JSON is made on demand.
///
/// A class, because it is passed on several times within a tick: that copies one reference instead of everything
/// that a change set holds.
package final class SealedChanges {
  /// The values before and after the operations on one property.
  enum Outcome {
    case number(before: JSONValue, now: JSONValue)
    case list(now: ModelList, steps: [ListOperation])

    var before: JSONValue {
      switch self {
      case .number(let before, _): before
      case .list(let now, let steps): steps.undone(on: now).json
      }
    }

    /// The current value of a counter; nil for a collection.
    var number: JSONValue? {
      if case .number(_, let now) = self { now } else { nil }
    }

    var now: JSONValue {
      switch self {
      case .number(_, let now): now
      case .list(let now, _): now.json
      }
    }
  }

  /// The change set.
  package let set: ChangeSet
  /// The values around the operations. Empty if the values were not requested when the set was sealed.
  let outcomes: [PropertyKey: Outcome]
  /// The handle of the change set. Nil if the set was not made by `modify`.
  let handle: ChangeSetHandle?
  /// The conflicts whose changes it makes again, and that have left the ledger before. Logs are told of that when the change
  /// set has been delivered.
  var withdrawn: [Conflict] = []
  /// The models that have left with the change set, until it has its place among those that are delivered. Closures of
  /// observers, and classes, may change models when they are released.
  var gone: ContiguousArray<ModelObject> = []
  /// The change set as a pending one, once a client has claimed it.
  private(set) var pending: PendingChangeSet?

  /// Returns the change set as a pending one, which the caller must decide. Call it while the change set is delivered.
  func claim() -> PendingChangeSet {
    let claimed = pending ?? PendingChangeSet(set, handle: handle)
    claimed.claims += 1
    pending = claimed
    return claimed
  }

  init(set: ChangeSet, outcomes: [PropertyKey: Outcome], handle: ChangeSetHandle?) {
    self.set = set
    self.outcomes = outcomes
    self.handle = handle
  }

  /// The same change set with values instead of operations. Cost: O(n) in the size of the changed properties.
  package var whole: ChangeSet {
    self.set.with(
      set.fragments.map { named($0, \.now) }, undo: set.undo.map { named($0, \.before) })
  }

  private func named(_ fragment: SyncFragment, _ value: KeyPath<Outcome, JSONValue>) -> SyncFragment
  {
    guard !fragment.operations.isEmpty else { return fragment }
    var result = fragment
    result.operations = [:]
    for entry in fragment.operations {
      guard let outcome = outcomes[PropertyKey(uuid: fragment.uuid, name: entry.key)] else {
        continue
      }
      result.properties.append(newKey: entry.key, outcome[keyPath: value])
    }
    return result
  }
}
