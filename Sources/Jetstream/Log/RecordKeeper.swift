/// Appends records to a history in order, reports how many are durable, and has snapshots written. While appending
/// fails, nothing is lost: the keeper tries again every second.
///
/// The keeper is a state machine in the isolation domain in which the records are made. It receives records, turns of a
/// ticker and results of the history, and calls its owner to append and to copy the state.
///
/// Records are handed over in batches: a record that must outlive the process during the step that makes it, with those
/// before it; all others at the end of the turn, or as soon as there are ``batchCount``. While nothing is under way the
/// first one goes alone, so that the disk works while the rest of the turn is being judged. The keeper does not wait for
/// one batch before the next. It holds each batch until it is durable, since the answer of the history may be lost: then
/// the same batches are appended again, after the same sequence numbers, and the history recognizes those that it has.
///
/// A snapshot is never taken during a step: the state is copied in a separate turn, once the owner has prepared for it,
/// and only if the owner confirms that it is the result of exactly the records made so far.
package final class RecordKeeper<Record, Failure: AppendFailure> {
  package typealias Outcome = Result<Void, Failure>

  /// Records that are appended together, or not at all.
  package struct Batch {
    package let records: [RecordContent]
    /// The sequence number of the record before them.
    package let expected: Int
    /// True if the records must outlive the process from when the call returns that appends them.
    package let outlivesProcess: Bool
    /// True if the keeper may be gone soon: a history that has them in memory then takes them however many wait.
    package var ignoresBacklog = false

    var last: Int { expected + records.count }
  }

  /// The functions that the owner of the keeper provides.
  package struct Owner {
    /// Encodes one record.
    package var encode: (Record) -> RecordContent
    /// Returns true if a record must outlive the process from when it was given to the keeper.
    package var mustOutliveProcess: (Record) -> Bool
    /// Appends a batch, and calls its last argument once the batch is durable, with the sequence number of the last
    /// durable record, or when that has failed.
    package var append: (Batch, @escaping @Sendable (Result<Int, Failure>) -> Void) -> Void
    /// Called with the number of records, counted from the keeper's beginning, that are durable.
    package var stored: (Int) -> Void
    /// Calls its argument once the state can be copied without a long break: at once, or in another turn.
    package var prepareSnapshot: (@escaping () -> Void) -> Void = { $0() }
    /// Copies the state that the records produce; nil while the state contains anything else.
    package var snapshot: () -> RecordSnapshot<Failure>?
    /// Reports a problem, in words.
    package var note: (String) -> Void
    /// Called with the error after each failure, while records are not durable.
    package var stalled: (Failure) -> Void = { _ in }
    /// Called, once, when nothing can be appended any more, with the error. Records that are not durable are not kept.
    package var ended: (Failure) -> Void = { _ in }

    package init(
      encode: @escaping (Record) -> RecordContent,
      mustOutliveProcess: @escaping (Record) -> Bool,
      append: @escaping (Batch, @escaping @Sendable (Result<Int, Failure>) -> Void) -> Void,
      stored: @escaping (Int) -> Void,
      snapshot: @escaping () -> RecordSnapshot<Failure>?, note: @escaping (String) -> Void
    ) {
      (self.encode, self.mustOutliveProcess) = (encode, mustOutliveProcess)
      (self.append, self.stored) = (append, stored)
      (self.snapshot, self.note) = (snapshot, note)
    }
  }

  /// The phases of a keeper. It goes back from `failed` to `appending`, and nowhere else.
  private enum Phase {
    /// The history does not have the state yet that precedes the records.
    case waiting
    case appending
    /// An append has failed, and the next attempt is due within a second. If the records have to be repeated first, no
    /// later batches are handed over until then.
    case failed(isBlocked: Bool)
    /// Nothing can be appended any more.
    case ended(Failure)
  }

  private let owner: Owner
  private let completions: any LogCompletions
  private let ticker: Ticker
  private let snapshotEvery: Int
  /// The sequence number of the last record that was there at the beginning.
  private let start: Int
  private var phase = Phase.waiting
  /// The records that were not handed over.
  private var waiting: [RecordContent] = []
  /// The batches that were handed over and are not durable, in order.
  private var batches: [Batch] = []
  /// The sequence number of the last durable record.
  private var durable: Int
  /// The number of the attempt. A failure of an earlier one does not matter: its batches were appended again.
  private var attempt = 0
  private var isTurnDue = false
  /// Called once all records are durable, or with the next failure.
  private var finished: [(Outcome) -> Void] = []
  /// True once no more records come.
  private var isLeaving = false

  /// The number of records since the last snapshot was begun.
  private var sinceSnapshot: Int
  /// The number of records after which the next snapshot is due.
  private var dueAt: Int
  /// True until the turn in which the state is copied.
  private var isSnapshotRequested = false
  private var isWritingSnapshot = false
  /// The number of records after which the next attempt is due when a snapshot cannot be written.
  private var retryAfter: Int

  /// - Parameters:
  ///   - completions: Delivers the results of the history.
  ///   - sequence: The sequence number of the last record of the history.
  ///   - tail: The number of records in the history after its snapshot.
  ///   - snapshotEvery: The number of records after which a snapshot is written; 0 for never.
  package init(
    ticker: Ticker, completions: any LogCompletions, after sequence: Int, tail: Int,
    snapshotEvery: Int, owner: Owner
  ) {
    (self.ticker, self.completions) = (ticker, completions)
    (self.snapshotEvery, self.owner) = (snapshotEvery, owner)
    (start, durable) = (sequence, sequence)
    (sinceSnapshot, dueAt) = (tail, snapshotEvery)
    retryAfter = Self.postponement(of: snapshotEvery)
  }

  /// The sequence number of the last record that was handed over.
  private var last: Int { batches.last?.last ?? durable }

  /// Starts appending, beginning with the records given so far. Call it once the history has the state that precedes
  /// them.
  package func begin() {
    guard case .waiting = phase else { return }
    phase = .appending
    handOver(outlivingProcess: true)
    requestSnapshot()
  }

  /// Takes a record, which is appended at once or at the end of the turn, or when the history can take it.
  package func keep(_ record: Record) {
    if case .ended = phase { return }
    waiting.append(owner.encode(record))
    sinceSnapshot += 1
    if owner.mustOutliveProcess(record) {
      handOver(outlivingProcess: true)
    } else if batches.isEmpty || waiting.count >= Self.batchCount {
      handOver(outlivingProcess: false)
    } else {
      handOverLater()
    }
    requestSnapshot()
  }

  /// Hands over the records that wait, at once if appending has failed before, and calls `done` when all records are
  /// durable, or with the next failure.
  package func finish(_ done: @escaping (Outcome) -> Void) {
    switch phase {
    case .ended(let error): return done(.failure(error))
    case .waiting:
      finished.append(done)
      begin()
    case .appending:
      finished.append(done)
      handOver(outlivingProcess: false)
    case .failed:
      finished.append(done)
      tryAgain()
    }
    reportFinish()
  }

  /// Hands over all records that are not durable, also those that the history has refused because too many waited: no
  /// more come, and the keeper may be let go of. Then goes on as ``finish(_:)`` does.
  package func leave(_ done: @escaping (Outcome) -> Void) {
    isLeaving = true
    // The refusal of a batch may be on its way.
    if case .appending = phase { appendAgain() }
    finish(done)
  }

  private func reportFinish() {
    if waiting.isEmpty, batches.isEmpty { tellFinished(.success(())) }
  }

  private func tellFinished(_ outcome: Outcome) {
    let callers = finished
    finished = []
    for done in callers { done(outcome) }
  }

  // MARK: Appending

  /// The approximate size at which a batch ends: less than what ``RecordLog/writeNow()`` writes at once.
  private static var batchBytes: Int { 512 << 10 }
  /// The number of records that are handed over before the turn has ended.
  static var batchCount: Int { 16 }

  private func handOverLater() {
    guard !isTurnDue else { return }
    isTurnDue = true
    ticker.perform { [weak self] in
      self?.isTurnDue = false
      self?.handOver(outlivingProcess: false)
    }
  }

  private func handOver(outlivingProcess: Bool) {
    switch phase {
    case .appending, .failed(isBlocked: false): break
    case .waiting, .failed(isBlocked: true), .ended: return
    }
    var rest = waiting[...]
    waiting = []
    while !rest.isEmpty {
      var size = 0
      let part = rest.prefix { record in
        defer { size += record.payload.count }
        return size < Self.batchBytes
      }
      rest = rest[part.endIndex...]
      let batch = Batch(
        records: Array(part), expected: last, outlivesProcess: outlivingProcess)
      batches.append(batch)
      append(batch)
    }
  }

  private func append(_ batch: Batch) {
    let attempt = attempt
    var batch = batch
    batch.ignoresBacklog = isLeaving
    completions.start({ owner.append(batch, $0) }) { [weak self] outcome in
      self?.appended(outcome, inAttempt: attempt)
    }
  }

  private func appended(_ outcome: Result<Int, Failure>, inAttempt attempt: Int) {
    if case .ended = phase { return }
    switch outcome {
    case .success(let end):
      // Records of others behind the keeper's own do not count.
      let sequence = min(end, last)
      // Of the batches that one sync has made durable, the first reports all.
      guard sequence > durable else { return }
      durable = sequence
      batches.removeFirst(batches.firstIndex { $0.last > durable } ?? batches.count)
      owner.stored(durable - start)
      reportFinish()
    case .failure(let error):
      if case .none = error.remedy { return end(error) }
      if attempt == self.attempt { failed(error) }
    }
  }

  /// Stops what cannot go on until the next attempt, which is asked for unless it was already.
  private func failed(_ error: Failure) {
    let isBlocked = if case .appendAgain = error.remedy { true } else { false }
    if case .failed(let wasBlocked) = phase {
      phase = .failed(isBlocked: isBlocked || wasBlocked)
      return
    }
    phase = .failed(isBlocked: isBlocked)
    owner.stalled(error)
    owner.note("its history cannot be kept: \(error); trying again")
    ticker.perform(after: .seconds(1)) { [weak self] in self?.tryAgain() }
    tellFinished(.failure(error))
  }

  private func tryAgain() {
    if case .failed = phase { appendAgain() }
  }

  /// Appends all batches that are not durable again, as they were, and what has waited behind them.
  private func appendAgain() {
    phase = .appending
    attempt += 1
    for batch in batches { append(batch) }
    handOver(outlivingProcess: true)
    requestSnapshot()
  }

  /// Gives up what is not durable.
  private func end(_ error: Failure) {
    phase = .ended(error)
    (waiting, batches) = ([], [])
    owner.stalled(error)
    owner.note("its history cannot be kept any more: \(error)")
    tellFinished(.failure(error))
    owner.ended(error)
  }
}

/// Snapshots.
extension RecordKeeper {
  private var isSnapshotDue: Bool {
    guard case .appending = phase else { return false }
    return snapshotEvery > 0 && sinceSnapshot >= dueAt && !isWritingSnapshot
  }

  private func requestSnapshot() {
    guard isSnapshotDue, !isSnapshotRequested else { return }
    isSnapshotRequested = true
    ticker.perform { [weak self] in
      guard let self else { return }
      if isSnapshotDue {
        owner.prepareSnapshot { [weak self] in self?.takeSnapshot() }
      } else {
        isSnapshotRequested = false
      }
    }
  }

  private func takeSnapshot() {
    isSnapshotRequested = false
    guard isSnapshotDue else { return }
    // Copying the state may make records, since collected changes become a change set first.
    let copied = owner.snapshot()
    handOver(outlivingProcess: false)
    guard let snapshot = copied, waiting.isEmpty else {
      dueAt = sinceSnapshot + Self.postponement(of: snapshotEvery)
      return
    }
    sinceSnapshot = 0
    // With many records to carry along, snapshots are less frequent, so that their cost stays proportional to the
    // number of records.
    dueAt = max(snapshotEvery, snapshot.carried)
    isWritingSnapshot = true
    let last = last
    completions.start({ snapshot.write(last, $0) }) { [weak self] in self?.wrote($0) }
  }

  private func wrote(_ outcome: Result<WrittenSnapshot<Failure>, Failure>) {
    isWritingSnapshot = false
    if case .ended = phase { return }
    switch outcome {
    case .success(let written):
      retryAfter = Self.postponement(of: snapshotEvery)
      if let report = written.report { owner.note(report) }
    case .failure(let error):
      owner.note("no snapshot of its history: \(error)")
      // Until it fails, a snapshot takes room on the disk that the records need. On a disk that stays full, that would
      // stop the clients with each attempt.
      dueAt = sinceSnapshot + retryAfter
      retryAfter = min(2 * retryAfter, snapshotEvery)
    }
    requestSnapshot()
  }

  /// Returns the number of records after which the next attempt is due: a part of those between two snapshots, since
  /// the attempt that came to nothing may have cost as much as a snapshot.
  private static func postponement(of snapshotEvery: Int) -> Int { max(1, snapshotEvery / 16) }
}

/// A copy of the state that the records of a history produce.
package struct RecordSnapshot<Failure: Error> {
  /// The number of records that the snapshot carries along unchanged, such as those of pending change sets.
  package var carried = 0
  /// Writes the snapshot, which stands for all records up to a sequence number, and calls its last argument with the
  /// outcome.
  package var write: (Int, @escaping Done) -> Void

  package typealias Done = @Sendable (Result<WrittenSnapshot<Failure>, Failure>) -> Void

  package init(carried: Int = 0, write: @escaping (Int, @escaping Done) -> Void) {
    self.carried = carried
    self.write = write
  }
}
