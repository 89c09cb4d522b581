import Foundation

/// What opening a log has found.
public struct LogOpening: Sendable, Hashable {
  /// How many bytes at the end belonged to records that were incomplete, and were cut off: a process or a
  /// machine stopped while they were written.
  package internal(set) var tornBytes = 0
  /// What the newest whole snapshot stands for; nil if there is none.
  package internal(set) var snapshot: Int?
  /// How many records follow it.
  package internal(set) var tailCount = 0
  /// Newer snapshots that are damaged. Nothing is missing, since the records are all there.
  package internal(set) var damagedSnapshots: [LogDamage] = []
  /// What is missing although it was known to be durable. Empty unless ``LogConfiguration/acceptsLoss`` is set,
  /// since opening fails otherwise.
  public internal(set) var losses: [LogDamage] = []
  /// Whether the log was made just now.
  public internal(set) var isNew = false
}

/// Opens a log: takes the lock, finds the end, cuts off a torn tail.
struct OpenedLog {
  let lockFile: any LogFile
  private(set) var writer: LogWriter
  private(set) var report = LogOpening()
  /// The oldest snapshot that the log has, or should have.
  private(set) var oldestSnapshot: Int?

  init(_ directory: any LogDirectory, _ configuration: LogConfiguration) throws(LogError) {
    let lock = try reading { () throws(LogFileError) in try directory.lock(LogNames.lock) }
    guard let lock else { throw .inUse(path: directory.name) }
    lockFile = lock
    var isOpen = false
    defer { if !isOpen { lock.close() } }
    let mark = LogMark(directory)
    let files = try LogFiles(directory)
    if let loss = files.missingSegments(mark) {
      // A snapshot is no log that could go on.
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
      // Without a mark that can be read, the oldest file tells. It does as well when a crash came before the first
      // snapshot was noted, but not when a log goes on without one that is damaged.
      if mark == nil || snapshot != nil { oldestSnapshot = oldestSnapshot ?? files.snapshots.first }
      // The state from which all departs is in no record. A later snapshot stands for it, and the records stand for
      // a later snapshot.
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
      // A log that was closed in order is on stable storage as a whole.
      let start =
        mark?.isOpen == false ? nil : try Self.offset(behind: end.synced, directory, header)
      writer = try reading { () throws(LogFileError) in
        try Self.resume(directory, header, end, rewritingFrom: start, configuration)
      }
    } else {
      report.isNew = true
      writer = try reading { () throws(LogFileError) in
        try LogWriter(new: UUID(), directory, segmentBytes: configuration.segmentBytes)
      }
    }
    if !report.losses.isEmpty { try forgetLosses() }
    isOpen = true
  }

  /// What the lock file says of a log that was opened.
  var mark: LogMark { LogMark(isOpen: true, durable: writer.last, snapshot: oldestSnapshot) }

  /// Replaces the mark that knows of more than is there. It must not come back with a power cut, when the log has gone
  /// on and is whole: so this one is synced.
  private func forgetLosses() throws(LogError) {
    try reading { () throws(LogFileError) in
      try lockFile.writeAll(mark.line, at: 0)
      try lockFile.syncFully()
    }
  }

  /// Where the last segment ends.
  private struct End {
    var last: Int
    var offset: Int
    var tornBytes: Int
    /// The last record that is known to be on stable storage.
    var synced: Int
  }

  /// Reads everything behind the snapshot.
  private static func findEnd(
    _ directory: any LogDirectory, _ catalog: LogCatalog, base: Int, _ damaged: [LogDamage]
  ) throws(LogError) -> End {
    let segments = catalog.segments
    guard let start = segments.lastIndex(where: { $0.first <= base + 1 }) else {
      // Either the snapshot is damaged that stands for what is missing, or it is missing itself.
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

  /// Where in the last segment the records begin that are not known to be on stable storage.
  private static func offset(
    behind synced: Int, _ directory: any LogDirectory, _ header: SegmentHeader
  ) throws(LogError) -> Int {
    var scan = try SegmentScan(directory, first: header.first)
    while scan.next <= synced, try scan.batch() != nil {}
    return scan.offset
  }

  /// Cuts off the torn tail, clears up, and makes sure that what was found is on stable storage.
  ///
  /// What a process that was killed has left may be in the memory of the system only. If a sync had
  /// failed, the system even takes it for written: so it is written again, byte for byte.
  private static func resume(
    _ directory: any LogDirectory, _ header: SegmentHeader, _ end: End,
    rewritingFrom start: Int?, _ configuration: LogConfiguration
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
    try file.syncFully()
    try again { () throws(LogFileError) in try directory.sync() }
    return LogWriter(
      directory, file, header, bytes: end.offset, last: end.last,
      segmentBytes: configuration.segmentBytes)
  }
}
