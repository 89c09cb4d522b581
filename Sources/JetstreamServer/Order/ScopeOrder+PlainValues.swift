import Foundation
import Jetstream

/// Submissions that do no more than set plain values of models that the scope has: most change sets of most apps.
///
/// No model comes, goes or moves with them, nothing is merged, and no fragment depends on another one. So their draft is
/// the submission itself, and what is broadcast, too, unless a value was written differently or changed by an observer.
extension ScopeOrder {
  /// Returns the draft of a submission that only sets plain values, all of which can be applied as they are; nil for any
  /// other submission, also for one with an error. It is the draft that a validation and a merge would lead to.
  func plainDraft(of fragments: [SyncFragment], by submitter: Submitter) -> Draft? {
    // One model may be changed by as many fragments. A unique value depends on those of other models.
    guard submitter.usesOperations, !fragments.isEmpty,
      fragments.count <= FragmentValidator.mostChanges, !content.hasUnique,
      !content.hasUnknownModels
    else { return nil }
    for at in fragments.indices where !setsPlainValues(fragments, at) { return nil }
    let draft = Draft(
      errors: [:], additions: [:], unknownModels: [],
      replies: FragmentValidator.replies(acceptingAll: fragments.count))
    draft.isPlain = true
    draft.effective = fragments
    draft.positions = fragments.count == 1 ? Self.onlyFirst : Array(fragments.indices)
    draft.accepted = draft.positions
    return draft
  }

  private static let onlyFirst = [0]

  /// Returns true if a fragment sets plain values that can be applied, and that are told in the same words.
  @inline(__always)
  private func setsPlainValues(_ fragments: [SyncFragment], _ at: Int) -> Bool {
    // The fragments are read where they stand: each copy is retained field by field.
    guard fragments[at].kind == .change, fragments[at].operations.isEmpty,
      fragments[at].bases.isEmpty, let model = content.sharedModel(fragments[at].uuid)
    else { return false }
    let schema = model.classSchema
    guard fragments[at].className.hasBytes(of: schema.wireName), schema.ruled == nil else {
      return false
    }
    let members = fragments[at].properties.members
    let values = members.span
    for place in values.indices {
      guard let property = schema[wireName: values[place].key], property.kind == .plain,
        property.isSynced, values[place].key.hasBytes(of: property.wireName),
        !values[place].value.hasObject, property.accepts(values[place].value)
      else { return false }
    }
    return true
  }

  /// Returns true if the scope has exactly the values of a plain submission that was applied, and nothing else came of it:
  /// it can be broadcast as it is.
  func stands(_ plain: [SyncFragment]) -> Bool {
    guard passage.arrived.isEmpty, passage.returned.isEmpty else { return false }
    let isListenedTo = content.isListenedTo
    let fragments = plain.span
    for at in fragments.indices {
      guard let model = content.sharedModel(fragments[at].uuid) else { return false }
      let schema = model.classSchema
      let members = fragments[at].properties.members.span
      for place in members.indices {
        guard let property = schema[wireName: members[place].key] else { return false }
        let current = model.currentJSON(of: property)
        // Listeners of the app are told the kind of number that the property has.
        guard current.isWritten(as: members[place].value),
          !isListenedTo || current == members[place].value
        else { return false }
      }
    }
    return true
  }
}
