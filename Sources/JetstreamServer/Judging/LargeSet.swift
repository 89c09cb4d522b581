import Jetstream

/// A large change set, which is judged in slices between which others have their turn.
///
/// What the slices find are reasons to reject fragments. If they leave nothing, that is the decision. Otherwise, what is left
/// is judged in one piece, as the scope is by then: so nothing is accepted that was only permitted before.
final class LargeSet: UndecidedSet {
  unowned let host: ScopeHost
  /// The JSON text of the fragments, if it was made.
  let text: FragmentsText?
  /// The size of the fragments.
  let bytes: Int
  /// True once it is decided or was taken out.
  private(set) var isOver = false
  /// Nil once nothing is to be judged any more.
  private var judgement: Judgement?

  init(
    _ sync: ScopeSync, as text: FragmentsText?, checksum: UInt32,
    _ submitter: ScopeHost.Submitter, _ subscription: Subscription
  ) {
    (host, self.text) = (subscription.host, text)
    bytes = text?.bytes.count ?? sync.fragments.reduce(0) { $0 + $1.roughSize }
    judgement = Judgement(
      of: sync.fragments, isAtomic: sync.atomic == true, by: submitter, in: subscription.host)
    super.init(sync, checksum: checksum, submitter, subscription)
  }

  override func drop() {
    isOver = true
    judgement = nil
  }

  /// The result of the slices.
  enum Findings {
    /// Every fragment is rejected.
    case rejected(ScopeHost.Draft)
    /// Some may be accepted; what the judgement has found holds.
    case open(Judgement)
  }

  /// Judges the next slice. Returns nil unless it was the last one.
  func advance(_ amount: Int) -> Findings? {
    // Rules of the app are asked meanwhile, which may have the change set taken out.
    guard !isOver, var judgement = self.judgement.take() else { return nil }
    var budget = WorkBudget(amount)
    guard let draft = judgement.advance(&budget, by: submitter, in: host) else {
      if !isOver { self.judgement = judgement }
      return nil
    }
    if draft.isRejected || draft.accepted.isEmpty {
      var rejected = ScopeHost.Draft(
        errors: draft.errors, additions: draft.additions, unknownModels: draft.unknownModels,
        replies: draft.replies)
      (rejected.isRejected, rejected.problems) = (draft.isRejected, draft.problems)
      return .rejected(rejected)
    }
    judgement.restart()
    return .open(judgement)
  }
}
