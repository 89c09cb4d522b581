import Foundation
import Jetstream

/// A second order of a scope, of rows in place of the app's models, that gets all that the first one gets. It notes where
/// the two decide, tell or keep different things.
///
/// For simulations: the models and the rows have to be worth the same to clients.
final class OrderTwin {
  private let content: RowsContent
  private let order: ScopeOrder
  /// The differences that were noted, a line for each.
  private(set) var problems: [String] = []
  private var comparisons = 0

  /// Makes the twin of an order that was just made or restored.
  init(of first: ScopeOrder, _ schema: Schema) {
    content = RowsContent(name: first.content.name, Document(schema: schema, root: UUID()))
    let policy = ScopeOrder.Policy(rules: first.policy.rules.map { RuleBook($0.rules) })
    self.order = ScopeOrder(
      content: content, epoch: first.epoch, policy: policy, streamLimit: first.stream.limit)
    let state = first.content.sharedState()
    do {
      for (at, error) in try content.restore(state) {
        problems.append("rows refuse \(state[at].json): \(error)")
      }
    } catch {
      problems.append("rows cannot be restored: \(error)")
    }
    self.order.begin(at: first.sequence, of: first.epoch)
    self.order.written = first.written
  }

  /// Takes over what the app has changed in models that have left, and models that it has added and removed again: no
  /// change set tells of that, and only the models know it when they come back. Call it before the first order is given a
  /// change set.
  func prepare(_ first: ScopeOrder) {
    for (uuid, model) in first.departedModels {
      if let row = order.departed(uuid) as? Row {
        content.document.setValues(of: row, to: model.currentProperties())
      } else if content.document[uuid] == nil,
        let row = content.document.makeRow(
          SyncFragment(
            .add, uuid: uuid, className: model.wireClassName,
            properties: model.currentProperties()))
      {
        order.tombstones.note(
          row, leftAt: first.tombstones.models[uuid]?.sequence ?? order.sequence)
      }
    }
  }

  /// Submits what the first order was given, and compares the results.
  ///
  /// - Parameter judged: the draft of a change set that was judged in slices, and what those have found: it depends on the
  ///   times of the slices, and is taken over.
  func submit(
    _ sync: ScopeSync, by submitter: ScopeOrder.Submitter, _ first: ScopeOrder,
    _ result: ScopeOrder.Result,
    _ judged: (draft: ScopeOrder.Draft, objections: [Int: WireError])? = nil
  ) {
    order.needsValues = first.needsValues
    // An order with a store notes inverses: this one, too, if the first does for whatever reason. Its records go nowhere.
    order.records.store = first.keepsInverses ? { _ in } : nil
    let before = result.set == nil ? nil : content.document.fullState()
    let draft = judged.map { judged in
      judged.draft.accepted.isEmpty
        ? judged.draft
        : order.judgedDraft(
          of: sync.fragments, isAtomic: sync.atomic == true, by: submitter,
          objections: judged.objections)
    }
    let plain = draft == nil ? plainDraft(of: sync, submitter) : nil
    let (own, prepared) = submit(sync, by: submitter, draft)
    if prepared, let item = own.item, let text = item.text {
      compare("its text", "\(FragmentsText(item.fragments).bytes)", "\(text.bytes)")
    }
    // Rules of the app may have rejected a part of it.
    if let plain, let item = own.item, own.replies.allSatisfy({ $0.error == nil }) {
      let told = order.broadcast(of: plain.effective)
      compare("told as it is", text(item.fragments), text(told))
    }
    compare("replies", "\(result.replies)", "\(own.replies)")
    compare("applied", text(result.item?.fragments), text(own.item?.fragments))
    compare("applied as values", text(result.item?.whole), text(own.item?.whole))
    compare(
      "new models", "\(result.item?.newcomers.sorted() ?? [])",
      "\(own.item?.newcomers.sorted() ?? [])")
    compare("corrected", text(result.correction), text(own.correction))
    compare("effective", text(result.effective), text(own.effective))
    compare(
      "inverse", text(withoutHeldBack(result.set?.undo, first)),
      text(withoutHeldBack(own.set?.undo, first)))
    compareStates(first)
    if let before, let set = own.set { undo(set.undo, to: before) }
  }

  /// Submits a change set. Every other one is made ready first, in small parts: that makes no difference.
  ///
  /// - Returns: the result, and true if it was made ready.
  private func submit(
    _ sync: ScopeSync, by submitter: ScopeOrder.Submitter, _ judged: ScopeOrder.Draft?
  ) -> (ScopeOrder.Result, prepared: Bool) {
    guard comparisons % 2 == 0, sync.procedure == nil else {
      return (order.submit(sync, by: submitter, judged: judged), false)
    }
    let draft =
      judged
      ?? order.judgedDraft(of: sync.fragments, isAtomic: sync.atomic == true, by: submitter)
    let prepared = order.preparation(of: draft, sync.fragments, as: nil, by: submitter)
    if let prepared {
      var budget = WorkBudget(2)
      while !prepared.advance(&budget, in: order) { budget = WorkBudget(2) }
    }
    let result = order.submit(sync, by: submitter, judged: draft, prepared: prepared)
    return (result, prepared != nil)
  }

  /// Returns the draft of a submission that only sets plain values, after comparing it with that of a validation; nil for
  /// any other one.
  private func plainDraft(
    of sync: ScopeSync, _ submitter: ScopeOrder.Submitter
  ) -> ScopeOrder.Draft? {
    guard sync.procedure == nil,
      let plain = order.plainDraft(of: sync.fragments, by: submitter)
    else { return nil }
    let draft = order.validatedDraft(
      of: sync.fragments, isAtomic: sync.atomic == true, by: submitter)
    compare("plain values", text(draft.effective), text(plain.effective))
    compare("their replies", "\(draft.replies)", "\(plain.replies)")
    compare(
      "their places", "\(draft.positions), \(draft.accepted)",
      "\(plain.positions), \(plain.accepted)")
    return plain
  }

  /// Applies the inverse of the last submission to another document, and compares what that has with the state before.
  private func undo(_ inverse: [SyncFragment], to before: [SyncFragment]) {
    let document = Document(schema: content.document.schema, root: UUID())
    do {
      _ = try document.restore(content.document.fullState())
    } catch {
      return problems.append("rows cannot be restored: \(error)")
    }
    for (at, error) in document.apply(inverse).errors {
      problems.append("an inverse does not fit: \(error), of \(inverse[at].json)")
    }
    compare("undone", before.canonicalJSON, document.canonicalJSON)
  }

  /// Takes a change set of the app.
  func localChange(_ sealed: SealedChanges, of first: ScopeOrder) {
    order.needsValues = first.needsValues
    for (at, error) in content.applyOwn(
      sealed.set.fragments, known: { [order] in order.departed($0) })
    {
      problems.append("rows refuse \(sealed.set.fragments[at].json): \(error)")
    }
    order.localChange(sealed)
  }

  func forget(upTo horizon: Int) { order.forget(upTo: horizon) }

  func forgetRejected() { order.forgetRejected() }

  /// Compares what the two keep. There are no changes that are not sealed.
  func compareStates(_ first: ScopeOrder) {
    compare("the sequence", "\(first.sequence)", "\(order.sequence)")
    comparisons += 1
    // Both digests cost as much as what has changed, the rest as much as everything that there is.
    let isThorough = comparisons % 16 == 0
    if isThorough || first.content.digest(budget: .max) != content.digest(budget: .max) {
      compare(
        "the state", first.content.sharedState().canonicalJSON, content.document.canonicalJSON)
    }
    if isThorough { problems += order.checkInvariants() }
  }

  /// Leaves throttled properties out of the additions of models that have left: what the app has written to them and has
  /// not told yet comes back with the model, and only the model knows it.
  private func withoutHeldBack(_ inverse: [SyncFragment]?, _ first: ScopeOrder) -> [SyncFragment]? {
    inverse?.map { fragment in
      guard fragment.kind == .add, let model = first.departed(fragment.uuid) as? ModelObject else {
        return fragment
      }
      var result = fragment
      for property in model.schema.throttledProperties {
        result.properties[property.wireName] = nil
      }
      return result
    }
  }

  private func text(_ fragments: [SyncFragment]?) -> String {
    fragments.map { $0.map { "\($0.json)" }.joined(separator: ",") } ?? "nothing"
  }

  private func compare(_ subject: String, _ models: String, _ rows: String) {
    if models == rows { return }
    problems.append("\(subject): models have \(models); rows have \(rows)")
  }
}
