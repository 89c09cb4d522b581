extension LogReader {
  /// Reads all segments and snapshots and reports all damage.
  ///
  /// Cost: one pass over all files. Records that a process is writing at the same time may look
  /// like a torn tail.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/newerVersion(file:version:)`` if a file cannot be read.
  package func verify() throws(LogError) -> LogVerification {
    var check = try LogCheck(directory)
    try check.run()
    return check.result
  }
}

/// Checks all files of a log. Unlike opening, it does not stop at the first damage.
private struct LogCheck {
  let directory: any LogDirectory
  /// The mark, read before the files: every record that it knows must be in them.
  let mark: LogMark?
  let files: LogFiles
  /// The headers of the segments; nil for a damaged one.
  var headers: [SegmentHeader?] = []
  var result = LogVerification()

  init(_ directory: any LogDirectory) throws(LogError) {
    self.directory = directory
    mark = LogMark(directory)
    files = try LogFiles(directory)
    result.segments = files.segments.count
  }

  mutating func run() throws(LogError) {
    try readHeaders()
    try checkSnapshots()
    for position in headers.indices { try checkSegment(position) }
    if let first = result.readable.first, first.lowerBound == files.segments.first {
      result.records = first
    }
    result.damage += files.strays(directory)
    if let missing = try LogMark.missingSnapshot(directory) {
      result.damage.append(LogDamage(missingSnapshot: missing, readable: result.records))
    } else {
      checkCoverage()
    }
  }

  private mutating func readHeaders() throws(LogError) {
    for first in files.segments {
      do throws(LogError) {
        headers.append(try SegmentScan(directory, first: first).header)
      } catch .damaged(let damage) {
        headers.append(nil)
        result.damage.append(damage)
      }
    }
    for case (let before?, let segment?) in zip(headers, headers.dropFirst()) {
      if let gap = segment.gap(behind: before) { result.damage.append(gap) }
    }
  }

  private mutating func checkSnapshots() throws(LogError) {
    if let damage = files.missingSegments(mark) { result.damage.append(damage) }
    let log = headers.lazy.compactMap { $0?.log }.first
    for sequence in files.snapshots {
      do throws(LogError) {
        var file = try SnapshotFile(directory, sequence, of: log)
        try file.check()
        result.snapshots.append(sequence)
      } catch .damaged(let damage) {
        result.damage.append(damage)
      }
    }
  }

  // MARK: Segments

  private mutating func checkSegment(_ position: Int) throws(LogError) {
    guard let header = headers[position] else { return }
    let isLast = position + 1 == headers.count
    // If the next header is damaged, or a segment between the two is missing, the valid length of
    // this segment is unknown: it is read for as long as valid lines follow.
    let next = isLast ? nil : headers[position + 1]
    let end = next?.gap(behind: header) == nil ? next?.after?.bytes : nil
    var scan = try SegmentScan(directory, first: header.first, end: end)
    var damage: LogDamage?
    do throws(LogError) {
      while try scan.batch() != nil {}
    } catch .damaged(let found) {
      damage = found
    }
    let following = isLast ? scan.next : files.segments[position + 1]
    // Bytes behind the end, wherever that is, are ignored.
    if !isLast, end == nil, scan.next >= following { damage = nil }
    addReadable(header.first, to: min(scan.next, following))
    if isLast { result.tornBytes = scan.tornBytes }
    if let end {
      let name = scan.name
      let size = try reading { () throws(LogFileError) in
        try directory.open(name, for: .reading).size()
      }
      result.abandonedBytes += max(size - end, 0)
    }
    // A missing segment has already been reported.
    if damage == nil, scan.next < following || (end != nil && scan.next > following),
      next?.gap(behind: header) == nil
    {
      damage = LogDamage(
        "the records between it and the next segment are missing", file: scan.name,
        offset: scan.offset, sequence: scan.next)
    }
    if isLast, damage == nil {
      damage = mark?.missingEnd(
        behind: scan.next - 1, inSegment: header.first, at: scan.offset, first: header.first)
    }
    guard var damage else { return }
    if let last = result.readable.last, last.upperBound == scan.next - 1 { damage.readable = last }
    result.damage.append(damage)
  }

  /// Adds the records from `first` up to but not including `end` to the readable ones.
  private mutating func addReadable(_ first: Int, to end: Int) {
    guard first < end else { return }
    if let last = result.readable.last, last.upperBound == first - 1 {
      result.readable[result.readable.count - 1] = last.lowerBound...(end - 1)
    } else {
      result.readable.append(first...(end - 1))
    }
  }

  /// Checks that a snapshot covers the records before the first segment, and that no snapshot is
  /// newer than the last record.
  private mutating func checkCoverage() {
    guard let first = files.segments.first else { return }
    let base = result.snapshots.last ?? 0
    if base < first - 1 {
      result.damage.append(
        LogDamage(
          "records before it are missing, and no snapshot stands for them",
          file: LogNames.segment(first), offset: 0, sequence: base + 1))
    }
    if result.damage.isEmpty, base > result.records?.upperBound ?? (first - 1) {
      result.damage.append(
        LogDamage(
          "the records that it stands for are missing at the end of the log",
          file: LogNames.snapshot(base), offset: 0,
          sequence: (result.records?.upperBound ?? (first - 1)) + 1))
    }
  }
}
