/// Appending behind a known record, for a writer that may have to repeat what it has appended.
extension RecordLog {
  /// The outcome of appending records behind a known one.
  package enum ConditionalAppend {
    /// The records were appended.
    case appended(LogReceipt)
    /// As many records are there behind the known one, from an earlier call.
    case repeated(LogReceipt)
    /// Other records are there; the sequence number of the last one.
    case conflict(last: Int)
  }

  /// Appends several records as one batch, if `expected` is the sequence number of the last record.
  ///
  /// - Parameters:
  ///   - outlivingProcess: true to write the records before this returns, as ``writeNow()`` does.
  ///   - ignoringBacklog: true to take the records however many bytes wait to be written.
  /// - Throws: as ``append(_:_:)`` does.
  package func append(
    _ records: [RecordContent], after expected: Int, outlivingProcess: Bool,
    ignoringBacklog: Bool = false
  ) throws(LogError) -> ConditionalAppend {
    let receipt = try append(records, after: expected, ignoringBacklog: ignoringBacklog)
    if let receipt {
      if outlivingProcess { writeNow() }
      return .appended(receipt)
    }
    let (last, end) = (lastSequence, expected + records.count)
    return end <= last ? .repeated(LogReceipt(log: self, sequence: end)) : .conflict(last: last)
  }

  /// Runs `work`, which reads the log, on a queue of the log that no append waits for.
  package func readLater(_ work: @escaping @Sendable () -> Void) { snapshotQueue.run(work) }
}
