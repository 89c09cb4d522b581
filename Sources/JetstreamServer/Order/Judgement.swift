import Foundation
import Jetstream

/// The judging of one submission, before anything is changed: checks and merges it, and rejects the fragments to which the
/// app's rules object.
///
/// It can be done in slices, between which others may change the scope. Then it has only found reasons to reject fragments,
/// each as it was at some time since the submission has come; what it has let through is to be judged again.
struct Judgement {
  /// The number of times that a change set is judged. Without the fragments that were rejected it makes other differences,
  /// which are judged again: a model may be deleted now because the fragment that was to hold it is gone.
  private static let mostRounds = 5

  private let isAtomic: Bool
  /// The fragments, as reviews of the app have changed them.
  private var fragments: [SyncFragment]
  /// The errors of fragments to which reviews and rules object, by their positions.
  private(set) var objections: [Int: WireError]
  /// True if the reviews of the app have seen the fragments.
  private var isReviewed = false
  private var problems: [String] = []
  /// The position of the fragment because of which a review rejects all.
  private var cause: Int?
  private var rounds = 0
  private var validator: FragmentValidator?
  /// The draft of this round, until it is judged.
  private var found: ScopeOrder.Draft?
  /// The number of fragments that were merged into it.
  private var mergedCount = 0
  /// True once all were, until it is judged.
  private var isMerged = false
  private var search: ObjectionSearch?

  /// Begins to judge a submission, with the reviews of the app.
  ///
  /// - Parameters:
  ///   - objections: the errors of fragments that are rejected in any case.
  ///   - first: the errors and problems that the first round has found, if it is over. Then there are no reviews.
  init(
    of submitted: [SyncFragment], isAtomic: Bool, by submitter: ScopeOrder.Submitter,
    in order: ScopeOrder, objections: [Int: WireError] = [:],
    after first: (errors: [Int: WireError], problems: [String])? = nil
  ) {
    self.isAtomic = isAtomic
    (fragments, self.objections) = (submitted, objections)
    if let first {
      problems = first.problems
      endRound(first.errors)
      return
    }
    guard let book = order.policy.rules else { return }
    guard !book.rules.reviews.isEmpty else { return }
    guard let session = submitter.info else {
      preconditionFailure("A submission in a scope with rules names its session.")
    }
    isReviewed = true
    var proposed = ProposedChangeSet(
      order.namingClasses(in: submitted, by: submitter), isAtomic: isAtomic, of: session)
    problems = Self.review(&proposed, book)
    fragments = proposed.fragments
    cause = proposed.cause
    self.objections.merge(proposed.objections) { first, _ in first }
  }

  /// Goes on, in the order and for the submitter with which it has begun. Returns the draft once all is judged.
  mutating func advance(
    _ budget: inout WorkBudget, by submitter: ScopeOrder.Submitter, in order: ScopeOrder
  ) -> ScopeOrder.Draft? {
    while true {
      if search == nil {
        guard check(&budget, by: submitter, in: order) else { return nil }
        guard let book = order.policy.rules, rounds < Self.mostRounds, !found!.isRejected,
          !found!.effective.isEmpty
        else { return take() }
        if budget.isSpent { return nil }
        search = ObjectionSearch(in: found!, by: submitter, book, order: order)
      }
      // Taken out and put back: it is large, and a copy of it is retained field by field.
      var search = self.search.take()!
      guard search.advance(&budget) else {
        self.search = search
        return nil
      }
      if let problem = search.problem { problems.append(problem) }
      found!.problems = problems
      endRound(search.errors)
      let draft = take()
      if search.errors.isEmpty { return draft }
      guard rounds == Self.mostRounds else { continue }
      for at in fragments.indices where objections[at] == nil {
        objections[at] = .rejected("Too much of the change set was rejected")
      }
    }
  }

  private mutating func endRound(_ errors: [Int: WireError]) {
    objections.merge(errors) { first, _ in first }
    rounds += 1
  }

  /// Begins again, with what was found so far.
  mutating func restart() {
    (validator, search, rounds) = (nil, nil, 0)
    _ = take()
  }

  private mutating func take() -> ScopeOrder.Draft? {
    isMerged = false
    return found.take()
  }

  /// Checks and merges the fragments that are not objected to so far. Returns true once that is done.
  private mutating func check(
    _ budget: inout WorkBudget, by submitter: ScopeOrder.Submitter, in order: ScopeOrder
  ) -> Bool {
    if isMerged { return true }
    if validator == nil, isReviewed { objectToOtherClasses(in: order) }
    var validator =
      self.validator.take()
      ?? FragmentValidator(
        content: order.content, memory: order, unknown: order.unknown(of: submitter),
        unknownValueBytes: order.policy.unknownValueBytes,
        takesOperations: submitter.usesOperations, fragments: fragments, objections: objections)
    if found == nil {
      let isUnlimited = budget.isUnlimited
      if isUnlimited { validator.finish() }
      guard isUnlimited || validator.advance(&budget), !budget.isSpent else {
        self.validator = validator
        return false
      }
      found = order.beginDraft(from: validator, isAtomic: isAtomic)
      found!.problems = problems
      mergedCount = 0
    }
    if !found!.isRejected {
      let part = budget.take(from: mergedCount, of: fragments)
      order.merge(part, of: validator, into: found!, by: submitter)
      mergedCount = part.upperBound
      guard mergedCount == fragments.count, !budget.isSpent else {
        self.validator = validator
        return false
      }
      order.complete(found!, from: validator, isAtomic: isAtomic, by: submitter)
    }
    isMerged = true
    // A cause has no cause of its own: what refers to a fragment that falls with the first one falls with it, too.
    if let first = cause {
      for at in fragments.indices where found!.replies[at].error != nil {
        found!.replies[at].causedBy = at == first ? nil : first
      }
    }
    return true
  }

  /// Rejects changes of models that have come into the scope since the reviews, and are of another class than the
  /// reviews were told.
  private mutating func objectToOtherClasses(in order: ScopeOrder) {
    for at in fragments.indices where fragments[at].kind == .change && objections[at] == nil {
      guard let name = order.className(of: fragments[at].uuid), name != fragments[at].className
      else { continue }
      objections[at] = .rejected("The model has come into the scope as a \(name)")
    }
  }

  /// Lets the app look at the whole change set. Returns the reasons for which it could not, for the operator.
  private static func review(_ proposed: inout ProposedChangeSet, _ book: RuleBook) -> [String] {
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
}
