import Jetstream

/// Holds back what clients are told of a scope until the records of it are durable, so that a crash cannot take back
/// what a client was told.
///
/// It is a class since both the store and the actions may lead to further records and actions.
final class RecordGate {
  /// Stores each record it is given; the owner calls ``stored(_:)`` once records are durable. Without it, nothing is
  /// stored, and nothing is held back.
  var store: ((ScopeRecord) -> Void)?
  /// Called once a record is durable that has no inverse of its change set, since it would be too long with it.
  var inverseLeftOut: (() -> Void)?
  /// The approximate number of bytes above which a record is kept without the inverse of its change set, so that it
  /// does not become longer than a log takes: a byte of text takes up to six in JSON.
  var longest = JSONLimits.trusted.maxBytes / 6
  /// The number of submissions that are being decided and whose records were not handed to ``store`` yet.
  private var openSteps = 0
  /// The number of records made.
  private var made = 0
  /// The number of records that are durable.
  private var durable = 0
  /// The approximate sizes of the records that are not durable, in bytes, and their sum.
  private var sizes: [Int] = []
  private(set) var unstoredBytes = 0
  /// True from a failure of the store until it has stored records again.
  private(set) var isStalled = false
  // No access to it is open while other code runs: actions are released where it is not being changed.
  /// The actions that wait for records to be durable, each with the number of records that it waits for.
  @exclusivity(unchecked) private var waiting: [(records: Int, action: () -> Void)] = []
  /// True while actions that have waited run: what they have run once more comes behind them.
  private var runsActions = false

  /// True while a submission is being decided: the scope's state is not the result of its records then.
  var isInStep: Bool { openSteps > 0 }

  /// The number of actions that wait.
  var count: Int { waiting.count }

  /// Runs `decide`, which decides a submission and keeps the record of the decision.
  func step<Decided, Failure>(_ decide: () throws(Failure) -> Decided) throws(Failure) -> Decided {
    openSteps += 1
    defer { openSteps -= 1 }
    return try decide()
  }

  /// Hands a record to ``store``.
  func keep(_ record: ScopeRecord) {
    guard let store else { return }
    made += 1
    var record = record
    var size = record.roughSize
    let leavesOutInverse = size > longest && !record.undo.isEmpty
    if leavesOutInverse {
      record.undo = []
      size = record.roughSize
    }
    sizes.append(size)
    unstoredBytes += size
    store(record)
    // Later, since the change set is still being accepted, and the app may do anything when it is told.
    if leavesOutInverse, let inverseLeftOut { whenStored(inverseLeftOut) }
  }

  /// True if all records made so far are durable, and nothing waits for one.
  var isCurrent: Bool { durable >= made && waiting.isEmpty && !runsActions }

  /// Runs `action` once all records made so far are durable; at once if they are. Actions run in the order of the
  /// calls.
  func whenStored(_ action: @escaping () -> Void) {
    if isCurrent { return action() }
    waiting.append((made, action))
  }

  /// Marks the first `count` records since the scope was hosted as durable, and runs the actions that have waited for
  /// them.
  func stored(_ count: Int) {
    isStalled = false
    durable = max(durable, count)
    let new = max(0, sizes.count - max(0, made - durable))
    unstoredBytes -= sizes[..<new].reduce(0, +)
    sizes.removeFirst(new)
    if runsActions { return }
    runsActions = true
    defer { runsActions = false }
    while let next = waiting.first, next.records <= durable {
      let ready = waiting.prefix { $0.records <= durable }
      waiting.removeFirst(ready.count)
      for entry in ready { entry.action() }
    }
  }

  /// Takes note that the store has failed, and that it will try again. Returns true if clients have to wait for it from
  /// now on, and have not before.
  func stalled() -> Bool {
    if isStalled || isCurrent { return false }
    isStalled = true
    return true
  }

  /// Lets go of the actions that wait, which know the host: nothing will be told any more.
  func forgetWaiting() {
    let forgotten = waiting
    waiting = []
    withExtendedLifetime(forgotten) {}
  }

  /// Describes what must not be the case between two inputs, a line for each; empty if all is well.
  func checkInvariants() -> [String] {
    var problems: [String] = []
    if durable > made {
      problems.append("\(durable) records are durable of \(made) that were made")
    }
    if sizes.count != max(0, made - durable) || unstoredBytes != sizes.reduce(0, +) {
      problems.append("\(sizes.count) records of \(unstoredBytes) bytes are not durable")
    }
    let waits = waiting.map(\.records)
    if waits != waits.sorted() || waits.contains(where: { $0 <= durable && $0 > 0 }) {
      problems.append("actions wait for records \(waits), of which \(durable) are durable")
    }
    if isInStep { problems.append("\(openSteps) submissions are still being decided") }
    return problems
  }
}
