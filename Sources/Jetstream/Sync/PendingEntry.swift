/// A change set that is not confirmed, with what a replica keeps of it until then. A client that is away may keep many.
struct PendingEntry {
  let number: Int
  /// The change set as all clients of the scope share it.
  let shared: PendingChangeSet
  /// The change set of this replica, if another client shares it and it is not the same.
  private var own: PendingChangeSet?
  private var carrier = 0
  /// The index up to which the replica had applied the server's messages when the change set was sent.
  var seen = 0
  /// The position up to which the server's order was applied when the change set was made.
  var basis: ScopePosition?
  /// True if the server has not decided the change set, whatever it has decided under its number: the change set was made
  /// in this process and is not sent yet, or the server has refused the number and that is held.
  var isUnknownToServer = false
  /// The number of records that must be durable before the change set may be sent.
  var record = 0
  /// The time at which the change set was made, or restored.
  var madeAt: Duration
  private var known: Known?

  /// The server's decision. Boxed, since most pending change sets have none.
  private indirect enum Known { case decision(ScopeStanding.Decision) }

  init(
    number: Int, _ shared: PendingChangeSet, basis: ScopePosition?, record: Int = 0,
    madeAt: Duration
  ) {
    self.number = number
    self.shared = shared
    self.basis = basis
    self.record = record
    self.madeAt = madeAt
  }

  var set: ChangeSet {
    get { own?.changeSet ?? shared.changeSet }
    set {
      if shared.claims > 1 || own != nil {
        own = PendingChangeSet(newValue)
      } else {
        shared.changeSet = newValue
      }
    }
  }

  /// The index of the message that carried the change set in this session; nil while it waits to be sent.
  var messageIndex: Int? {
    get { carrier == 0 ? nil : carrier }
    set { carrier = newValue ?? 0 }
  }

  /// The server's decision, while the replica has not reached the change set's sequence.
  var decision: ScopeStanding.Decision? {
    get { if case .decision(let decision)? = known { decision } else { nil } }
    set { known = newValue.map(Known.decision) }
  }

  /// True once the server has decided the change set.
  var isDecided: Bool { known != nil }

  /// The replies to apply when the replica reaches the change set's sequence. If the server has forgotten its
  /// decision, it sends none; then the arrival of the change set shows that it was accepted.
  var repliesAtPlace: [FragmentReply] {
    guard let decision, !decision.fragmentReplies.isEmpty else {
      return replies()
    }
    return decision.fragmentReplies
  }

  /// Returns the failure of the procedure that the change set calls; nil if it calls none.
  func failure(_ error: WireError) -> CallOutcome? {
    set.arguments == nil ? nil : .failure(error, thrown: nil)
  }

  /// Returns the same reply to each fragment: an acceptance, or a rejection with an error.
  func replies(_ error: WireError? = nil) -> [FragmentReply] {
    set.fragments.map { _ in FragmentReply(error: error) }
  }
}
