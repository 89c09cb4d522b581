/// Hands records to a log in their order, says how many are durable, and has snapshots made.
/// While the disk fails, nothing is lost: another attempt is made every second.
///
/// A state machine that belongs to the isolation domain in which the records are made: it gets records, turns
/// of a ticker and results of the log, and asks its owner to append and to copy the state.
///
/// A record is appended at once, in the middle of the step that makes it, so that a process that is killed
/// right after the step has it in its log. A snapshot never is taken there: the state is copied in a turn of
/// the ticker of its own, when no step is under way, and only if the owner says that it is what the records
/// until then amount to.
package final class RecordKeeper<Record> {
  /// What the keeper needs of its owner.
  package struct Owner {
    /// Appends one record.
    package var append: (Record) throws(LogError) -> LogReceipt
    /// So many records, counted from the keeper's beginning, will not get lost.
    package var stored: (Int) -> Void
    /// Copies what the records until now amount to; nil as long as the state is not just that.
    package var snapshot: () -> RecordSnapshot?
    /// Something has gone wrong, in words.
    package var note: (String) -> Void
    /// Nothing is kept for now, for this reason.
    package var stalled: (LogError) -> Void

    package init(
      append: @escaping (Record) throws(LogError) -> LogReceipt, stored: @escaping (Int) -> Void,
      snapshot: @escaping () -> RecordSnapshot?, note: @escaping (String) -> Void,
      stalled: @escaping (LogError) -> Void = { _ in }
    ) {
      self.append = append
      self.stored = stored
      self.snapshot = snapshot
      self.note = note
      self.stalled = stalled
    }
  }

  private let owner: Owner
  private let completions: any LogCompletions
  private let ticker: Ticker
  private let snapshotEvery: Int
  /// The records that the log has not taken yet.
  private var waiting: [Record] = []
  /// The number of records that the log has taken.
  private var appended = 0
  /// The receipt of the last one.
  private var lastReceipt: LogReceipt?
  private var hasBegun = false
  /// True while the log takes no records, until the next attempt.
  private var isBlocked = false
  /// True while the last receipt waits to be followed again after a failure.
  private var isFollowingAgain = false

  /// The number of records since the last snapshot that was begun.
  private var sinceSnapshot: Int
  /// The number of records at which the next snapshot is due.
  private var dueAt: Int
  private var isTurnRequested = false
  private var isWritingSnapshot = false

  /// - Parameters:
  ///   - completions: bring the log's results back.
  ///   - tail: how many records the log has behind its snapshot.
  ///   - snapshotEvery: after how many records a snapshot is made; 0 for never.
  package init(
    ticker: Ticker, completions: any LogCompletions, tail: Int, snapshotEvery: Int, owner: Owner
  ) {
    self.ticker = ticker
    self.completions = completions
    self.snapshotEvery = snapshotEvery
    self.owner = owner
    sinceSnapshot = tail
    dueAt = snapshotEvery
  }

  /// Appends the records that were given until now: the state that they depart from is in the log.
  package func begin() {
    hasBegun = true
    pump()
  }

  /// Takes a record.
  package func keep(_ record: Record) {
    waiting.append(record)
    pump()
  }

  /// Appends what the log has not taken yet, for an owner that ends. No other attempt follows.
  package func finish() throws(LogError) {
    while let record = waiting.first { try append(record) }
  }

  private func append(_ record: Record) throws(LogError) {
    let receipt = try owner.append(record)
    waiting.removeFirst()
    appended += 1
    sinceSnapshot += 1
    lastReceipt = receipt
    follow(receipt)
  }

  private func pump() {
    guard hasBegun, !isBlocked else { return }
    while let record = waiting.first {
      do throws(LogError) {
        try append(record)
      } catch {
        isBlocked = true
        return retry(error) {
          $0.isBlocked = false
          $0.pump()
        }
      }
    }
    requestSnapshot()
  }

  // MARK: Receipts

  private func follow(_ receipt: LogReceipt) {
    let count = appended
    completions.start(receipt.whenDurable) { [weak self] in self?.finished(count, $0) }
  }

  /// Records are still appended after a failure: what the log can write survives the process, although it is
  /// not durable.
  private func finished(_ count: Int, _ outcome: Result<Void, LogError>) {
    switch outcome {
    case .success: owner.stored(count)
    case .failure(let error):
      if isFollowingAgain { return }
      isFollowingAgain = true
      retry(error) {
        $0.isFollowingAgain = false
        // The last record is durable when all are.
        if let receipt = $0.lastReceipt { $0.follow(receipt) }
      }
    }
  }

  private func retry(_ problem: LogError, _ action: @escaping (RecordKeeper) -> Void) {
    owner.stalled(problem)
    owner.note("its history cannot be kept: \(problem); trying again")
    ticker.perform(after: .seconds(1)) { [weak self] in
      if let self { action(self) }
    }
  }

  // MARK: Snapshots

  private var isSnapshotDue: Bool {
    snapshotEvery > 0 && sinceSnapshot >= dueAt && !isWritingSnapshot && waiting.isEmpty
  }

  private func requestSnapshot() {
    guard isSnapshotDue, !isTurnRequested else { return }
    isTurnRequested = true
    ticker.perform { [weak self] in self?.takeSnapshot() }
  }

  private func takeSnapshot() {
    isTurnRequested = false
    guard isSnapshotDue else { return }
    // Copying may make records: changes that were collected become a change set first.
    guard let snapshot = owner.snapshot(), waiting.isEmpty else {
      // To find out that the state cannot be copied may cost as much as copying it.
      dueAt = sinceSnapshot + max(1, snapshotEvery / 16)
      return
    }
    sinceSnapshot = 0
    // Where much is carried along each time, less often: the cost stays in proportion to the records.
    dueAt = max(snapshotEvery, snapshot.carried)
    isWritingSnapshot = true
    completions.start(snapshot.write) { [weak self] in self?.wrote($0) }
  }

  private func wrote(_ outcome: Result<Void, LogError>) {
    isWritingSnapshot = false
    if case .failure(let error) = outcome { owner.note("no snapshot of its history: \(error)") }
    requestSnapshot()
  }
}

/// A copy of what the records of a log amount to.
package struct RecordSnapshot {
  /// How many records it carries along as they are, such as those of pending change sets.
  package var carried = 0
  /// Writes it, and says what came of it on a queue of the log.
  package var write: (@escaping @Sendable (Result<Void, LogError>) -> Void) -> Void

  package init(
    carried: Int = 0,
    write: @escaping (@escaping @Sendable (Result<Void, LogError>) -> Void) -> Void
  ) {
    self.carried = carried
    self.write = write
  }
}
