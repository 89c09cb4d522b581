/// The records of a replica on their way to its log: those that were made, what is durable of them, and the steps that
/// are not complete.
///
/// A change set is sent when its record is durable, and the server may forget a decision when the record of that is.
struct ReplicaJournal {
  /// Writes a record to the log, which reports it as durable by ``Replica/stored(_:)``; nil for a replica without a
  /// log.
  var store: ((ReplicaRecord) -> Void)?
  /// The reason why the records cannot be written.
  var problem: String?
  /// True while the replica is restored from its records.
  var isRestoring = false
  /// The number of decisions on change sets whose sequences are not reached that are left to one record.
  var decisionsPerRecord = 64
  /// The number of steps whose record has been handed over but which are not complete.
  private var openSteps = 0
  /// The number of records that were made.
  private(set) var made = 0
  /// The number of these that are durable.
  private var stored = 0
  /// The number up to which the decisions about the replica's change sets are durable.
  private var safelyDecided = 0
  /// The decisions that are not durable, with the numbers of their records.
  private(set) var unsafeDecisions: [(record: Int, decided: Int)] = []

  /// The number up to which the decisions about the replica's change sets have records.
  var recorded: Int { unsafeDecisions.last?.decided ?? safelyDecided }

  /// True if there is a log.
  var isKept: Bool { store != nil }

  /// True while the replica is restored, or the effect of a record that was handed over is not complete.
  var isInStep: Bool { openSteps > 0 || isRestoring }

  /// The remote change sets of the batch that have no record yet.
  private var confirmed: [ReplicaRecord] = []

  /// The number of records that have to be durable before a change set is sent that is made now.
  var next: Int { isKept ? made + (confirmed.isEmpty ? 1 : 2) : 0 }

  /// Leaves a remote change set of the batch to the record of all of them.
  ///
  /// A server leaves out values that later change sets of the same frame replace. So the change sets of a frame have one
  /// record: a process that is killed has all of them in its log, or none.
  mutating func note(confirmed record: @autoclosure () -> ReplicaRecord) {
    if isKept, !isRestoring { confirmed.append(record()) }
  }

  /// Removes the remote change sets that have no record yet, and returns the record of all of them; nil if there are none.
  mutating func takeConfirmed() -> ReplicaRecord? {
    if confirmed.isEmpty { return nil }
    defer { confirmed = [] }
    return confirmed.count == 1 ? confirmed[0] : .together(confirmed)
  }

  /// Begins a step whose record is handed over before its effect is complete.
  mutating func beginStep() { openSteps += 1 }

  mutating func endStep() { openSteps -= 1 }

  /// Counts a record, and returns the function that hands it to the log. Returns nil if there is no log. While
  /// restoring, only new records are handed over; the others are in the log already.
  mutating func writer(isNew: Bool) -> ((ReplicaRecord) -> Void)? {
    guard let store, isNew || !isRestoring else { return nil }
    made += 1
    return store
  }

  /// Notes that the first `count` records are durable.
  mutating func noteStored(_ count: Int) {
    problem = nil
    stored = max(stored, count)
    let safe = unsafeDecisions.prefix { $0.record <= stored }
    if let last = safe.last { safelyDecided = last.decided }
    unsafeDecisions.removeFirst(safe.count)
  }

  /// Notes that all change sets up to a number are decided and that the record of the last decision was made.
  mutating func noteDecided(upTo number: Int) {
    if !isKept || isRestoring {
      safelyDecided = number
    } else if number > recorded {
      unsafeDecisions.append((made, number))
    }
  }

  /// Notes that the decisions about the change sets above a number are not known any more.
  mutating func noteForgotten(after number: Int) {
    safelyDecided = min(safelyDecided, number)
    unsafeDecisions = unsafeDecisions.map { ($0.record, min($0.decided, number)) }
  }

  /// Returns true if the first `count` records are durable.
  func hasStored(_ count: Int) -> Bool { count <= stored }

  /// Returns the number up to which the outcomes are durably known of change sets that are decided up to `number`.
  func durablyDecided(upTo number: Int) -> Int { isKept ? safelyDecided : number }
}
