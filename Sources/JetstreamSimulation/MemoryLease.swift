import Jetstream
import JetstreamServer

/// The lease of a scope in a ``MemoryStorage``.
package struct MemoryLease: ScopeLease {
  let storage: MemoryStorage
  let name: String
  let number: Int
  let queue: any LogQueue

  package func read() async throws(StorageError) -> StoredHistory { readNow() }

  /// Reads the history at once.
  package func readNow() -> StoredHistory { storage.read(name) }

  package func append(
    _ records: [RecordContent], after expected: Int, outlivesProcess: Bool,
    then done: @escaping @Sendable (Result<Int, StorageError>) -> Void
  ) {
    queue.run {
      switch storage.takeFault([.lostRequest, .lostAnswer, .lateRequest]) {
      case .lostRequest: done(.failure(.unavailable("the request was lost")))
      case .lateRequest:
        done(.failure(.unavailable("the request takes too long")))
        queue.run(after: .milliseconds(200)) { _ = append(records, after: expected) }
      case .lostAnswer:
        _ = append(records, after: expected)
        done(.failure(.unavailable("the answer was lost")))
      case .halfSnapshot, nil: done(append(records, after: expected))
      }
    }
  }

  /// Appends records as the storage does when they have arrived. Returns the last record.
  private func append(
    _ records: [RecordContent], after expected: Int
  ) -> Result<Int, StorageError> {
    defer { storage.wakeFollowers() }
    return change { stored throws(StorageError) in
      let (last, end) = (stored.last, expected + records.count)
      if last < expected { throw .gap(expected: expected, last: last) }
      if last > expected {
        // A snapshot stands for those that are not kept, and only this server has written it.
        let kept = stored.records.drop { $0.sequence <= expected }.prefix { $0.sequence <= end }
        let isThere = kept.allSatisfy {
          let record = records[$0.sequence - expected - 1]
          return $0.kind == record.kind && $0.payload == record.payload
        }
        guard end <= last, isThere else { throw .conflict(expected: expected, last: last) }
        return last
      }
      for (place, record) in records.enumerated() {
        stored.records.append(
          LogRecord(sequence: expected + place + 1, kind: record.kind, payload: record.payload))
      }
      return end
    }
  }

  package func writeSnapshot(
    at sequence: Int, state: @escaping @Sendable () -> [RecordContent],
    then done: @escaping @Sendable (Result<WrittenSnapshot<StorageError>, StorageError>) -> Void
  ) {
    queue.run {
      let begun = change { stored throws(StorageError) in
        guard sequence <= stored.last else { throw .notKept(sequence: sequence) }
        stored.draft = []
      }
      if case .failure(let error) = begun { return done(.failure(error)) }
      let lines = state().map {
        LogRecord(sequence: sequence, kind: $0.kind, payload: $0.payload)
      }
      let isHalf = storage.takeFault([.halfSnapshot]) != nil
      write(lines[...], isHalf: isHalf, at: sequence, then: done)
    }
  }

  /// Writes a snapshot, one part after the other, and has it count once all are there.
  private func write(
    _ rest: ArraySlice<LogRecord>, isHalf: Bool, at sequence: Int,
    then done: @escaping @Sendable (Result<WrittenSnapshot<StorageError>, StorageError>) -> Void
  ) {
    let part = rest.prefix(max(1, rest.count / 2))
    let written = change { $0.draft += part }
    if case .failure(let error) = written { return done(.failure(error)) }
    if isHalf { return done(.failure(.unavailable("the snapshot was interrupted"))) }
    queue.run {
      let behind = rest.dropFirst(part.count)
      if !behind.isEmpty { return write(behind, isHalf: false, at: sequence, then: done) }
      done(
        change { stored in
          stored.snapshot = LogSnapshot(sequence: sequence, state: stored.draft, kept: [])
          stored.draft = []
          if storage.keepsRecords { return WrittenSnapshot() }
          stored.records.removeAll { $0.sequence <= sequence }
          stored.dropped = max(stored.dropped, sequence)
          return WrittenSnapshot()
        })
    }
  }

  package func release() async throws(StorageError) {
    await withCheckedContinuation { done in
      queue.run {
        _ = change { $0.lease = nil }
        done.resume()
      }
    }
  }

  /// Changes what is stored, unless the lease is stale.
  private func change<Value: Sendable>(
    _ body: (inout MemoryStorage.Stored) throws(StorageError) -> Value
  ) -> Result<Value, StorageError> {
    Result { () throws(StorageError) in
      try storage.state.withLock { state throws(StorageError) in
        guard var stored = state.scopes[name], stored.lease == number else { throw .leaseLost }
        let value = try body(&stored)
        state.scopes[name] = stored
        return value
      }
    }
  }
}
