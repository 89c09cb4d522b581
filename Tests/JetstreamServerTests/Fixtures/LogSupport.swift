import Jetstream
import JetstreamServer
import Synchronization

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

/// A queue that can be held up.
final class GatedQueue: LogQueue {
  private let queue = DispatchLogQueue("gated")
  private let held = Mutex<[@Sendable () -> Void]?>(nil)

  func run(_ work: @escaping @Sendable () -> Void) {
    let isHeld = held.withLock { held in
      held?.append(work)
      return held != nil
    }
    if !isHeld { queue.run(work) }
  }

  func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    queue.run(after: delay, work)
  }

  /// True while work waits that was handed in since ``hold()``.
  var isHoldingWork: Bool { held.withLock { $0?.isEmpty == false } }

  func hold() { held.withLock { $0 = $0 ?? [] } }

  func letGo() {
    let work = held.withLock { held in
      defer { held = nil }
      return held ?? []
    }
    for piece in work { queue.run(piece) }
  }
}
