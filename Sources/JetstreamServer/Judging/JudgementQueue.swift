/// The large change sets that are being judged, one slice in each turn.
///
/// The sessions take turns: one that sends many waits for itself, and not others for it.
struct JudgementQueue {
  private var sets: [Int: [LargeSet]] = [:]
  /// The numbers of the sessions that have some, in the order of their turns.
  private var sessions: [Int] = []
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
    if isTurnDue || isEmpty { return false }
    isTurnDue = true
    return true
  }

  /// Begins a turn: returns the first change set of the session whose turn it is, which goes on if it is not over by the next
  /// time; nil if there is none.
  mutating func next() -> LargeSet? {
    isTurnDue = false
    for _ in sessions.indices {
      let session = sessions.removeFirst()
      let left = (sets[session] ?? []).filter { !$0.isOver }
      sets[session] = left.isEmpty ? nil : left
      guard let set = left.first else { continue }
      sessions.append(session)
      return set
    }
    return nil
  }
}
