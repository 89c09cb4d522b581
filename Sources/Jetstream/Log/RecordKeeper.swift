/// Appends records to a log in order, reports how many are durable, and has snapshots written. When
/// the disk fails, nothing is lost: the keeper tries again every second.
///
/// Records that become durable together are reported together.
///
/// The keeper is a state machine in the isolation domain in which the records are made. It receives
/// records, turns of a ticker and results of the log, and calls its owner to append and to copy the
/// state.
///
/// A record is appended at once, during the step that makes it, so that a process that is killed
/// right after the step has it in its log. A snapshot is never taken during a step: the state is
/// copied in a separate turn, once the owner has prepared for it, and only if the owner confirms
/// that it is the result of exactly the records appended so far.
package final class RecordKeeper<Record> {
  /// The functions that the owner of the keeper provides.
  package struct Owner {
    /// Appends one record.
    package var append: (Record) throws(LogError) -> LogReceipt
    /// Called with the number of records, counted from the keeper's beginning, that are durable.
    package var stored: (Int) -> Void
    /// Calls its argument once the state can be copied without a long break: at once, or in another
    /// turn.
    package var prepareSnapshot: (@escaping () -> Void) -> Void
    /// Copies the state that the appended records produce; nil while the state contains anything
    /// else.
    package var snapshot: () -> RecordSnapshot?
    /// Reports a problem, in words.
    package var note: (String) -> Void
    /// Called with the error after a failure, while records are not durable; the keeper tries
    /// again.
    package var stalled: (LogError) -> Void

    package init(
      append: @escaping (Record) throws(LogError) -> LogReceipt, stored: @escaping (Int) -> Void,
      prepareSnapshot: @escaping (@escaping () -> Void) -> Void = { $0() },
      snapshot: @escaping () -> RecordSnapshot?, note: @escaping (String) -> Void,
      stalled: @escaping (LogError) -> Void = { _ in }
    ) {
      self.prepareSnapshot = prepareSnapshot
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
  /// The records that have not been appended yet.
  private var waiting: [Record] = []
  /// The receipts of the appended records that were not reported as durable.
  private var receipts: [LogReceipt] = []
  /// The number of records that were reported as durable.
  private var reported = 0
  /// True while the keeper is to be told of the first of ``receipts``.
  private var isFollowing = false
  private var hasBegun = false
  /// True while the log refuses records, until the next attempt.
  private var isBlocked = false
  /// True after a failure, until the next attempt.
  private var isFollowingAgain = false

  /// The number of records since the last snapshot was begun.
  private var sinceSnapshot: Int
  /// The number of records after which the next snapshot is due.
  private var dueAt: Int
  /// True until the turn in which the state is copied.
  private var isSnapshotRequested = false
  private var isWritingSnapshot = false

  /// - Parameters:
  ///   - completions: Delivers the results of the log.
  ///   - tail: The number of records in the log after its snapshot.
  ///   - snapshotEvery: The number of records after which a snapshot is written; 0 for never.
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

  /// Starts appending, beginning with the records given so far. Call it once the log has the state
  /// that precedes them.
  package func begin() {
    hasBegun = true
    pump()
  }

  /// Appends a record, or queues it while the log cannot take it.
  package func keep(_ record: Record) {
    guard hasBegun, !isBlocked, waiting.isEmpty else {
      waiting.append(record)
      return pump()
    }
    do throws(LogError) {
      try append(record)
      requestSnapshot()
    } catch {
      waiting.append(record)
      block(error)
    }
  }

  /// Appends the queued records, for an owner that ends. There is no further attempt if this
  /// throws.
  package func finish() throws(LogError) {
    while let record = waiting.first {
      try append(record)
      waiting.removeFirst()
    }
  }

  private func append(_ record: Record) throws(LogError) {
    let receipt = try owner.append(record)
    receipts.append(receipt)
    sinceSnapshot += 1
    follow()
  }

  private func pump() {
    guard hasBegun, !isBlocked else { return }
    while let record = waiting.first {
      do throws(LogError) {
        try append(record)
        waiting.removeFirst()
      } catch {
        return block(error)
      }
    }
    requestSnapshot()
  }

  /// Appends nothing until the next attempt.
  private func block(_ problem: LogError) {
    isBlocked = true
    retry(problem) {
      $0.isBlocked = false
      $0.pump()
    }
  }

  // MARK: Receipts

  private func follow() {
    guard !isFollowing, let first = receipts.first else { return }
    isFollowing = true
    completions.start(first.whenDurable) { [weak self] in self?.finished($0) }
  }

  /// Reports a success, or tries again after a failure. Appending goes on meanwhile: a record that
  /// is written but not durable still survives the end of the process.
  private func finished(_ outcome: Result<Void, LogError>) {
    isFollowing = false
    switch outcome {
    case .success:
      // Records become durable in order, many with one sync.
      let durable = receipts.first?.log.durableSequence ?? 0
      let count = receipts.firstIndex { $0.sequence > durable } ?? receipts.count
      receipts.removeFirst(count)
      reported += count
      owner.stored(reported)
      follow()
    case .failure(let error):
      if isFollowingAgain { return }
      isFollowingAgain = true
      retry(error) {
        $0.isFollowingAgain = false
        $0.follow()
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
    guard isSnapshotDue, !isSnapshotRequested else { return }
    isSnapshotRequested = true
    ticker.perform { [weak self] in
      self?.owner.prepareSnapshot { self?.takeSnapshot() }
    }
  }

  private func takeSnapshot() {
    isSnapshotRequested = false
    guard isSnapshotDue else { return }
    // Copying the state may make records, since collected changes become a change set first.
    guard let snapshot = owner.snapshot(), waiting.isEmpty else {
      // Finding out that the state cannot be copied may cost as much as copying it: wait before
      // trying again.
      dueAt = sinceSnapshot + max(1, snapshotEvery / 16)
      return
    }
    sinceSnapshot = 0
    // With many records to carry along, snapshots are less frequent, so that their cost stays
    // proportional to the number of records.
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

/// A copy of the state that the records of a log produce.
package struct RecordSnapshot {
  /// The number of records that the snapshot carries along unchanged, such as those of pending
  /// change sets.
  package var carried = 0
  /// Writes the snapshot, and calls its argument with the outcome on a queue of the log.
  package var write: (@escaping @Sendable (Result<Void, LogError>) -> Void) -> Void

  package init(
    carried: Int = 0,
    write: @escaping (@escaping @Sendable (Result<Void, LogError>) -> Void) -> Void
  ) {
    self.carried = carried
    self.write = write
  }
}
