import Jetstream

/// The lease of a history in a log on this machine: as long as the log is open, no other process writes it, and neither does
/// another object of this one. It has no term.
package struct LogLease: ScopeLease {
  let log: FragmentLog
  private var records: RecordLog { log.records }

  package init(_ log: FragmentLog) { self.log = log }

  package func read() async throws(StorageError) -> StoredHistory {
    try await StorageQueue.run { () throws(LogError) in try readNow() }
  }

  /// Reads the history on the calling thread.
  package func readNow() throws(LogError) -> StoredHistory {
    let reader = LogReader(records.directory)
    let snapshot = try reader.snapshot()
    var history = StoredHistory(snapshot: snapshot, records: [])
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
          records.readLater {
            done(outcome.mapError { StorageError($0) }.flatMap { check(batch, expected, $0) })
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

  /// Returns a success, with the last durable record, if the records behind one are a batch.
  private func check(
    _ batch: [RecordContent], _ expected: Int, _ durable: Int
  ) -> Result<Int, StorageError> {
    do throws(LogError) {
      var cursor = records.read(from: expected + 1)
      for content in batch {
        guard let record = try cursor.next(), record.kind == content.kind,
          record.payload == content.payload
        else { return .failure(.conflict(expected: expected, last: records.lastSequence)) }
      }
      return .success(durable)
    } catch {
      // A snapshot stands for them, and only the holder of the lease writes one.
      if case .notKept = error { return .success(durable) }
      return .failure(StorageError(error))
    }
  }

  package func writeSnapshot(
    at sequence: Int, state: @escaping @Sendable () -> [RecordContent],
    then done: @escaping @Sendable (Result<Void, StorageError>) -> Void
  ) {
    records.snapshot(
      at: sequence, standingFor: ScopeHistory.kinds, state: state
    ) { outcome in
      done(outcome.mapError { StorageError($0) })
    }
  }

  package func release() async throws(StorageError) {
    do { try await log.close() } catch { throw StorageError(error) }
  }
}
