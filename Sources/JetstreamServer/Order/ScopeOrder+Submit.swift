import Foundation
import Jetstream

/// Submissions of sessions.
extension ScopeOrder {
  /// Submits what a session has sent: a change set or, if it names a procedure, initial content.
  ///
  /// - Parameters:
  ///   - text: the JSON text of the fragments, if it was made already.
  ///   - judged: the draft of the change set, if it was judged already.
  func submit(
    _ sync: ScopeSync, as text: FragmentsText? = nil, by submitter: Submitter,
    judged: consuming Draft? = nil
  ) -> Result {
    sync.procedure == nil
      ? submit(
        sync.fragments, as: text, isAtomic: sync.atomic == true, by: submitter, judged: judged)
      : submitInitial(sync.fragments, by: submitter, judged: judged)
  }

  /// Checks a submission, applies what is accepted, and returns the replies and the messages for other sessions. Seal
  /// the scope's own changes before making `submitter`.
  func submit(
    _ fragments: [SyncFragment], as text: FragmentsText? = nil, isAtomic: Bool,
    by submitter: Submitter, judged: consuming Draft? = nil
  ) -> Result {
    let draft = judged.take() ?? judgedDraft(of: fragments, isAtomic: isAtomic, by: submitter)
    let effective = draft.effective
    if draft.isRejected { return rejectAll(draft, fragments, submitter) }
    var effort = draft.effort
    var growth: Growth?
    if let room = submitter.room {
      let own = self.growth(by: effective)
      guard hasRoom(for: own, in: room, &effort) else {
        return reject(draft, fragments, exceeding: room.limit, effort, submitter)
      }
      growth = own
    }
    let result = Result(replies: draft.replies, problems: draft.problems)
    result.effort = effort
    let accepted =
      draft.accepted.count == fragments.count ? fragments : draft.accepted.map { fragments[$0] }
    if !draft.isPlain {
      for fragment in accepted where fragment.kind == .add && has(fragment.uuid, draft) {
        tombstones.noteAddedAgain(fragment.uuid)
      }
    }
    if unknown == .keep { noteRejected(draft) { draft.errors[$0] != nil } }
    guard !effective.isEmpty else {
      if submitter.usesOperations {
        result.effective = accepted.isEmpty ? nil : []
      } else {
        let submission = Submission(
          fragments: fragments, effective: [], errors: draft.errors, before: draft.before)
        correct(result, submission, submitter)
      }
      return result
    }

    if hasSizeLimit, let growth { note(growth) }
    let inverse = keepsInverses ? ChangeInverse(of: effective, in: content) : nil
    begin()
    for (position, error) in content.apply(effective, known: { [self] in departed($0) }) {
      result.replies[draft.positions[position]] = FragmentReply(
        error: WireError(message: "\(error)"))
    }
    let undo = inverse?.fragments(restoring: passage.lost.filter(content.isGone))
    let kept = unknown == .keep ? content.unknownModelUUIDs() : []
    if unknown == .keep { passage.noteUnknown(kept, before: draft.unknownModels) }
    let left = hasSizeLimit ? departures(from: draft.unknownModels, keeping: kept) : [:]
    passage.close()
    result.effort += passage.modelCount
    for (name, old) in draft.before {
      guard let new = collection(name), new != old else { continue }
      // A client that does not rebase may have replaced its own change with another session's value that it was sent:
      // it only certainly knows of its change if there was no such value.
      let isSure = submitter.rebases || !submitter.mayHaveMissed(name)
      tombstones.note(
        name, from: FragmentValidator.uuids(in: old), to: FragmentValidator.uuids(in: new),
        sequence: sequence, origin: isSure ? submitter.session : nil)
    }
    if needsValues {
      for fragment in effective { note(fragment.operations, of: fragment.uuid, origin: nil) }
    }
    let standsAsItIs = draft.isPlain && stands(effective)
    let done = standsAsItIs ? effective : broadcast(of: effective)
    if hasSizeLimit { noteArrivals(done, unknown: draft.unknownModels, left) }
    result.set = undo.map {
      ChangeSet(
        fragments: done, undo: $0, author: submitter.origin.author,
        message: submitter.origin.message, date: submitter.origin.date)
    }
    let isUnchanged = standsAsItIs || (submitter.usesOperations && isSame(done, accepted))
    let item = StreamItem(
      sequence: sequence, author: submitter.author, origin: submitter.origin, fragments: done,
      text: standsAsItIs || (text != nil && isUnchanged && hasSameText(done, fragments))
        ? text : nil,
      whole: needsValues ? broadcast(of: effective, asValues: true) : nil,
      newcomers: takeNewcomers(among: done),
      replies: result.replies.areAllPlain ? [] : result.replies)
    append(item)
    result.item = item
    if submitter.usesOperations {
      if !isUnchanged { result.effective = done }
    } else {
      let submission = Submission(
        fragments: fragments, effective: effective, errors: draft.errors, before: draft.before)
      correct(result, submission, submitter)
    }
    return result
  }

  /// Returns whether the scope has a model, with or without an object.
  private func has(_ uuid: UUID, _ draft: Draft) -> Bool {
    content.sharedModel(uuid) != nil || draft.unknownModels.contains(uuid)
  }

  /// Returns whether the applied fragments equal the submitted ones to the letter. A value that is equal only as the
  /// property's type reads it, such as a rounded number, is sent back to its writer: replicas are equal byte for byte.
  private func isSame(_ done: [SyncFragment], _ submitted: [SyncFragment]) -> Bool {
    guard done.count == submitted.count else { return false }
    // The fragments are read where they stand: each copy is retained field by field.
    return done.indices.allSatisfy { at in
      guard done[at].uuid == submitted[at].uuid, done[at].kind == submitted[at].kind,
        done[at].operations == submitted[at].operations,
        done[at].properties.count == submitted[at].properties.count
      else { return false }
      let values = submitted[at].properties
      return done[at].properties.members.allSatisfy { member in
        values[member.key]?.isWritten(as: member.value) ?? false
      }
    }
  }

  /// Returns whether the applied fragments, which equal those of the submitted ones that were accepted, are all of them
  /// and have the same text.
  private func hasSameText(_ done: [SyncFragment], _ submitted: [SyncFragment]) -> Bool {
    guard done.count == submitted.count else { return false }
    return done.indices.allSatisfy { at in
      submitted[at].bases.isEmpty
        && done[at].className.utf8.elementsEqual(submitted[at].className.utf8)
        && zip(done[at].properties.members, submitted[at].properties.members).allSatisfy {
          $0.key.utf8.elementsEqual($1.key.utf8) && !$0.value.hasObject
        }
    }
  }

  /// Rejects an atomic change set of which a part cannot be applied: nothing is applied, and it gets no sequence.
  private func rejectAll(
    _ draft: Draft, _ fragments: [SyncFragment], _ submitter: Submitter
  ) -> Result {
    if unknown == .keep { noteRejected(draft) { _ in true } }
    let result = Result(replies: Self.rejectingAll(draft.replies), problems: draft.problems)
    result.effort = draft.effort
    correct(result, rejecting: fragments, submitter)
    return result
  }

  /// Rejects a change set for which there is no room.
  private func reject(
    _ draft: Draft, _ fragments: [SyncFragment], exceeding limit: ServerLimit, _ effort: Int,
    _ submitter: Submitter
  ) -> Result {
    draft.effort = effort
    draft.replies = fragments.map { _ in FragmentReply(error: limit.error) }
    let result = rejectAll(draft, fragments, submitter)
    result.exceeded = limit
    return result
  }

  /// The number of bytes above which the reason for a rejection is cut in the replies to other fragments.
  private static let longestReason = 400

  /// Returns the replies to an atomic change set of which a part is rejected.
  static func rejectingAll(_ replies: [FragmentReply]) -> [FragmentReply] {
    let first = replies.firstIndex { $0.error != nil && $0.causedBy == nil }
    var reason = first.flatMap { replies[$0].error?.message } ?? "another fragment"
    if reason.utf8.count > longestReason {
      // It may be made of what the client has sent, and is repeated for each fragment.
      reason = String(String.UnicodeScalarView(reason.unicodeScalars.prefix(longestReason / 4)))
    }
    return replies.map { reply in
      guard reply.error == nil else { return reply }
      return FragmentReply(
        error: .rejected("Rejected with its atomic set: \(reason)"), causedBy: first)
    }
  }

  /// Corrects the client of a change set of which nothing was applied.
  func correct(_ result: Result, rejecting fragments: [SyncFragment], _ submitter: Submitter) {
    let errors = result.replies.enumerated().compactMap { at, reply in
      reply.error.map { (at, $0) }
    }
    let submission = Submission(
      fragments: fragments, effective: [], errors: Dictionary(uniqueKeysWithValues: errors),
      before: [:])
    correct(result, submission, submitter)
  }

  /// Notes, for each added model that the scope does not have, whether its addition was rejected.
  private func noteRejected(_ draft: Draft, isRejected: (Int) -> Bool) {
    for (uuid, at) in draft.additions
    where !draft.unknownModels.contains(uuid) && content.unknownModel(uuid) == nil {
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
}

extension JSONValue {
  /// True if the value has members in some order.
  var hasObject: Bool {
    switch self {
    case .object: true
    case .array(let elements): elements.contains(where: \.hasObject)
    default: false
    }
  }
}
