import Foundation
import Jetstream

/// Judging submissions by the rules of the app, before anything is changed.
extension ScopeHost {
  /// The number of times that a change set is judged. Without the fragments that were rejected it makes other differences,
  /// which are judged again: a model may be deleted now because the fragment that was to hold it is gone.
  private static let mostRounds = 5

  /// Checks and merges a submission, and rejects the fragments to which the app's rules object.
  func judgedDraft(
    of submitted: [SyncFragment], isAtomic: Bool, by submitter: Submitter
  ) -> Draft {
    guard let book = policy.rules else {
      return draft(of: submitted, isAtomic: isAtomic, by: submitter)
    }
    // Looks at it where it stands: a session is large, and a copy of it is retained field by field.
    if case .none = submitter.info {
      preconditionFailure("A submission in a scope with rules names its session.")
    }
    var (fragments, objections, problems) = (submitted, [Int: WireError](), [String]())
    var cause: Int?
    if !book.rules.reviews.isEmpty, let session = submitter.info {
      var proposed = ProposedChangeSet(submitted, isAtomic: isAtomic, of: session)
      problems = review(&proposed, book)
      (fragments, objections, cause) = (proposed.fragments, proposed.objections, proposed.cause)
    }
    func attempt() -> Draft {
      var result = draft(
        of: fragments, objections: objections, isAtomic: isAtomic, by: submitter)
      result.problems = problems
      // A cause has no cause of its own: what refers to a fragment that falls with the first one falls with it, too.
      if let first = cause {
        for at in result.replies.indices where result.replies[at].error != nil {
          result.replies[at].causedBy = at == first ? nil : first
        }
      }
      return result
    }
    for _ in 0..<Self.mostRounds {
      // Consumed where it is returned: a draft is large, and a copy of it is retained field by field.
      let draft = attempt()
      if draft.isRejected || draft.effective.isEmpty { return consume draft }
      let found = self.objections(to: draft, by: submitter, book)
      if let problem = found.problem { problems.append(problem) }
      if found.errors.isEmpty { return consume draft }
      objections.merge(found.errors) { first, _ in first }
    }
    for at in submitted.indices where objections[at] == nil {
      objections[at] = .rejected("Too much of the change set was rejected")
    }
    return attempt()
  }

  /// Lets the app look at the whole change set. Returns the reasons for which it could not, for the operator.
  private func review(_ proposed: inout ProposedChangeSet, _ book: RuleBook) -> [String] {
    for review in book.rules.reviews {
      do {
        try review(&proposed)
      } catch let error as WireError {
        proposed.reject(with: error)
      } catch {
        proposed.reject(with: .notJudged)
        return ["a review has thrown \(error)"]
      }
    }
    return []
  }

  /// Returns the errors of the fragments whose differences the rules deny, by their positions in the submission.
  private func objections(
    to draft: Draft, by submitter: Submitter, _ book: RuleBook
  ) -> (errors: [Int: WireError], problem: String?) {
    let scope = TentativeScope(of: draft.effective, in: content, memory: self)
    var differences = Differences(in: scope)
    var errors: [Int: WireError] = [:]
    // The closures below would take a copy of the whole draft along.
    let positions = draft.positions
    if !book.rules.allowsUnknownContent {
      let (own, held) = (scope.unknown, differences.unknown)
      for index in own.isEmpty ? held : own + held {
        errors[positions[index]] = .notPermitted(to: "write what the scope does not know")
      }
    }
    if differences.all.isEmpty { return (errors, scope.misreading) }
    // The denied additions first: what refers to one is rejected as its consequence, and not for a reason of its own.
    var question = ScopeRules.Question(by: submitter.info!, in: scope)
    var denied: Set<UUID> = []
    func areRejected(_ fragments: FragmentIndices) -> Bool {
      !errors.isEmpty && fragments.allSatisfy { errors[positions[$0]] != nil }
    }
    // An array of its own: the search goes on below, and each difference would be copied on its way into the judgement.
    let (all, firstCreation) = (differences.all, differences.firstCreation)
    func judge(_ difference: borrowing Difference) {
      if areRejected(difference.fragments) { return }
      guard let error = book.objection(to: difference, asking: &question) else { return }
      if case .created = difference.kind, difference.model.addition != nil {
        denied.insert(difference.model.uuid)
      }
      for index in difference.fragments {
        let at = positions[index]
        errors[at] = errors[at] ?? error
      }
    }
    for index in firstCreation..<all.count { judge(all[index]) }
    for index in 0..<differences.firstDeparture {
      if !denied.isEmpty, case .inserted(let child, _) = all[index].kind,
        denied.contains(child.uuid)
      {
        continue
      }
      judge(all[index])
    }
    // Without the fragments that are rejected by now, other models may leave: those are judged in the next round.
    guard errors.isEmpty else { return (errors, scope.misreading) }
    for index in differences.firstDeparture..<firstCreation { judge(all[index]) }
    // Once nothing of the change set is left, nothing can leave by it.
    while errors.count < positions.count,
      let departure = differences.nextDeparture(unless: areRejected)
    {
      judge(departure)
    }
    return (errors, scope.misreading)
  }
}
