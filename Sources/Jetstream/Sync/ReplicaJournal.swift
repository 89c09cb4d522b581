/// The records that a replica has made for its log, and what is durable of them.
///
/// A change set is sent when its record is durable, and the server may forget a decision when the record of that is.
struct ReplicaJournal {
  /// The number of records that were made.
  private(set) var made = 0
  /// The number of these that are durable.
  private(set) var stored = 0
  /// The number up to which the decisions about the replica's change sets are durable.
  private(set) var safelyDecided = 0
  /// The decisions that are not durable, with the numbers of their records.
  private(set) var unsafeDecisions: [(record: Int, decided: Int)] = []

  /// Counts a record that is about to be handed to the log.
  mutating func note() { made += 1 }

  /// Notes that the first `count` records are durable.
  mutating func noteStored(_ count: Int) {
    stored = max(stored, count)
    let safe = unsafeDecisions.prefix { $0.record <= stored }
    if let last = safe.last { safelyDecided = last.decided }
    unsafeDecisions.removeFirst(safe.count)
  }

  /// Notes that all change sets up to a number are decided.
  ///
  /// - Parameter isSafe: true if the last decision has no record that is still to become durable.
  mutating func noteDecided(upTo number: Int, isSafe: Bool) {
    if isSafe { safelyDecided = number } else { unsafeDecisions.append((made, number)) }
  }
}
