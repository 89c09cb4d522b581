import Foundation
import Jetstream

/// Submissions of sessions.
extension ScopeOrder {
  /// Submits what a session has sent: a change set or, if it names a procedure, initial content.
  ///
  /// - Parameters:
  ///   - text: the JSON text of the fragments, if it was made already.
  ///   - judged: the draft of the change set, if it was judged already.
  ///   - prepared: what was made ready for that draft; of no use if the scope has changed since.
  func submit(
    _ sync: ScopeSync, as text: FragmentsText? = nil, by submitter: Submitter,
    judged: consuming Draft? = nil, prepared: Preparation? = nil
  ) -> Result {
    sync.procedure == nil
      ? submit(
        sync.fragments, as: text, isAtomic: sync.atomic == true, by: submitter, judged: judged,
        prepared: prepared)
      : submitInitial(sync.fragments, by: submitter, judged: judged)
  }

  /// Checks a submission, applies what is accepted, and returns the replies and the messages for other sessions. Seal
  /// the scope's own changes before making `submitter`.
  func submit(
    _ fragments: [SyncFragment], as text: FragmentsText? = nil, isAtomic: Bool,
    by submitter: Submitter, judged: consuming Draft? = nil, prepared: Preparation? = nil
  ) -> Result {
    let ready = prepared.flatMap { $0.isReady(for: self) ? $0 : nil }
    let draft = judged.take() ?? judgedDraft(of: fragments, isAtomic: isAtomic, by: submitter)
    let effective = draft.effective
    if draft.isRejected { return rejectAll(draft, fragments, submitter) }
    var effort = draft.effort
    var growth: Growth?
    if let room = submitter.room {
      let own = ready?.growth ?? self.growth(by: effective)
      guard hasRoom(for: own, in: room, &effort) else {
        return reject(draft, fragments, exceeding: room.limit, effort, submitter)
      }
      growth = own
    }
    let result = Result(replies: draft.replies, problems: draft.problems)
    result.effort = effort
    let accepted =
      draft.accepted.count == fragments.count ? fragments : draft.accepted.map { fragments[$0] }
    if let ready {
      for uuid in ready.addedAgain { tombstones.noteAddedAgain(uuid) }
    } else if !draft.isPlain {
      for fragment in accepted where addsAgain(fragment, draft) {
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
    let inverse =
      keepsInverses ? ready?.inverse ?? ChangeInverse(of: effective, in: content) : nil
    begin()
    for (position, error) in apply(effective, ready) {
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
    let told = ready.flatMap { toldFragments(of: effective, $0) }
    let done = standsAsItIs ? effective : told?.fragments ?? broadcast(of: effective)
    if hasSizeLimit { noteArrivals(done, unknown: draft.unknownModels, left) }
    result.set = undo.map {
      ChangeSet(
        fragments: done, undo: $0, author: submitter.origin.author,
        message: submitter.origin.message, date: submitter.origin.date)
    }
    let isUnchanged =
      standsAsItIs
      || (submitter.usesOperations && (told?.isUnchanged ?? done.areSame(as: accepted)))
    let hasText =
      standsAsItIs
      || (text != nil && isUnchanged && (told?.hasSameText ?? done.haveSameText(as: fragments)))
    let item = StreamItem(
      sequence: sequence, author: submitter.author, origin: submitter.origin, fragments: done,
      text: hasText ? text : told?.text,
      whole: needsValues ? broadcast(of: effective, asValues: true) : nil,
      newcomers: takeNewcomers(among: done),
      replies: result.replies.areAllPlain ? [] : result.replies)
    append(item, onlyAdds: told != nil)
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

  /// Applies the fragments of a draft. Returns what could not be applied, by the index of the fragment.
  private func apply(
    _ effective: [SyncFragment], _ ready: Preparation?
  ) -> [(fragment: Int, error: ScopeError)] {
    ready?.apply() ?? content.apply(effective, known: { [self] in departed($0) })
  }

  /// Returns true if a fragment adds a model that the scope has, with or without an object.
  func addsAgain(_ fragment: SyncFragment, _ draft: Draft) -> Bool {
    fragment.kind == .add
      && (content.sharedModel(fragment.uuid) != nil
        || draft.unknownModels.contains(fragment.uuid))
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
