import Foundation

/// The findings of opening a log.
public struct LogOpening: Sendable, Hashable {
  /// The number of bytes at the end that belonged to incomplete records and were cut off. A process
  /// or machine stopped while it wrote them.
  package internal(set) var tornBytes = 0
  /// The sequence number of the newest intact snapshot; nil if there is none.
  package internal(set) var snapshot: Int?
  /// The number of records after that snapshot.
  package internal(set) var tailCount = 0
  /// Newer snapshots that are damaged. Nothing is lost, since all records after ``snapshot`` are
  /// there.
  package internal(set) var damagedSnapshots: [LogDamage] = []
  /// Records or snapshots that are missing although they were known to be durable. Empty unless
  /// ``LogConfiguration/acceptsLoss`` is set; otherwise opening throws.
  public internal(set) var losses: [LogDamage] = []
  /// True if records may be missing at the end that counted as durable and were not synced, as with
  /// ``LogDurability/none``: the machine has been started again since, or that is not known. What is
  /// left is whole.
  package internal(set) var mayHaveLostEnd = false
  /// True if opening created the log.
  package internal(set) var isNew = false
  /// True if the log holds nothing yet, neither a state nor a change set: an app may begin with content of its own.
  public internal(set) var isEmpty = false
}

/// Opens a log: takes the lock, finds the end, cuts off a torn tail.
struct OpenedLog {
  let lockFile: any LogFile
  private(set) var writer: LogWriter
  private(set) var report = LogOpening()
  /// The oldest snapshot that the log has or should have.
  private(set) var oldestSnapshot: Int?
  /// The current boot of the machine; one that no machine has if it is not known.
  let boot: UUID
  /// True if the log goes on although records may be missing at its end.
  private let isEndUncertain: Bool
  /// True if the log was left with records that were not synced, which are all there, and are synced now.
  let isBootForgotten: Bool

  /// - Parameter afterLoss: a record that is appended if records or snapshots are missing, or may be, before the log
  ///   forgets that.
  init(
    _ directory: any LogDirectory, _ configuration: LogConfiguration, afterLoss: RecordContent?
  ) throws(LogError) {
    let lock = try reading { () throws(LogFileError) in try directory.lock(LogNames.lock) }
    guard let lock else { throw .inUse(path: directory.name) }
    lockFile = lock
    boot = directory.boot ?? UUID()
    var isOpen = false
    defer { if !isOpen { lock.close() } }
    let lockIdentity = try reading { () throws(LogFileError) in try lock.identity() }
    let mark = try LogMark.read(in: directory)
    let files = try LogFiles(directory)
    if let loss = files.missingSegments(mark) {
      // A log cannot continue from a snapshot alone.
      guard configuration.acceptsLoss, files.snapshots.isEmpty else { throw .damaged(loss) }
      report.losses.append(loss)
    }
    let catalog = try LogCatalog(directory, files)
    oldestSnapshot = mark?.snapshot
    if let header = catalog.segments.last {
      let (snapshot, damaged) = try catalog.newestSnapshot(directory)
      report.snapshot = snapshot
      report.damagedSnapshots = damaged
      let end = try Self.findEnd(directory, catalog, base: snapshot ?? 0, damaged)
      let first = catalog.segments[0].first
      // Without a readable mark, the oldest existing snapshot counts as the oldest. The same
      // applies after a crash before the first snapshot was noted, but not to a log that continues
      // without an intact snapshot.
      if mark == nil || snapshot != nil { oldestSnapshot = oldestSnapshot ?? files.snapshots.first }
      // The initial state is in snapshot 0 and in no record. Without that snapshot and an intact
      // later one, the state is lost. A damaged later snapshot is no loss, since the records
      // replace it.
      if snapshot == nil, oldestSnapshot == 0, first == 1 {
        report.losses.append(
          damaged.last { $0.file == LogNames.snapshot(0) }
            ?? LogDamage(missingSnapshot: 0, readable: end.last > 0 ? 1...end.last : nil))
        oldestSnapshot = files.snapshots.first { $0 > 0 }
      }
      let loss = mark?.missingEnd(
        behind: end.last, inSegment: header.first, at: end.offset, first: first)
      if let loss { report.losses.append(loss) }
      if let loss = report.losses.first, !configuration.acceptsLoss { throw .damaged(loss) }
      report.tornBytes = end.tornBytes
      report.tailCount = end.last - (snapshot ?? 0)
      report.isEmpty = snapshot == nil && end.last == 0
      // Without a mark that can be read, it is not known that all was synced.
      let mayHaveLostEnd =
        mark?.mayHaveLostEnd(behind: end.last, in: boot) ?? (configuration.durability == .none)
      report.mayHaveLostEnd = mayHaveLostEnd && !report.isEmpty
      let isDurable =
        report.losses.isEmpty && end.tornBytes == 0
        && mark?.wasClosed(behind: end.last, oldestSnapshot: files.snapshots.first) == true
      let start = isDurable ? nil : try Self.offset(behind: end.synced, directory, header)
      writer = try reading { () throws(LogFileError) in
        try Self.resume(
          directory, header, end, rewritingFrom: start, configuration, lock: lockIdentity)
      }
    } else {
      report.isNew = true
      report.isEmpty = true
      // The mark may name a snapshot that is lost with everything else.
      oldestSnapshot = nil
      writer = try reading { () throws(LogFileError) in
        try LogWriter(
          new: UUID(), directory, segmentBytes: configuration.segmentBytes, lock: lockIdentity)
      }
    }
    isEndUncertain = report.mayHaveLostEnd && afterLoss == nil
    isBootForgotten = mark?.unsyncedBoot != nil && !report.mayHaveLostEnd
    if !report.losses.isEmpty || (report.mayHaveLostEnd && !isEndUncertain) {
      // In this order: if the process ends in between, the next opening finds the losses again.
      if let afterLoss { try append(afterLoss) }
      // The lock file was removed meanwhile.
      guard writer.isSynced else { throw .moved(path: directory.name) }
      try forgetLosses()
    }
    // Many logs are only read after this.
    writer.rest()
    isOpen = true
  }

  /// The mark to write to the lock file of an opened log.
  var mark: LogMark {
    LogMark(
      isOpen: true, durable: writer.last, snapshot: oldestSnapshot,
      unsyncedBoot: isEndUncertain ? UUID() : nil)
  }

  /// Appends a record and syncs it.
  private mutating func append(_ record: RecordContent) throws(LogError) {
    let sequence = writer.last + 1
    var line: [UInt8] = []
    LogLine.append(
      sequence: sequence, kind: record.kind, rest: 0, synced: writer.synced,
      payload: record.payload, to: &line)
    writer.take(&line, last: sequence)
    try reading { () throws(LogFileError) in
      try writer.write()
      guard let sync = writer.beginSync() else { return }
      try sync.perform()
      writer.endSync(sync)
    }
    report.tailCount += 1
  }

  /// Replaces a mark that knows more records than the log has. The new mark is synced, so that the
  /// old one cannot return after a power failure, when the log has continued and is intact.
  private func forgetLosses() throws(LogError) {
    try reading { () throws(LogFileError) in
      try lockFile.write(mark)
      try lockFile.syncFully()
    }
  }

  /// The end of the last segment.
  private struct End {
    var last: Int
    var offset: Int
    var tornBytes: Int
    /// The last record that is known to be on stable storage.
    var synced: Int
  }

  /// Reads all records behind the snapshot.
  private static func findEnd(
    _ directory: any LogDirectory, _ catalog: LogCatalog, base: Int, _ damaged: [LogDamage]
  ) throws(LogError) -> End {
    let segments = catalog.segments
    guard let start = segments.lastIndex(where: { $0.first <= base + 1 }) else {
      // Either the snapshot that covers the missing records is damaged, or it is missing as well.
      throw .damaged(
        damaged.first
          ?? LogDamage(
            "records before it are missing, and no snapshot stands for them",
            file: LogNames.segment(segments[0].first), offset: 0, sequence: base + 1))
    }
    var last = base
    var offset = 0
    var tornBytes = 0
    var synced = 0
    for position in start..<segments.count {
      let end = catalog.end(ofSegment: position)
      var scan = try SegmentScan(directory, first: segments[position].first, end: end)
      do throws(LogError) {
        while try scan.batch() != nil {}
      } catch .damaged(var damage) {
        damage.readable =
          segments[0].first < scan.next ? segments[0].first...(scan.next - 1) : nil
        throw .damaged(damage)
      }
      let following = position + 1 < segments.count ? segments[position + 1].first : scan.next
      let whole = position + 1 == segments.count ? scan.next > base : true
      guard scan.next == following, whole else {
        throw .damaged(
          LogDamage(
            "the records behind it are missing", file: scan.name, offset: scan.offset,
            sequence: scan.next))
      }
      last = scan.next - 1
      offset = scan.offset
      tornBytes = scan.tornBytes
      synced = max(scan.synced, scan.header.first - 1)
    }
    return End(last: last, offset: offset, tornBytes: tornBytes, synced: synced)
  }

  /// Returns the offset in the last segment behind which records are not known to be on stable
  /// storage.
  private static func offset(
    behind synced: Int, _ directory: any LogDirectory, _ header: SegmentHeader
  ) throws(LogError) -> Int {
    var scan = try SegmentScan(directory, first: header.first)
    while scan.next <= synced, try scan.batch() != nil {}
    return scan.offset
  }

  /// Cuts off the torn tail, removes temporary files, and makes sure that all records found are on
  /// stable storage.
  ///
  /// The records of a killed process may be only in the system's cache. If a sync had failed, the
  /// system may even regard them as written. They are therefore written again, byte for byte, and
  /// synced.
  ///
  /// - Parameter start: The offset from which the records are written again; nil if the log is as it
  ///   was closed. Then nothing needs a sync:
  ///   - The records were synced before the mark said that the log is closed. The mark itself is not
  ///     synced, so after a power failure it may be that of an earlier closing; but then all that is
  ///     found was read from stable storage, and after the end of a process the mark is the last one.
  ///   - The name of the last segment was synced when the segment was begun: a log is not closed
  ///     while that, or anything else, has failed.
  ///   - The name of the oldest snapshot was synced before the mark named it. That of a later one
  ///     may not have been, if making the snapshot has failed. A power failure then brings back the
  ///     log without it, but with the records before it, which are not removed before such a sync.
  ///   - A removal that was not synced brings back the oldest file, which leaves no gap.
  ///   - A temporary file that comes back is removed by the next opening.
  private static func resume(
    _ directory: any LogDirectory, _ header: SegmentHeader, _ end: End,
    rewritingFrom start: Int?, _ configuration: LogConfiguration, lock: LogFileIdentity?
  ) throws(LogFileError) -> LogWriter {
    for name in [LogNames.newSegment, LogNames.newSnapshot] {
      do throws(LogFileError) {
        try directory.remove(name)
      } catch {
        guard error.code == POSIXLogDirectory.notFound else { throw error }
      }
    }
    let file = try directory.open(LogNames.segment(header.first), for: .writing)
    if end.tornBytes > 0 {
      try again { () throws(LogFileError) in try file.truncate(to: end.offset) }
    }
    if let start, start < end.offset {
      var lines: [UInt8] = []
      _ = try file.read(at: start, end.offset - start, appendingTo: &lines)
      try file.writeAll(lines, at: start)
    }
    if start != nil {
      try file.syncFully()
      try again { () throws(LogFileError) in try directory.sync() }
    }
    return LogWriter(
      directory, file, header, bytes: end.offset, last: end.last,
      segmentBytes: configuration.segmentBytes, lock: lock)
  }
}
