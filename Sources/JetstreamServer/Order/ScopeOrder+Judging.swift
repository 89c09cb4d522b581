import Foundation
import Jetstream

/// Judging submissions in one piece, before anything is changed.
extension ScopeOrder {
  /// Judges what a session has sent: a change set or, if it names a procedure, initial content.
  func judgedDraft(of sync: ScopeSync, by submitter: Submitter) -> Draft {
    guard sync.procedure != nil, let part = part(ofInitial: sync.fragments) else {
      let isAtomic = sync.procedure == nil && sync.atomic == true
      return judgedDraft(of: sync.fragments, isAtomic: isAtomic, by: submitter)
    }
    let draft = judgedDraft(of: part.fragments, isAtomic: false, by: submitter)
    draft.initial = part
    return draft
  }

  /// Checks and merges a submission, and rejects the fragments to which the app's rules object.
  ///
  /// - Parameter objections: the errors of fragments that are rejected in any case.
  func judgedDraft(
    of fragments: [SyncFragment], isAtomic: Bool, by submitter: Submitter,
    objections: [Int: WireError] = [:]
  ) -> Draft {
    if let book = policy.rules, !book.rules.reviews.isEmpty {
      let judgement = Judgement(
        of: fragments, isAtomic: isAtomic, by: submitter, in: self, objections: objections)
      return rest(of: judgement, by: submitter)
    }
    var draft = draft(of: fragments, isAtomic: isAtomic, by: submitter, objections: objections)
    // Mostly rules object to nothing: then there was no need of a judgement that could be left and continued.
    let denied = judge(draft, by: submitter)
    if !denied.isEmpty {
      let judgement = Judgement(
        of: fragments, isAtomic: isAtomic, by: submitter, in: self, objections: objections,
        after: (denied, draft.problems))
      let effort = draft.effort
      draft = rest(of: judgement, by: submitter)
      draft.effort += effort
    }
    return draft
  }

  /// Asks the rules about a draft. Returns the errors of the fragments to which they object, by their positions.
  private func judge(_ draft: Draft, by submitter: Submitter) -> [Int: WireError] {
    guard let book = policy.rules, !draft.isRejected, !draft.effective.isEmpty else { return [:] }
    var search = ObjectionSearch(in: draft, by: submitter, book, order: self)
    var budget = WorkBudget.unlimited
    _ = search.advance(&budget)
    draft.effort += budget.effort
    if let problem = search.problem { draft.problems.append(problem) }
    return search.errors
  }

  /// The state of a scope that change sets alone change. As long as two are equal, each judgement finds the same again.
  struct Basis: Equatable {
    private let sequence: Int
    private let memory: Int

    fileprivate init(_ order: ScopeOrder) {
      (sequence, memory) = (order.sequence, order.tombstones.revision)
    }
  }

  /// The state of the scope; nil if code of the app changes its models.
  var basis: Basis? { content.changesBySetsAlone ? Basis(self) : nil }

  /// Brings a judgement to its end.
  func rest(of judgement: consuming Judgement, by submitter: Submitter) -> Draft {
    var budget = WorkBudget.unlimited
    while true {
      if let draft = judgement.advance(&budget, by: submitter, in: self) {
        draft.effort += budget.effort
        return draft
      }
    }
  }

  /// Checks and merges a submission without a look at the app's rules.
  private func draft(
    of fragments: [SyncFragment], isAtomic: Bool, by submitter: Submitter,
    objections: [Int: WireError]
  ) -> Draft {
    if objections.isEmpty, let draft = plainDraft(of: fragments, by: submitter) { return draft }
    return validatedDraft(
      of: fragments, isAtomic: isAtomic, by: submitter, objections: objections)
  }

  /// Returns the draft of any submission. For one that only sets plain values, it is that of ``plainDraft(of:by:)``.
  func validatedDraft(
    of fragments: [SyncFragment], isAtomic: Bool, by submitter: Submitter,
    objections: [Int: WireError] = [:]
  ) -> Draft {
    var check = FragmentValidator(
      content: content, memory: self, unknown: unknown(of: submitter),
      unknownValueBytes: policy.unknownValueBytes, takesOperations: submitter.usesOperations,
      fragments: fragments, objections: objections)
    check.finish()
    let draft = beginDraft(from: check, isAtomic: isAtomic)
    if draft.isRejected { return draft }
    merge(fragments.indices, of: check, into: draft, by: submitter)
    complete(draft, from: check, isAtomic: isAtomic, by: submitter)
    return draft
  }
}
