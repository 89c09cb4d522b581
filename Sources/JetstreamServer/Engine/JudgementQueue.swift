/// The large change sets that are being judged, a slice at a time, the scopes whose full states are being measured, a part at a
/// time, and the subscriptions whose waiting change sets go on in the next turn.
///
/// A turn has one slice or one part, alternately if there are both.
///
/// The sessions take turns: one that sends many waits for itself, and not others for it.
struct JudgementQueue {
  private var sets: [Int: [LargeSet]] = [:]
  /// The numbers of the sessions that have some, in the order of their turns.
  private var sessions: [Int] = []
  /// The subscriptions in which change sets wait for the next turn, and for nothing else.
  private var released: [Subscription] = []
  private var releasedIDs: Set<ObjectIdentifier> = []
  /// The scopes of whose full states another part is to be measured, each of them once.
  private var measured: [ScopeHost] = []
  /// The results of change sets that were decided, which take time to be freed.
  private var spent: [LargeSet.Findings] = []
  /// True if the next turn has a part of a full state, if one is to be measured.
  private var measuresNext = false
  /// The number of the turn. One begins when a connection has brought something, and when the server goes on with what
  /// waits.
  private(set) var turn = 1
  /// True while a turn was asked for that has not come.
  private var isTurnDue = false

  var isEmpty: Bool { sessions.isEmpty }

  /// The bytes of the change sets that are not decided. Cost: O(number of change sets).
  var bytes: Int {
    sets.values.joined().reduce(0) { $0 + ($1.isOver ? 0 : $1.bytes) }
  }

  /// Adds a change set behind the others of its session.
  mutating func append(_ set: LargeSet, of session: Int) {
    if sets[session] == nil { sessions.append(session) }
    sets[session, default: []].append(set)
  }

  /// Returns true if a turn is to be asked for.
  mutating func asksForTurn() -> Bool {
    if isTurnDue { return false }
    letGo()
    if isEmpty, released.isEmpty, measured.isEmpty, spent.isEmpty { return false }
    isTurnDue = true
    return true
  }

  /// Begins a turn in which no large change set goes on.
  mutating func beginTurn() { turn += 1 }

  /// The work of a turn.
  enum Work {
    /// The next slice of a large change set.
    case set(LargeSet)
    /// The next part of the full state of a scope.
    case measurement(ScopeHost)
  }

  /// Begins a turn: returns its work, nil if there is none. That is a slice of the first change set of the session whose turn
  /// it is, which goes on if it is not over by the next time, or a part of a full state.
  mutating func next() -> Work? {
    isTurnDue = false
    turn += 1
    spent = []
    letGo()
    if isEmpty || measuresNext, !measured.isEmpty {
      measuresNext = false
      return .measurement(measured.removeFirst())
    }
    measuresNext = true
    guard let session = sessions.first, let set = sets[session]?.first else { return nil }
    sessions.append(sessions.removeFirst())
    return .set(set)
  }

  /// Has the change sets that wait in a subscription go on in the next turn.
  mutating func release(_ subscription: Subscription) {
    if releasedIDs.insert(ObjectIdentifier(subscription)).inserted { released.append(subscription) }
  }

  /// True if change sets of some session wait for the next turn, and for nothing else.
  var hasReleased: Bool { !released.isEmpty }

  /// Returns true if those of one of the subscriptions do.
  func isReleased(anyOf subscriptions: some Sequence<Subscription>) -> Bool {
    subscriptions.contains { releasedIDs.contains(ObjectIdentifier($0)) }
  }

  /// Removes and returns the subscriptions whose turn has come.
  mutating func takeReleased() -> [Subscription] {
    defer { (released, releasedIDs) = ([], []) }
    return released
  }

  /// Leaves subscriptions to the next turn, in front of those that are to go on then anyway.
  mutating func putBack(_ subscriptions: some Sequence<Subscription>) {
    let others = takeReleased()
    for subscription in subscriptions { release(subscription) }
    for subscription in others { release(subscription) }
  }

  /// Leaves it to the next turn to free the result of a change set that was decided.
  mutating func free(_ findings: LargeSet.Findings) { spent.append(findings) }

  /// Has another part of the full state of a scope measured, behind those of other scopes.
  mutating func measure(_ host: ScopeHost) {
    if !measured.contains(where: { $0 === host }) { measured.append(host) }
  }

  /// Lets go of the change sets that are over, and of the scopes that are hosted no more.
  private mutating func letGo() {
    measured.removeAll(where: \.hasEnded)
    for (session, own) in sets where own.contains(where: \.isOver) {
      let left = own.filter { !$0.isOver }
      sets[session] = left.isEmpty ? nil : left
    }
    sessions.removeAll { [sets] in sets[$0] == nil }
  }
}
