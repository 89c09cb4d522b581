import Foundation
import Jetstream

extension ScopeOrder {
  /// A judged change set of a scope of rows that is made ready, a part at a time, so that the step that applies it is short.
  ///
  /// Everything that follows from the change set and the scope before it is made here: the rows that it adds, away from the
  /// scope, what is to be told of them, its inverse, and the growth of the scope. The step links the rows, and completes what
  /// is told. Nothing of the scope changes until then. When the scope has changed meanwhile, what was made is of no use; see
  /// ``isReady(for:)``.
  final class Preparation {
    /// The walks over the fragments, in their order.
    private enum Step { case rows, names, telling, arrivals, growth, inverse, text, none }

    private let basis: Basis
    private let draft: Draft
    private let content: RowsContent
    private var rows: RowPreparation
    private var isApplied = false
    /// The fragments that are to be told; nil once they were taken.
    private var told: ToldFragments?
    /// The models that fragments change, beside additions.
    private var changed = UUIDList()
    /// The models that the change set adds although the scope has them.
    private(set) var addedAgain: [UUID] = []
    private var comparison: GrowthComparison?
    /// The inverse before anything is applied; nil if it was of no use.
    private(set) var inverse: ChangeInverse?
    private var step = Step.rows
    /// The index of the fragment at which the walk goes on.
    private var position = 0
    /// True once the rows were applied, if they are all that has come or gone.
    private var onlyAdds = false

    fileprivate init(
      of draft: Draft, _ submitted: [SyncFragment], as text: FragmentsText?, in order: ScopeOrder,
      _ content: RowsContent, _ basis: Basis
    ) {
      (self.draft, self.content, self.basis) = (draft, content, basis)
      rows = content.prepare(draft.effective, known: { order.departed($0) })
      told = ToldFragments(of: draft, submitted, as: text)
      comparison = order.hasSizeLimit ? order.growthComparison : nil
      inverse = order.keepsInverses ? ChangeInverse(in: content) : nil
    }

    /// The number of fragments of which is found out in the step what is to be told; for tests.
    var openCount: Int { told?.open.count ?? 0 }

    /// True if all is ready, and the scope is as it was when it was made.
    func isReady(for order: ScopeOrder) -> Bool {
      step == .none && !isApplied && isCurrent(for: order)
    }

    /// True as long as the scope is as it was when the preparation began.
    func isCurrent(for order: ScopeOrder) -> Bool { order.basis == basis }

    /// The growth of a scope with a limit on its size; nil if there is none.
    var growth: Growth? { comparison?.growth }

    /// Goes on in the order with which it has begun. Returns true once all is ready.
    func advance(_ budget: inout WorkBudget, in order: ScopeOrder) -> Bool {
      while step != .none {
        guard walk(&budget, in: order) else { return false }
        position = 0
        step = next
      }
      return true
    }

    /// Walks on. Returns true at the end of the walk.
    private func walk(_ budget: inout WorkBudget, in order: ScopeOrder) -> Bool {
      let effective = draft.effective
      if step == .rows {
        return rows.advance { budget.take(from: $0, of: effective) }
      }
      let part = budget.take(from: position, of: effective)
      position = part.upperBound
      let fragments = effective.span
      switch step {
      case .names: for at in part { note(fragments[at], at, in: order) }
      case .telling: for at in part { tell(fragments[at], in: order) }
      case .arrivals:
        for at in part where fragments[at].kind == .add { comparison!.expect(fragments[at]) }
      case .growth: for at in part { comparison!.add(fragments[at]) }
      case .inverse: for at in part { inverse!.expect(fragments[at]) }
      case .text: told!.write(part)
      case .rows, .none: break
      }
      guard position == effective.count else { return false }
      if step == .inverse { inverse!.take() }
      return true
    }

    /// The walk behind this one.
    private var next: Step {
      switch step {
      case .rows: return .names
      case .names: return .telling
      case .telling where comparison != nil: return .arrivals
      case .arrivals: return .growth
      case .telling where inverse != nil, .growth where inverse != nil: return .inverse
      case .telling where told!.needsText, .growth where told!.needsText,
        .inverse where told!.needsText:
        return .text
      case .telling, .growth, .inverse, .text, .none: return .none
      }
    }

    private func note(_ fragment: SyncFragment, _ at: Int, in order: ScopeOrder) {
      if fragment.kind == .change { changed.insert(fragment.uuid) }
      let submitted = told!.submitted(at)
      if order.addsAgain(submitted, draft) { addedAgain.append(submitted.uuid) }
    }

    private func tell(_ fragment: SyncFragment, in order: ScopeOrder) {
      let row = rows.createdRow(fragment.uuid)
      guard let model = row ?? content.document[fragment.uuid] else {
        return told!.appendOpen(fragment, className: fragment.className)
      }
      // Fragments behind the addition change the model in the step.
      guard row != nil, fragment.kind == .add, fragment.operations.isEmpty,
        !changed.contains(fragment.uuid)
      else { return told!.appendOpen(fragment, className: model.wireClassName) }
      told!.append(
        SyncFragment(
          .add, uuid: fragment.uuid, className: model.wireClassName,
          properties: order.currentValues(of: fragment, in: model)))
    }

    /// Applies the change set. Returns what could not be applied, by the index of the fragment.
    func apply() -> [(fragment: Int, error: ScopeError)] {
      precondition(!isApplied, "A change set is applied once.")
      isApplied = true
      let (errors, onlyAdds) = content.apply(&rows)
      self.onlyAdds = onlyAdds
      return errors
    }

    /// Removes and returns what is to be told of the change set that was applied; nil if more has come of it than its additions,
    /// so that it has to be found out what is there now.
    func takeTold() -> ToldFragments? { onlyAdds ? told.take() : nil }
  }

  /// Begins to make a judged change set ready; nil if that is done in the step that applies it: code of the app may have changed
  /// the scope by then, or it has content that the server does not know.
  ///
  /// - Parameters:
  ///   - submitted: the fragments that were judged.
  ///   - text: their JSON text, if it was made.
  func preparation(
    of draft: Draft, _ submitted: [SyncFragment], as text: FragmentsText?, by submitter: Submitter
  ) -> Preparation? {
    guard submitter.usesOperations, unknown == .reject, !draft.isRejected, !draft.isPlain,
      !draft.effective.isEmpty, let basis, let content = content as? RowsContent
    else { return nil }
    return Preparation(of: draft, submitted, as: text, in: self, content, basis)
  }

  /// Completes what is to be told of a change set that was made ready, and applied; nil if that has to be found out anew.
  func toldFragments(of effective: [SyncFragment], _ preparation: Preparation) -> ToldFragments? {
    guard var told = preparation.takeTold() else { return nil }
    var values = ToldValues(of: effective, broughtBack: [])
    let allAreThere = !ToldValues.insertAndRemove(told.open.lazy.map { effective[$0] })
    for at in told.open {
      guard let model = content.sharedModel(effective[at].uuid),
        let fragment = toldFragment(
          at, of: effective, model, after: &values, allAreThere: allAreThere)
      else { return nil }
      told.set(fragment, at)
    }
    return told
  }
}
