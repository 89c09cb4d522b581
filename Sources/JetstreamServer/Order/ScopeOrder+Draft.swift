import Foundation
import Jetstream

/// Checking and merging of submissions, before anything is changed.
extension ScopeOrder {
  /// A submission that was checked, and merged with what its session has not seen. A class, like ``Result``, and accessed like
  /// one.
  final class Draft {
    /// The part of initial content that was judged; nil for other change sets.
    @exclusivity(unchecked) var initial: InitialContent?
    /// The errors of the fragments that are rejected, by their positions.
    let errors: [Int: WireError]
    /// The positions of the additions of models that the scope does not have, by UUID.
    let additions: [UUID: Int]
    /// The models of the scope whose classes are unknown.
    let unknownModels: Set<UUID>
    /// The replies to all fragments.
    @exclusivity(unchecked) var replies: [FragmentReply]
    /// The fragments that would be applied.
    @exclusivity(unchecked) var effective: [SyncFragment] = []
    /// Their positions in the submission.
    @exclusivity(unchecked) var positions: [Int] = []
    /// The positions of the accepted fragments, also of those of which lost moves leave nothing.
    @exclusivity(unchecked) var accepted: [Int] = []
    /// The current values of collections, and for a session without operations of all properties, that would be changed.
    @exclusivity(unchecked) var before: [PropertyKey: JSONValue] = [:]
    /// True for an atomic change set of which a part cannot be applied.
    @exclusivity(unchecked) var isRejected = false
    /// True if the submission only sets plain values, and all of them are applied.
    @exclusivity(unchecked) var isPlain = false
    /// The reasons for which rules could not decide, for the operator.
    @exclusivity(unchecked) var problems: [String] = []
    /// The effort of judging it; see ``Result/effort``.
    @exclusivity(unchecked) var effort = 0
    /// The models that are compared when it is applied, as far as ``effort`` does not have them.
    @exclusivity(unchecked) var comparisons = 0

    init(
      errors: [Int: WireError], additions: [UUID: Int], unknownModels: Set<UUID>,
      replies: [FragmentReply]
    ) {
      (self.errors, self.additions) = (errors, additions)
      (self.unknownModels, self.replies) = (unknownModels, replies)
    }
  }

  /// Begins the draft of a submission that was checked.
  func beginDraft(from check: FragmentValidator, isAtomic: Bool) -> Draft {
    let draft = Draft(
      errors: check.errors, additions: check.additions, unknownModels: check.unknownModels,
      replies: check.replies)
    draft.isRejected = isAtomic && !check.errors.isEmpty
    draft.effort = check.effort
    if !draft.isRejected { draft.effective.reserveCapacity(check.fragments.count) }
    return draft
  }

  /// Merges a part of the fragments.
  ///
  /// Whole collections are merged with the changes that the session has not seen; all other values are applied unchanged.
  func merge(
    _ part: Range<Int>, of check: FragmentValidator, into draft: Draft,
    by submitter: Submitter
  ) {
    let (fragments, errors) = (check.fragments, check.errors)
    for at in part where errors[at] == nil {
      guard let entry = check.accepted[at] else { continue }
      // The fragments are read where they stand: each copy is retained field by field.
      let (kind, uuid, bases) = (fragments[at].kind, fragments[at].uuid, fragments[at].bases)
      var applied = fragments[at]
      applied.properties = entry.properties
      if kind == .add { applied.bases = [:] }
      if submitter.usesOperations, kind == .add, let model = content.sharedModel(uuid) {
        nameKnownEntries(in: &applied, entry.schema, known: bases)
        draft.noteReading(entry.properties, of: model, known: bases)
        applied = addedAgain(applied, model, known: bases)
        draft.noteApplying(applied.operations, to: model, needsValues: needsValues)
      } else if submitter.usesOperations, kind == .add, let model = departed(uuid) {
        draft.noteReading(entry.properties, of: model, known: bases)
        for (key, value) in entry.properties {
          applied.properties[key] = putBack(value, key, of: model, known: bases)
        }
      } else if let model = content.sharedModel(uuid) {
        draft.noteApplying(entry.operations, to: model, needsValues: needsValues)
        for (key, value) in entry.properties {
          let name = PropertyKey(uuid: uuid, name: key)
          guard let property = entry.schema?[wireName: key] else {
            applied.properties[key] = unknownMerged(value, name, submitter, draft)
            continue
          }
          // Only collections have a history, and only sessions without operations are sent corrections.
          if property.isCollection || !submitter.usesOperations {
            draft.before[name] = draft.before[name] ?? model.currentJSON(of: property)
          }
          if property.isCollection {
            let current = draft.before[name]!
            if case .array(let elements) = current { draft.effort += elements.count }
            applied.properties[key] = merged(value, current, name, submitter)
          } else if let base = bases[key], property.mergeRule != nil {
            let current = model.currentJSON(of: property)
            draft.noteReading(current)
            applied.properties[key] = property.merged(value, onto: current, base: base)
          }
        }
      } else if let kept = check.keptModel(uuid) {
        for (key, value) in entry.properties {
          if kind == .add, let base = bases[key], value.isWritten(as: base) {
            // Put back without a change of it.
            applied.properties[key] = kept.properties[key] ?? value
            continue
          }
          let name = PropertyKey(uuid: uuid, name: key)
          applied.properties[key] = unknownMerged(value, name, submitter, draft)
        }
        if kind == .add {
          applied.properties = JSONObject(
            (Array(kept.properties) + Array(applied.properties)).map { ($0.key, $0.value) })
        }
      }
      if kind == .add, let model = departed(uuid) {
        nameEntries(
          of: model, in: &applied, known: submitter.usesOperations ? bases : [:], draft)
      }
      draft.effective.append(applied)
      draft.positions.append(at)
    }
  }

  /// Completes a draft into which all fragments were merged.
  func complete(
    _ draft: Draft, from check: FragmentValidator, isAtomic: Bool, by submitter: Submitter
  ) {
    draft.accepted = draft.positions
    if submitter.usesOperations {
      // A closure with the whole check would copy all of it.
      let rejected =
        draft.errors.isEmpty
        ? [] : draft.errors.keys.map { [fragments = check.fragments] in fragments[$0] }
      let lost = LostMoves(of: draft.effective, rejected: rejected, in: check)
      if isAtomic, !lost.isEmpty {
        let error = error(of: lost, in: draft.effective)
        draft.replies[draft.positions[error.at]].error = error.error
        draft.isRejected = true
        return
      }
      draft.positions = lost.drop(from: &draft.effective, draft.positions) {
        draft.replies[$0].lost = $1
      }
    } else if isAtomic {
      // The merge may leave out a model that the set adds.
      var merged = FragmentValidator(
        content: content, memory: self, unknown: unknown(of: submitter),
        unknownValueBytes: policy.unknownValueBytes, takesOperations: true,
        fragments: draft.effective)
      merged.finish()
      if merged.isClean { return }
      for (position, reply) in zip(draft.positions, merged.replies) {
        draft.replies[position].error = reply.error
        draft.replies[position].causedBy = reply.causedBy.map { draft.positions[$0] }
      }
      draft.isRejected = true
    }
  }

  /// Returns the changes that result from an addition of a model that the scope has. If the client has put the model
  /// back, these are the values that it has changed since it knew the model. Otherwise all values are set, and nothing
  /// is removed from collections.
  func addedAgain(
    _ fragment: SyncFragment, _ model: any HostedModel, known: JSONObject
  ) -> SyncFragment {
    var result = fragment
    result.kind = .change
    result.properties = JSONObject()
    for (key, value) in fragment.properties {
      guard let property = model.classSchema[wireName: key] else {
        let merged = putBack(value, key, of: model, known: known)
        if let current = model.unknownValue(key), merged.isWritten(as: current) { continue }
        result.properties.append(newKey: key, merged)
        continue
      }
      if known[key] != nil {
        let current = model.currentJSON(of: property)
        let merged = putBack(value, key, of: model, known: known)
        if !property.areSame(merged, current) { result.properties.append(newKey: key, merged) }
      } else if property.isCollection {
        result.operations[key] = FragmentValidator.uuids(in: value).map { .insert($0, .end) }
      } else {
        result.properties.append(newKey: key, value)
      }
    }
    return result
  }

  /// Returns the merged value of a property of a model that a client has put back; `known` are the values that the
  /// client started from. An unknown property has the client's value only if the client has changed it.
  private func putBack(
    _ value: JSONValue, _ key: String, of model: any HostedModel, known: JSONObject
  ) -> JSONValue {
    guard let base = known[key] else { return value }
    guard let property = model.classSchema[wireName: key] else {
      return value.isWritten(as: base) ? model.unknownValue(key) ?? value : value
    }
    return property.putBack(value, onto: model.currentJSON(of: property), base: base)
  }

  /// Names the entries of dictionaries that a client has removed from a model before it has put it back: those that it
  /// knew, and that its addition does not name.
  func nameKnownEntries(
    in addition: inout SyncFragment, _ schema: ClassSchema?, known: JSONObject
  ) {
    for (key, _) in known where addition.properties[key] == nil {
      if schema?[wireName: key]?.entryKey != nil { addition.properties[key] = .null }
    }
  }

  /// Names all entries of the dictionaries of a model that comes back, also those that its addition leaves out: applying
  /// an addition drops these.
  ///
  /// An entry that the client did not know stays. An addition that does not say what its client knew is that of a new
  /// model, which has no other entries.
  private func nameEntries(
    of model: any HostedModel, in addition: inout SyncFragment, known: JSONObject,
    _ draft: Draft
  ) {
    guard model.classSchema.hasDictionaries else { return }
    let current = model.currentProperties()
    draft.noteReading(.object(current))
    for (key, value) in current where addition.properties[key] == nil {
      guard model.classSchema[wireName: key]?.entryKey != nil else { continue }
      let isUnknown = !known.isEmpty && known[key] == nil
      addition.properties[key] =
        isUnknown ? value : putBack(.null, key, of: model, known: known)
    }
  }

  /// Returns the error for an atomic change set with lost moves, which names the first of these, and the position of
  /// its fragment.
  private func error(
    of lost: LostMoves, in effective: [SyncFragment]
  ) -> (at: Int, error: WireError) {
    for (at, fragment) in effective.enumerated() {
      guard let (key, uuid) = lost.first(in: fragment) else { continue }
      let error = WireError.rejected(
        "ModelObject '\(uuid.wireText)' cannot be moved at '\(key)': it is elsewhere, or nothing "
          + "would hold it (\(fragment.className) \(fragment.uuid.wireText))")
      return (at, error)
    }
    preconditionFailure("A lost move is one of some fragment.")
  }

  /// Returns whether a value can be a collection of models: an array of UUIDs, each at most once.
  static func isCollection(_ value: JSONValue) -> Bool {
    guard case .array(let elements) = value else { return false }
    let uuids = FragmentValidator.uuids(in: value)
    return uuids.count == elements.count && Set(uuids).count == uuids.count
  }

  /// Returns the value to which an unknown property is set. If the current and the submitted value both look like
  /// collections, they are merged.
  private func unknownMerged(
    _ value: JSONValue, _ name: PropertyKey, _ submitter: Submitter, _ draft: Draft
  ) -> JSONValue {
    guard let current = content.unknownValue(name) else { return value }
    draft.before[name] = draft.before[name] ?? current
    if case .array(let elements) = current { draft.effort += elements.count }
    guard Self.isCollection(current), Self.isCollection(value) else { return value }
    return merged(value, current, name, submitter)
  }

  private func merged(
    _ value: JSONValue, _ current: JSONValue, _ name: PropertyKey, _ submitter: Submitter
  ) -> JSONValue {
    guard let history = tombstones.elements[name] else { return value }
    let uuids = history.merge(
      current: FragmentValidator.uuids(in: current), submitted: FragmentValidator.uuids(in: value),
      session: submitter.session, proven: submitter.proven, received: submitter.received)
    return .array(uuids.map { .string($0.wireText) })
  }
}
