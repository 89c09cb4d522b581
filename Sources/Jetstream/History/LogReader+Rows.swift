import Foundation

/// The past of a scope from a log, without the app's model classes.
extension LogReader {
  /// Returns the content that the scope had when record `sequence` was the last one, or has at the end of the log.
  ///
  /// Reads logs of apps, servers and clients. Of a client's log, the content is what the client showed: what the server
  /// had confirmed, with the pending change sets in front of it. ``FragmentRows`` says what cannot be known without the
  /// classes. Reads the disk on the caller; cost: the newest snapshot until then, and the records after it.
  ///
  /// - Parameter sequence: the number of a record; 0 stands for the state before the first one.
  /// - Throws: ``LogError/notKept(sequence:kept:)`` if the log has not come that far, or does not keep that state any more;
  ///   ``LogError/damaged(_:)``, ``LogError/unreadable(sequence:problem:)`` or ``LogError/file(_:)``.
  package func rows(at sequence: Int? = nil) throws(LogError) -> FragmentRows {
    let end = sequence ?? .max
    let isOfClient = try self.isOfClient()
    let snapshot = try snapshot(upTo: end)
    // A client's log begins with nothing.
    let first = try firstSequence()
    if snapshot == nil, !isOfClient || first != 1 { throw try missingState(at: sequence) }
    let (rows, last) = try isOfClient ? clientRows(upTo: end) : rows(from: snapshot, upTo: end)
    if let sequence, last != sequence {
      throw .notKept(sequence: sequence, kept: try verify().records)
    }
    return rows
  }

  /// Returns the difference between the states at two records. The first may be the later one.
  ///
  /// - Throws: as ``rows(at:)`` does.
  package func difference(
    from: Int, to: Int? = nil
  ) throws(LogError) -> RowDifference {
    RowDifference(from: try rows(at: from), to: try rows(at: to))
  }

  private func rows(
    from snapshot: LogSnapshot?, upTo end: Int
  ) throws(LogError) -> (FragmentRows, last: Int) {
    var rows = FragmentRows()
    var last = snapshot?.sequence ?? 0
    rows.replace(with: try snapshot?.fragments() ?? [])
    var cursor = try read(from: last + 1)
    while last < end, let record = try cursor.next() {
      last = record.sequence
      if record.kind == .set { rows.apply(try ChangeSet(record).fragments) }
    }
    rows.settle()
    return (rows, last)
  }

  private func clientRows(upTo end: Int) throws(LogError) -> (FragmentRows, last: Int) {
    let (history, last) = try ClientLog.history(in: self, upTo: end)
    return (history.map { ClientRows($0).visible } ?? FragmentRows(), last)
  }
}
