import Foundation

/// A change set together with what its operations have begun with and led to, for those who keep the
/// values underneath, or have to name them to peers that know no operations.
///
/// Collections are kept as they are, which costs next to nothing; their JSON is made when it is asked
/// for.
///
/// A class, because it goes through several hands within a tick: one reference is passed on, instead of
/// all that a set holds.
package final class SealedChanges {
  /// A property of which the set has operations.
  enum Outcome {
    case number(before: JSONValue, now: JSONValue)
    case list(now: ModelList, steps: [ListOperation])

    var before: JSONValue {
      switch self {
      case .number(let before, _): before
      case .list(let now, let steps): steps.undone(on: now).json
      }
    }

    /// What a counter is now.
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

  /// The set.
  package let set: ChangeSet
  /// Empty if nobody has asked for it.
  let outcomes: [PropertyKey: Outcome]
  /// Tells what becomes of the set; nil as long as nobody has asked.
  var handle: ChangeSetHandle?

  init(set: ChangeSet, outcomes: [PropertyKey: Outcome], handle: ChangeSetHandle?) {
    self.set = set
    self.outcomes = outcomes
    self.handle = handle
  }

  /// The same set with values instead of operations. Cost: O(n) in the size of what was changed.
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
