import Foundation
import Jetstream

/// A large change set, which is judged in slices between which others have their turn.
///
/// The slices find reasons to reject fragments. If they leave nothing, that is the decision. So it is if nothing has changed the
/// scope meanwhile: then further slices make ready what is to be applied. Once something has changed the scope, the rest is
/// judged and applied in one piece, as the scope is by then: so nothing is accepted that was only permitted before.
final class LargeSet: UndecidedSet {
  /// The JSON text of the fragments, if it was made.
  let text: FragmentsText?
  /// The size of the fragments.
  let bytes: Int
  /// True once it is decided or was taken out.
  private(set) var isOver = false
  /// Nil once nothing is to be judged any more.
  private var judgement: Judgement?
  /// The models that fragments write, from the first time that a model has come into the scope meanwhile.
  private lazy var written = Set(sync.fragments.map(\.uuid))
  /// True if one of them has come into the scope since the last slice: it may be of another class than the slices took it
  /// for.
  private var isOutdated = false
  /// The number of times that the judgement has begun again for that.
  private var restarts = 0
  /// The preparation of ``draft``, once all is judged.
  private var preparation: ScopeOrder.Preparation?
  /// The accepted draft, while it is made ready.
  private var draft: ScopeOrder.Draft?
  /// The state of the scope when the judgement began; nil if what the slices accept has to be judged again in any case.
  private var basis: ScopeOrder.Basis?

  init(
    _ sync: ScopeSync, as text: FragmentsText?, checksum: UInt32,
    _ submitter: ScopeOrder.Submitter, _ subscription: Subscription
  ) {
    self.text = text
    bytes = text?.bytes.count ?? sync.fragments.roughSize
    judgement = Judgement(
      of: sync.fragments, isAtomic: sync.atomic == true, by: submitter, in: subscription.host.order)
    // A client that does not rebase may have missed more by the time of the decision.
    basis = submitter.rebases ? subscription.host.order.basis : nil
    super.init(sync, checksum: checksum, submitter, subscription)
  }

  override func drop(comesAgain: Bool = true) {
    isOver = true
    (judgement, preparation, draft) = (nil, nil, nil)
  }

  /// Notes that a model has come into the scope.
  func noteArrival(of uuid: UUID) {
    if !isOver, written.contains(uuid) { isOutdated = true }
  }

  /// The number of times that a judgement begins again. Then it is done in one piece: it would not end while others take out
  /// its models and put them back.
  private static let mostRestarts = 3

  /// The result of the slices.
  enum Findings {
    /// Every fragment is rejected.
    case rejected(ScopeOrder.Draft)
    /// Some may be accepted; what the judgement has found holds.
    case open(Judgement)
    /// Some are accepted: the scope is as it was when they were judged.
    case accepted(ScopeOrder.Draft, objections: [Int: WireError], ScopeOrder.Preparation?)

    var isRejection: Bool { if case .rejected = self { true } else { false } }
  }

  /// Judges, or makes ready, the next slice. Returns nil unless it was the last one.
  func advance(_ amount: Int) -> Findings? {
    guard !isOver, let host, var judgement = self.judgement.take() else { return nil }
    if let preparation {
      if preparation.isCurrent(for: host.order) {
        return advance(preparation, amount, judgement, in: host.order)
      }
      // The preparation is of no use.
      (self.preparation, draft) = (nil, nil)
      if !isOutdated { return .open(judgement) }
    }
    if isOutdated {
      isOutdated = false
      restarts += 1
      judgement.restart()
      if basis != nil { basis = host.order.basis }
      if restarts > Self.mostRestarts { return .open(judgement) }
    }
    var budget = WorkBudget(amount)
    // Rules of the app are asked, which may have the change set taken out.
    let found = judgement.advance(&budget, by: submitter, in: host.order)
    if isOver { return nil }
    guard let draft = found else {
      self.judgement = judgement
      return nil
    }
    if draft.isRejected || draft.accepted.isEmpty {
      let rejected = ScopeOrder.Draft(
        errors: draft.errors, additions: draft.additions, unknownModels: draft.unknownModels,
        replies: draft.replies)
      (rejected.isRejected, rejected.problems) = (draft.isRejected, draft.problems)
      return .rejected(rejected)
    }
    let isCurrent = basis != nil && basis == host.order.basis
    if isCurrent {
      preparation = host.order.preparation(of: draft, sync.fragments, as: text, by: submitter)
      if preparation == nil { return .accepted(draft, objections: judgement.objections, nil) }
    }
    // From here on, it is of use only if the scope changes.
    judgement.restart()
    if !isCurrent { return .open(judgement) }
    (self.judgement, self.draft) = (judgement, draft)
    return nil
  }

  private func advance(
    _ preparation: ScopeOrder.Preparation, _ amount: Int, _ judgement: Judgement,
    in order: ScopeOrder
  ) -> Findings? {
    var budget = WorkBudget(amount)
    guard preparation.advance(&budget, in: order), let draft else {
      self.judgement = judgement
      return nil
    }
    (self.preparation, self.draft) = (nil, nil)
    return .accepted(draft, objections: judgement.objections, preparation)
  }
}
