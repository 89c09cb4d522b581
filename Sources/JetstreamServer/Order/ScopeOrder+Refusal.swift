import Foundation
import Jetstream

/// Change sets that are rejected before they are judged.
extension ScopeOrder {
  /// Rejects a change set for a reason that has nothing to do with what it changes, in place of judging it. Its
  /// client is told all the same what to show now.
  func reject(
    _ fragments: [SyncFragment], unjudged error: WireError, _ submitter: Submitter
  ) -> Result {
    noteRejectedAdditions(among: fragments, error)
    let result = Result(replies: fragments.map { _ in FragmentReply(error: error) })
    if !submitter.usesOperations {
      correct(result, rejecting: fragments, submitter)
      result.effort = Self.effort(of: result.correction)
    }
    return result
  }

  /// Returns the number of models that a correction names.
  private static func effort(of correction: [SyncFragment]) -> Int {
    correction.reduce(0) { sum, fragment in
      fragment.properties.members.reduce(sum + 1) { sum, member in
        if case .array(let elements) = member.value { sum + elements.count } else { sum }
      }
    }
  }

  /// Notes that the additions of models that the scope does not have are rejected with an error. A client that may not write
  /// adds nothing later, either, and would have the references of others rejected.
  func noteRejectedAdditions(among fragments: [SyncFragment], _ error: WireError) {
    if unknown != .keep || error == .readOnly { return }
    for fragment in fragments where fragment.kind == .add {
      let uuid = fragment.uuid
      if content.sharedModel(uuid) != nil || content.unknownModel(uuid) != nil { continue }
      tombstones.note(addition: uuid, isRejected: true, upTo: sequence + 1)
    }
  }
}

extension WireError {
  static let readOnly = WireError(
    message: "You may read this scope, but not change it", type: "read-only")
}
