import Foundation
import Jetstream

/// The search for the fragments of a draft whose differences the rules of the app deny.
struct ObjectionSearch {
  /// The errors of these fragments, by their positions in the submission.
  private(set) var errors: [Int: WireError] = [:]
  /// The first reason for which a rule could not decide, for the operator; nil if all could.
  private(set) var problem: String?
  private let book: RuleBook
  /// Nil as long as the scope is being read, and if each write is a difference of its own.
  private var differences: Differences?
  private var question: ScopeRules.Question
  /// The positions of the draft's fragments in the submission.
  private let positions: [Int]
  /// The models whose additions are denied.
  private var denied: Set<UUID> = []
  private var walk = Walk.creations
  /// The index of the difference at which the walk goes on; of the model, in a walk over values.
  private var position = 0
  private var areFound = false

  /// The walks over the differences, in their order. The denied additions come first: what refers to one is rejected as its
  /// consequence, and not for a reason of its own.
  ///
  /// Mostly a change set only gives values to models that stay: then there is one walk over these.
  private enum Walk { case values, creations, changes, departures, departuresBelow, none }

  /// Makes a search that has not begun; see ``advance(_:)``.
  init(
    in draft: ScopeOrder.Draft, by submitter: ScopeOrder.Submitter, _ book: RuleBook,
    order: ScopeOrder
  ) {
    // Looks at it where it stands: a session is large, and a copy of it is retained field by field.
    if case .none = submitter.info {
      preconditionFailure("A submission in a scope with rules names its session.")
    }
    self.book = book
    question = ScopeRules.Question(
      by: submitter.info!,
      in: TentativeScope(of: draft.effective, in: order.content, memory: order))
    positions = draft.positions
  }

  private var scope: TentativeScope { question.scope }

  /// Finds the differences that the draft would make. Returns true once all were found.
  private mutating func find(_ budget: inout WorkBudget) -> Bool {
    if differences == nil {
      let scope = scope
      guard scope.read(&budget) else { return false }
      if scope.writesOnlyValues {
        (walk, areFound) = (.values, true)
        return true
      }
      differences = Differences(in: scope)
    }
    guard differences!.find(&budget) else { return false }
    areFound = true
    position = differences!.firstCreation
    if !book.rules.allowsUnknownContent {
      let (own, held) = (question.scope.unknown, differences!.unknown)
      for index in own.isEmpty ? held : own + held {
        errors[positions[index]] = .notPermitted(to: "write what the scope does not know")
      }
    }
    if differences!.all.isEmpty { walk = .none }
    return true
  }

  private mutating func judgeValues(_ budget: inout WorkBudget) -> Bool {
    let scope = scope
    while position < scope.writtenCount {
      if budget.isSpent { return false }
      let model = scope.written(at: position)
      _ = budget.take(from: 0, to: model.writeCount)
      for place in 0..<model.writeCount where model.changesValue(at: place) {
        judge(valueAt: place, of: model)
      }
      position += 1
    }
    walk = .none
    return true
  }

  /// Goes on with the search. Returns true once it has come to its end.
  mutating func advance(_ budget: inout WorkBudget) -> Bool {
    guard areFound || find(&budget) else { return false }
    if walk == .values { return judgeValues(&budget) }
    if walk == .none { return true }
    // An array of its own: the search goes on below, and each difference would be copied on its way into the judgement.
    let all = differences!.all
    while walk != .none {
      let part = budget.take(from: position, to: end)
      switch walk {
      case .creations, .departures: for index in part { judge(all[index]) }
      case .changes:
        for index in part where !isConsequence(all[index]) { judge(all[index]) }
      case .departuresBelow: return judgeDepartures(&budget)
      case .values, .none: break
      }
      position = part.upperBound
      guard position == end else { return false }
      endWalk()
    }
    return true
  }

  private var end: Int {
    switch walk {
    case .creations: differences!.all.count
    case .changes: differences!.firstDeparture
    case .departures: differences!.firstCreation
    case .departuresBelow, .values, .none: position
    }
  }

  private mutating func endWalk() {
    switch walk {
    case .creations: (walk, position) = (.changes, 0)
    // Without the fragments that are rejected by now, other models may leave: those are judged in the next round.
    case .changes: walk = errors.isEmpty ? .departures : .none
    case .departures: walk = .departuresBelow
    case .departuresBelow, .values, .none: walk = .none
    }
  }

  private func isConsequence(_ difference: borrowing Difference) -> Bool {
    guard !denied.isEmpty, case .inserted(let child, _) = difference.kind else { return false }
    return denied.contains(child.uuid)
  }

  private mutating func judgeDepartures(_ budget: inout WorkBudget) -> Bool {
    // Once nothing of the change set is left, nothing can leave by it.
    while errors.count < positions.count {
      if budget.isSpent { return false }
      budget.take(1)
      let departure = differences!.nextDeparture { [errors, positions] in
        Self.areRejected($0, errors, positions)
      }
      guard let departure else { break }
      judge(departure)
    }
    walk = .none
    return true
  }

  private static func areRejected(
    _ fragments: FragmentIndices, _ errors: [Int: WireError], _ positions: [Int]
  ) -> Bool {
    !errors.isEmpty && fragments.allSatisfy { errors[positions[$0]] != nil }
  }

  private mutating func judge(_ difference: borrowing Difference) {
    if Self.areRejected(difference.fragments, errors, positions) { return }
    guard let error = book.objection(to: difference, asking: &question) else { return }
    if case .created = difference.kind, difference.model.addition != nil {
      denied.insert(difference.model.uuid)
    }
    reject(difference.fragments, error)
  }

  private mutating func judge(valueAt place: Int, of model: TentativeModel) {
    let fragments = model.fragments(at: place)
    if Self.areRejected(fragments, errors, positions) { return }
    let index = model.propertyIndex(at: place)
    if let error = book.objection(toUpdateOf: index, in: model, asking: &question) {
      reject(fragments, error)
    }
  }

  private mutating func reject(_ fragments: FragmentIndices, _ error: WireError) {
    if let reason = scope.misreading {
      // It is about this difference alone: the rules for the others may decide.
      problem = problem ?? reason
      scope.misreading = nil
    }
    for index in fragments {
      let at = positions[index]
      errors[at] = errors[at] ?? error
    }
  }
}
