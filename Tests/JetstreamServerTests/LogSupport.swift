import Jetstream
import JetstreamServer

extension ClientLog {
  /// Opens the log in a directory, to look at what a client keeps in it.
  init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.init(try FragmentLog(path, configuration: configuration).records)
  }

  /// Appends a record, which is written before this returns.
  func append(_ record: ReplicaRecord) throws(LogError) -> LogReceipt {
    let receipt = try records.append([record.content])
    records.writeNow()
    return receipt
  }
}

/// A server's history of a scope in a log.
struct ServerLog {
  let records: RecordLog

  init(_ records: RecordLog) { self.records = records }

  /// Opens the log in a directory.
  init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.init(try FragmentLog(path, configuration: configuration).records)
  }

  func append(_ record: ScopeRecord) throws(LogError) -> LogReceipt {
    try records.append([record.content()])
  }

  func history() throws(LogError) -> ScopeHistory? {
    try ScopeHistory(LogLease(FragmentLog(records)).readNow())
  }

  func snapshot(_ history: ScopeHistory) async throws {
    try await LogLease(FragmentLog(records)).writeSnapshot(at: records.lastSequence) {
      history.content
    }
  }
}

extension ScopeLease {
  /// Appends a batch, and returns when it is durable.
  func append(_ records: [RecordContent], after expected: Int) async throws(StorageError) {
    _ = try await withCheckedContinuation { done in
      append(records, after: expected, outlivesProcess: false) { done.resume(returning: $0) }
    }.get()
  }
}
