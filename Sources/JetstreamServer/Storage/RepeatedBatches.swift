import Jetstream
import Synchronization

/// Batches that were appended to a log again, and are compared with the records that it has.
///
/// After a failure, a writer appends everything again that is not durable, which may be many thousand batches. They become
/// durable together, and those that have come by the time at which the log is read are compared in one reading: one for
/// each batch, from the beginning of the segment, would take time in proportion to the square of their number.
final class RepeatedBatches: Sendable {
  private struct Batch {
    let records: [RecordContent]
    /// The sequence number of the record before them.
    let expected: Int
    /// The sequence number of the last durable record.
    let durable: Int
    let done: @Sendable (Result<Int, StorageError>) -> Void
  }

  private let log: RecordLog
  private let waiting = Mutex<[Batch]>([])

  init(_ log: RecordLog) { self.log = log }

  /// Calls `done` with the sequence number of the last durable record if the records behind one are a batch; otherwise with
  /// the conflict.
  func check(
    _ records: [RecordContent], after expected: Int, durable: Int,
    then done: @escaping @Sendable (Result<Int, StorageError>) -> Void
  ) {
    let isFirst = waiting.withLock { waiting in
      waiting.append(
        Batch(records: records, expected: expected, durable: durable, done: done))
      return waiting.count == 1
    }
    if isFirst { log.readLater { [self] in checkAll() } }
  }

  private func checkAll() {
    let batches = waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    // Continues behind the batch before, as long as they are in order.
    var cursor: LogCursor?
    for batch in batches {
      if cursor.map({ $0.sequence > batch.expected + 1 }) ?? true {
        cursor = log.read(from: batch.expected + 1)
      }
      batch.done(compare(batch, &cursor))
    }
  }

  /// Compares a batch with the records that a cursor comes to, which is nil afterwards if it cannot go on.
  private func compare(_ batch: Batch, _ cursor: inout LogCursor?) -> Result<Int, StorageError> {
    do throws(LogError) {
      while let sequence = cursor?.sequence, sequence <= batch.expected,
        try cursor?.next() != nil
      {}
      for content in batch.records {
        guard let record = try cursor?.next(), record.kind == content.kind,
          record.payload == content.payload
        else {
          return .failure(.conflict(expected: batch.expected, last: log.lastSequence))
        }
      }
      return .success(batch.durable)
    } catch {
      cursor = nil
      // A snapshot stands for them, and only the holder of the lease writes one.
      if case .notKept = error { return .success(batch.durable) }
      return .failure(StorageError(error))
    }
  }
}
