/// Hands records to a log in their order, says how many are durable, and has a snapshot made now and then.
/// While the disk fails, nothing is lost: another attempt is made every second.
///
/// Belongs to the actor on which the records are made.
package final class RecordKeeper<Record> {
  /// What the keeper needs of its owner.
  package struct Owner {
    /// Appends one record.
    package var append: (Record) throws(LogError) -> LogReceipt
    /// As many records as this, counted from the keeper's beginning, will not get lost.
    package var stored: (Int) -> Void
    /// Copies what the records until now have come to, and gives what writes it; nil as long as the state is
    /// not just that.
    package var snapshot: () -> (@Sendable () async throws(LogError) -> Void)?
    /// Something has gone wrong, in words.
    package var note: (String) -> Void
    /// Nothing is kept for now, for this reason.
    package var stalled: (LogError) -> Void

    package init(
      append: @escaping (Record) throws(LogError) -> LogReceipt, stored: @escaping (Int) -> Void,
      snapshot: @escaping () -> (@Sendable () async throws(LogError) -> Void)?,
      note: @escaping (String) -> Void, stalled: @escaping (LogError) -> Void = { _ in }
    ) {
      self.append = append
      self.stored = stored
      self.snapshot = snapshot
      self.note = note
      self.stalled = stalled
    }
  }

  private let owner: Owner
  private let actor: WeakActor
  private let ticker: Ticker
  private let snapshotEvery: Int
  /// What the log has not taken yet.
  private var waiting: [Record] = []
  /// How many records it has taken, in all and since the last snapshot.
  private var appended = 0
  private var sinceSnapshot: Int
  private var hasBegun = false
  private var isRetrying = false

  /// - Parameters:
  ///   - tail: how many records the log has behind its snapshot.
  ///   - snapshotEvery: after how many records a snapshot is made; 0 for never.
  package init(
    on actor: WeakActor, ticker: Ticker, tail: Int, snapshotEvery: Int, owner: Owner
  ) {
    self.actor = actor
    self.ticker = ticker
    self.snapshotEvery = snapshotEvery
    self.owner = owner
    sinceSnapshot = tail
  }

  /// What the records depart from is in the log: what was given until now is appended.
  package func begin() {
    hasBegun = true
    pump()
  }

  /// Takes a record.
  package func keep(_ record: Record) {
    waiting.append(record)
    pump()
  }

  private func pump() {
    guard hasBegun, !isRetrying else { return }
    while let record = waiting.first {
      do throws(LogError) {
        let receipt = try owner.append(record)
        waiting.removeFirst()
        appended += 1
        sinceSnapshot += 1
        follow(receipt, appended)
      } catch {
        return retry(error) { $0.pump() }
      }
    }
    snapshotIfDue()
  }

  private func follow(_ receipt: LogReceipt, _ count: Int) {
    let home = HomeReference(self, on: actor)
    receipt.whenDurable { result in
      Task { await home.perform { $0.finished(receipt, count, result) } }
    }
  }

  private func finished(_ receipt: LogReceipt, _ count: Int, _ result: Result<Void, LogError>) {
    switch result {
    case .success: owner.stored(count)
    case .failure(let error): retry(error) { $0.follow(receipt, count) }
    }
  }

  private func retry(_ problem: LogError, _ action: @escaping (RecordKeeper) -> Void) {
    owner.stalled(problem)
    owner.note("its history cannot be kept: \(problem); trying again")
    isRetrying = true
    ticker.perform(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      isRetrying = false
      action(self)
      pump()
    }
  }

  private func snapshotIfDue() {
    guard snapshotEvery > 0, sinceSnapshot >= snapshotEvery, let write = owner.snapshot() else {
      return
    }
    sinceSnapshot = 0
    let home = HomeReference(self, on: actor)
    Task {
      do throws(LogError) {
        try await write()
      } catch {
        let problem = "no snapshot of its history: \(error)"
        await home.perform { $0.owner.note(problem) }
      }
    }
  }
}
