import Foundation
import Jetstream

/// Submissions of sessions.
extension ScopeHost {
  /// Submits what a session has sent: a change set or, if it names a procedure, initial content.
  ///
  /// - Parameter text: the JSON text of the fragments, if it was made already.
  func submit(_ sync: ScopeSync, as text: FragmentsText? = nil, by submitter: Submitter) -> Result {
    sync.procedure == nil
      ? submit(sync.fragments, as: text, isAtomic: sync.atomic == true, by: submitter)
      : submitInitial(sync.fragments, by: submitter)
  }

  /// Checks a submission, applies what is accepted, and returns the replies and the messages for other sessions. Seal
  /// the scope's own changes before making `submitter`.
  func submit(
    _ fragments: [SyncFragment], as text: FragmentsText? = nil, isAtomic: Bool,
    by submitter: Submitter
  ) -> Result {
    let check = FragmentValidator(
      content: content, memory: self, unknown: unknown, takesOperations: submitter.usesOperations,
      fragments: fragments)
    var result = Result(replies: check.replies)
    let errors = check.errors
    if isAtomic, !errors.isEmpty { return rejectAll(check, result.replies, submitter) }

    // Whole collections are merged with the changes that the session has not seen; all other values are applied
    // unchanged.
    var effective: [SyncFragment] = []
    var positions: [Int] = []
    var before: [PropertyKey: JSONValue] = [:]
    effective.reserveCapacity(fragments.count)
    for (at, fragment) in fragments.enumerated() where errors[at] == nil {
      guard let entry = check.accepted[at] else { continue }
      if fragment.kind == .add, has(fragment.uuid, check) {
        tombstones.noteAddedAgain(fragment.uuid)
      }
      var applied = fragment
      applied.properties = entry.properties
      applied.bases = fragment.kind == .add ? [:] : fragment.bases
      if submitter.usesOperations, fragment.kind == .add,
        let model = content.sharedModel(fragment.uuid)
      {
        nameKnownEntries(in: &applied, entry.schema, known: fragment.bases)
        applied = addedAgain(applied, model, known: fragment.bases)
      } else if submitter.usesOperations, fragment.kind == .add,
        let model = departed(fragment.uuid)
      {
        for (key, value) in entry.properties {
          applied.properties[key] = putBack(value, key, of: model, known: fragment.bases)
        }
      } else if let model = content.sharedModel(fragment.uuid) {
        for (key, value) in entry.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          guard let property = entry.schema?[wireName: key] else {
            applied.properties[key] = unknownMerged(value, name, submitter, &before)
            continue
          }
          // Only collections have a history, and only sessions without operations are sent corrections.
          if property.isCollection || !submitter.usesOperations {
            before[name] = before[name] ?? model.currentJSON(of: property)
          }
          if property.isCollection {
            applied.properties[key] = merged(
              value, model.currentJSON(of: property), name, submitter)
          } else if let base = fragment.bases[key] {
            applied.properties[key] = property.merged(
              value, onto: model.currentJSON(of: property), base: base)
          }
        }
      } else if let kept = check.keptModel(fragment.uuid) {
        for (key, value) in entry.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          applied.properties[key] = unknownMerged(value, name, submitter, &before)
        }
        if fragment.kind == .add {
          applied.properties = JSONObject(
            (Array(kept.properties) + Array(applied.properties)).map { ($0.key, $0.value) })
        }
      }
      if fragment.kind == .add, let model = departed(fragment.uuid) {
        nameEntries(of: model, in: &applied, known: submitter.usesOperations ? fragment.bases : [:])
      }
      effective.append(applied)
      positions.append(at)
    }
    let accepted =
      positions.count == fragments.count ? fragments : positions.map { fragments[$0] }
    if submitter.usesOperations {
      let lost = lostMoves(effective, rejected: errors.keys.map { fragments[$0] })
      if isAtomic, !lost.isEmpty {
        let error = error(of: lost, in: effective)
        result.replies[positions[error.at]].error = error.error
        return rejectAll(check, result.replies, submitter)
      }
      positions = drop(lost, from: &effective, positions) { result.replies[$0].lost.append($1) }
    } else if isAtomic {
      // The merge may leave out a model that the set adds.
      let merged = FragmentValidator(
        content: content, memory: self, unknown: unknown, takesOperations: true,
        fragments: effective)
      if !merged.isClean {
        for (position, reply) in zip(positions, merged.replies) {
          result.replies[position].error = reply.error
          result.replies[position].causedBy = reply.causedBy.map { positions[$0] }
        }
        return rejectAll(check, result.replies, submitter)
      }
    }
    if unknown == .keep { noteRejected(check) { errors[$0] != nil } }
    guard !effective.isEmpty else {
      if submitter.usesOperations {
        result.effective = accepted.isEmpty ? nil : []
      } else {
        let submission = Submission(
          fragments: fragments, effective: [], errors: errors, before: before)
        correct(&result, submission, submitter)
      }
      return result
    }

    let inverse = keepsInverses ? ChangeInverse(of: effective, in: content) : nil
    begin()
    for (position, error) in content.apply(effective, known: { [self] in departed($0) }) {
      result.replies[positions[position]] = FragmentReply(error: WireError(message: "\(error)"))
    }
    let undo = inverse?.fragments(restoring: passage.lost.filter(content.isGone))
    if unknown == .keep {
      passage.noteUnknown(content.unknownModelUUIDs(), before: check.unknownModels)
    }
    passage.close()
    for (name, old) in before {
      guard let new = collection(name), new != old else { continue }
      // A client that does not rebase may have replaced its own change with another session's value that it was sent:
      // it only certainly knows of its change if there was no such value.
      let isSure = submitter.rebases || !submitter.mayHaveMissed(name)
      tombstones.note(
        name, from: FragmentValidator.uuids(in: old), to: FragmentValidator.uuids(in: new),
        sequence: sequence, origin: isSure ? submitter.session : nil)
    }
    for fragment in effective { note(fragment.operations, of: fragment.uuid, origin: nil) }
    let done = broadcast(of: effective)
    result.set = undo.map {
      ChangeSet(
        fragments: done, undo: $0, author: submitter.origin.author,
        message: submitter.origin.message, date: submitter.origin.date)
    }
    let isUnchanged = submitter.usesOperations && isSame(done, accepted)
    let item = StreamItem(
      sequence: sequence, author: submitter.author, origin: submitter.origin, fragments: done,
      text: isUnchanged && hasSameText(done, fragments) ? text : nil,
      whole: audience.needsValues ? broadcast(of: effective, asValues: true) : nil,
      newcomers: tombstones.takeNewcomers(among: done),
      replies: result.replies.allSatisfy(\.isPlain) ? [] : result.replies)
    append(item)
    result.item = item
    if submitter.usesOperations {
      if !isUnchanged { result.effective = done }
    } else {
      let submission = Submission(
        fragments: fragments, effective: effective, errors: errors, before: before)
      correct(&result, submission, submitter)
    }
    return result
  }

  /// Returns whether the scope has a model, with or without an object.
  private func has(_ uuid: UUID, _ check: FragmentValidator) -> Bool {
    content.sharedModel(uuid) != nil || check.unknownModels.contains(uuid)
  }

  /// Returns whether the applied fragments equal the submitted ones to the letter. A value that is equal only as the
  /// property's type reads it, such as a rounded number, is sent back to its writer: replicas are equal byte for byte.
  private func isSame(_ done: [SyncFragment], _ submitted: [SyncFragment]) -> Bool {
    guard done.count == submitted.count else { return false }
    return zip(done, submitted).allSatisfy { done, submitted in
      guard done.uuid == submitted.uuid, done.kind == submitted.kind,
        done.operations == submitted.operations,
        done.properties.count == submitted.properties.count
      else { return false }
      return done.properties.members.allSatisfy { member in
        submitted.properties[member.key]?.isWritten(as: member.value) ?? false
      }
    }
  }

  /// Returns whether the applied fragments, which equal those of the submitted ones that were accepted, are all of them
  /// and have the same text.
  private func hasSameText(_ done: [SyncFragment], _ submitted: [SyncFragment]) -> Bool {
    guard done.count == submitted.count else { return false }
    return zip(done, submitted).allSatisfy { done, submitted in
      submitted.bases.isEmpty && done.className.utf8.elementsEqual(submitted.className.utf8)
        && zip(done.properties.members, submitted.properties.members).allSatisfy {
          $0.key.utf8.elementsEqual($1.key.utf8) && !$0.value.hasObject
        }
    }
  }

  /// Returns the changes that result from an addition of a model that the scope has. If the client has put the model
  /// back, these are the values that it has changed since it knew the model. Otherwise all values are set, and nothing
  /// is removed from collections.
  private func addedAgain(
    _ fragment: SyncFragment, _ model: any HostedModel, known: JSONObject
  ) -> SyncFragment {
    var result = fragment
    result.kind = .change
    for (key, value) in fragment.properties {
      guard let property = model.classSchema[wireName: key] else { continue }
      if known[key] != nil {
        let current = model.currentJSON(of: property)
        let merged = putBack(value, key, of: model, known: known)
        result.properties[key] = property.areSame(merged, current) ? nil : merged
      } else if property.isCollection {
        result.properties[key] = nil
        result.operations[key] = FragmentValidator.uuids(in: value).map { .insert($0, .end) }
      }
    }
    return result
  }

  /// Returns the merged value of a property of a model that a client has put back; `known` are the values that the
  /// client started from.
  private func putBack(
    _ value: JSONValue, _ key: String, of model: any HostedModel, known: JSONObject
  ) -> JSONValue {
    guard let property = model.classSchema[wireName: key], let base = known[key] else {
      return value
    }
    return property.putBack(value, onto: model.currentJSON(of: property), base: base)
  }

  /// Names the entries of dictionaries that a client has removed from a model before it has put it back: those that it
  /// knew, and that its addition does not name.
  private func nameKnownEntries(
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
    of model: any HostedModel, in addition: inout SyncFragment, known: JSONObject
  ) {
    guard model.classSchema.hasDictionaries else { return }
    for (key, value) in model.currentProperties() where addition.properties[key] == nil {
      guard model.classSchema[wireName: key]?.entryKey != nil else { continue }
      let isUnknown = !known.isEmpty && known[key] == nil
      addition.properties[key] =
        isUnknown ? value : putBack(.null, key, of: model, known: known)
    }
  }

  /// Rejects an atomic change set of which a part cannot be applied: nothing is applied, and it gets no sequence.
  ///
  /// - Parameter replies: the reply to each fragment; at least one is an error.
  private func rejectAll(
    _ check: FragmentValidator, _ replies: [FragmentReply], _ submitter: Submitter
  ) -> Result {
    if unknown == .keep { noteRejected(check) { _ in true } }
    let first = replies.firstIndex { $0.error != nil && $0.causedBy == nil }
    let reason = first.flatMap { replies[$0].error?.message } ?? "another fragment"
    var result = Result(
      replies: replies.map { reply in
        guard reply.error == nil else { return reply }
        return FragmentReply(
          error: .rejected("Rejected with its atomic set: \(reason)"), causedBy: first)
      })
    let errors = result.replies.enumerated().compactMap { at, reply in
      reply.error.map { (at, $0) }
    }
    correct(
      &result,
      Submission(
        fragments: check.fragments, effective: [],
        errors: Dictionary(uniqueKeysWithValues: errors), before: [:]), submitter)
    return result
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

  /// Notes, for each added model that the scope does not have, whether its addition was rejected.
  private func noteRejected(_ check: FragmentValidator, isRejected: (Int) -> Bool) {
    for (uuid, at) in check.additions where !check.unknownModels.contains(uuid) {
      tombstones.note(addition: uuid, isRejected: isRejected(at), upTo: sequence + 1)
    }
  }

  /// Returns the value of a collection, or of an unknown property whose value looks like one; nil for other properties.
  private func collection(_ name: PropertyKey) -> JSONValue? {
    guard let model = content.model(name.uuid),
      let property = model.classSchema[wireName: name.name]
    else { return content.unknownValue(name).flatMap { Self.isCollection($0) ? $0 : nil } }
    return property.isCollection ? model.currentJSON(of: property) : nil
  }

  /// Returns whether a value can be a collection of models: an array of UUIDs, each at most once.
  private static func isCollection(_ value: JSONValue) -> Bool {
    guard case .array(let elements) = value else { return false }
    let uuids = FragmentValidator.uuids(in: value)
    return uuids.count == elements.count && Set(uuids).count == uuids.count
  }

  /// Returns the value to which an unknown property is set. If the current and the submitted value both look like
  /// collections, they are merged.
  private func unknownMerged(
    _ value: JSONValue, _ name: PropertyKey, _ submitter: Submitter,
    _ before: inout [PropertyKey: JSONValue]
  ) -> JSONValue {
    guard let current = content.unknownValue(name) else { return value }
    before[name] = before[name] ?? current
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

extension JSONValue {
  /// True if the value has members in some order.
  fileprivate var hasObject: Bool {
    switch self {
    case .object: true
    case .array(let elements): elements.contains(where: \.hasObject)
    default: false
    }
  }
}
