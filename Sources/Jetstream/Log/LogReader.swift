/// Reads a log, also while another process writes it. A reader creates nothing, changes nothing and takes no lock, so it
/// needs no permission to write.
///
/// While another process writes, a reader sees whole records in their order, including some that are not durable yet.
/// Files that the other process removes meanwhile, because ``LogConfiguration/history`` does not keep them, may end reading
/// with ``LogError/notKept(sequence:kept:)`` or ``LogError/file(_:)``; read again then.
///
/// ```swift
/// let reader = try LogReader(path)
/// for (sequence, changeSet) in try reader.changeSets(in: 1...100) {
///   print(sequence, changeSet.author ?? "no author", changeSet.fragments.count)
/// }
/// ```
public struct LogReader: Sendable {
  let directory: any LogDirectory

  /// Makes a reader of the log in a directory.
  package init(_ directory: any LogDirectory) { self.directory = directory }

  /// Makes a reader of the log in the directory at `path`.
  ///
  /// - Throws: ``LogError/file(_:)``, with the path, if the directory does not exist or cannot be
  ///   read.
  public init(_ path: String) throws(LogError) {
    directory = try reading { () throws(LogFileError) in try POSIXLogDirectory(existing: path) }
  }

  /// Returns the sequence number of the first record that is kept; nil if there is no log yet.
  ///
  /// - Throws: ``LogError/damaged(_:)`` if a snapshot or the file `lock` shows that there was a
  ///   log, but all segments are missing; ``LogError/file(_:)``.
  public func firstSequence() throws(LogError) -> Int? {
    let mark = LogMark(directory)
    let files = try LogFiles(directory)
    if let damage = files.missingSegments(mark) { throw .damaged(damage) }
    return files.segments.first
  }

  /// Returns a cursor that reads from record `sequence` on, or from the first kept record if it is
  /// nil.
  ///
  /// The cursor returns every complete record, also those that are not on stable storage yet.
  package func read(from sequence: Int? = nil) throws(LogError) -> LogCursor {
    if let sequence { return LogCursor(directory, from: sequence) }
    return LogCursor(directory, from: try firstSequence() ?? 1)
  }

  /// Returns the newest intact snapshot whose sequence number is at most `sequence`; nil if there
  /// is none. Skips damaged ones.
  package func snapshot(upTo sequence: Int = .max) throws(LogError) -> LogSnapshot? {
    try newest(upTo: sequence) { (file: inout SnapshotFile) throws(LogError) -> LogSnapshot in
      try file.content()
    }
  }

  /// Returns the sequence number of the newest intact snapshot, and true if its state has a record that is looked for;
  /// nil if there is no snapshot. It is read up to the first such record, and taken for intact then.
  package func newestSnapshot(
    with isWanted: (LogRecord) -> Bool
  ) throws(LogError) -> (sequence: Int, isFound: Bool)? {
    try newest(upTo: .max) {
      (file: inout SnapshotFile) throws(LogError) -> (sequence: Int, isFound: Bool) in
      while let (isState, record) = try file.next() {
        if isState, isWanted(record) { return (file.header.sequence, true) }
      }
      return (file.header.sequence, false)
    }
  }

  /// Reads the newest snapshot for which `read` finds no damage, among those up to a sequence number.
  private func newest<Content>(
    upTo sequence: Int, _ read: (inout SnapshotFile) throws(LogError) -> Content
  ) throws(LogError) -> Content? {
    let names = try LogFiles(directory)
    let log = try names.segments.last.map { first throws(LogError) in
      try SegmentScan(directory, first: first).header.log
    }
    for number in names.snapshots.reversed() where number <= sequence {
      do throws(LogError) {
        var file = try SnapshotFile(directory, number, of: log)
        return try read(&file)
      } catch {
        guard case .damaged = error else { throw error }
      }
    }
    return nil
  }
}
