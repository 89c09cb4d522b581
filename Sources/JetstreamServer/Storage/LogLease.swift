import Jetstream

/// The lease of a history in a log on this machine: as long as the log is open, no other process writes it, and neither does
/// another object of this one. It has no term.
package struct LogLease: ScopeLease {
  let log: FragmentLog
  private let opening: LogOpening?
  private let repeated: RepeatedBatches
  private var records: RecordLog { log.records }

  /// - Parameter opening: the findings of opening a log in which a new epoch was begun behind what is missing.
  package init(_ log: FragmentLog, opening: LogOpening? = nil) {
    (self.log, self.opening) = (log, opening)
    repeated = RepeatedBatches(log.records)
  }

  package func read() async throws(StorageError) -> StoredHistory {
    try await StorageQueue.run { () throws(LogError) in try readNow() }
  }

  /// Reads the history on the calling thread. Writes the records that still wait in memory first: the lease may have been
  /// used before, and the disk have failed.
  package func readNow() throws(LogError) -> StoredHistory {
    // It can be read, but nothing could be appended to the history.
    if records.isClosed { throw .closed }
    try records.writeAll()
    let reader = LogReader(records.directory)
    let snapshot = try reader.snapshot()
    var history = StoredHistory(snapshot: snapshot, records: [])
    history.losses = opening?.losses ?? []
    history.mayHaveLostEnd = opening?.mayHaveLostEnd ?? false
    if snapshot == nil, records.lastSequence == 0 { return history }
    var cursor = try reader.read(from: (snapshot?.sequence ?? 0) + 1)
    while let record = try cursor.next() { history.records.append(record) }
    return history
  }

  package func append(
    _ batch: [RecordContent], after expected: Int, outlivesProcess: Bool,
    then done: @escaping @Sendable (Result<Int, StorageError>) -> Void
  ) {
    do throws(LogError) {
      let outcome = try records.append(
        batch, after: expected, outlivingProcess: outlivesProcess)
      switch outcome {
      case .appended(let receipt):
        receipt.whenDurableUpTo { done($0.mapError { StorageError($0) }) }
      case .repeated(let receipt):
        receipt.whenDurableUpTo { outcome in
          do throws(LogError) {
            repeated.check(batch, after: expected, durable: try outcome.get(), then: done)
          } catch {
            done(.failure(StorageError(error)))
          }
        }
      case .conflict(let last) where last < expected:
        done(.failure(.gap(expected: expected, last: last)))
      case .conflict(let last): done(.failure(.conflict(expected: expected, last: last)))
      }
    } catch {
      done(.failure(StorageError(error)))
    }
  }

  package func writeSnapshot(
    at sequence: Int, state: @escaping @Sendable () -> [RecordContent],
    then done: @escaping @Sendable (Result<WrittenSnapshot<StorageError>, StorageError>) -> Void
  ) {
    records.snapshot(
      at: sequence, standingFor: ScopeHistory.kinds, state: state
    ) { outcome in
      done(
        outcome
          .map { WrittenSnapshot(removalError: $0.removalError.map { StorageError($0) }) }
          .mapError { StorageError($0) })
    }
  }

  package func release() async throws(StorageError) {
    do { try await log.close() } catch { throw StorageError(error) }
  }
}
