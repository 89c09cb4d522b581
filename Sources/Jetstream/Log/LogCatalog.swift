import Foundation

/// The segments and snapshots of a log, by file name and header.
struct LogCatalog {
  /// The headers of the segments, in order. Each names the end of the segment before it.
  var segments: [SegmentHeader] = []
  /// The sequence numbers of the snapshots, in order.
  var snapshots: [Int] = []

  /// The identity of the log that all files belong to; nil if there is no segment.
  var log: UUID? { segments.first?.log }

  /// Reads the headers of all segments and checks that each follows the one before it.
  ///
  /// - Throws: ``LogError/damaged(_:)`` if a segment does not follow, or if a file with another
  ///   name has the content of a segment or snapshot.
  init(_ directory: any LogDirectory, _ files: LogFiles) throws(LogError) {
    snapshots = files.snapshots
    for first in files.segments { segments.append(try SegmentScan(directory, first: first).header) }
    for (before, segment) in zip(segments, segments.dropFirst()) {
      if let gap = segment.gap(behind: before) { throw .damaged(gap) }
    }
    if let stray = files.strays(directory).first { throw .damaged(stray) }
  }

  /// Returns the number of valid bytes of a segment; nil for the last one, all of which is valid.
  func end(ofSegment position: Int) -> Int? {
    position + 1 < segments.count ? segments[position + 1].after?.bytes : nil
  }

  /// Returns the newest intact snapshot, and the damage of newer ones.
  func newestSnapshot(
    _ directory: any LogDirectory
  ) throws(LogError) -> (sequence: Int?, damaged: [LogDamage]) {
    var damaged: [LogDamage] = []
    for sequence in snapshots.reversed() {
      do throws(LogError) {
        var file = try SnapshotFile(directory, sequence, of: log)
        try file.check()
        return (sequence, damaged)
      } catch {
        guard case .damaged(let damage) = error else { throw error }
        damaged.append(damage)
      }
    }
    return (nil, damaged)
  }
}

extension SegmentHeader {
  /// Returns the damage if this segment does not follow `before`; nil if it does.
  func gap(behind before: SegmentHeader) -> LogDamage? {
    if log == before.log, after?.first == before.first { return nil }
    return LogDamage(
      "the segment before it is missing", file: LogNames.segment(first), offset: 0,
      sequence: after?.first ?? before.first)
  }
}

/// The file names in the directory of a log, sorted.
struct LogFiles {
  var segments: [Int] = []
  var snapshots: [Int] = []
  var others: [String] = []

  init(_ directory: any LogDirectory) throws(LogError) {
    for name in try reading({ () throws(LogFileError) in try directory.list() }) {
      if let first = LogNames.first(ofSegment: name) {
        segments.append(first)
      } else if let sequence = LogNames.sequence(ofSnapshot: name) {
        snapshots.append(sequence)
      } else if name != LogNames.lock, !name.hasSuffix(".tmp") {
        others.append(name)
      }
    }
    segments.sort()
    snapshots.sort()
    others.sort()
  }

  /// Returns the damage of a log that has lost all its segments, although a snapshot or the lock
  /// file shows that it had some. Nil if there is a segment, or if there never was a log.
  ///
  /// - Parameter mark: The content of the lock file, read before the names were listed.
  func missingSegments(_ mark: LogMark?) -> LogDamage? {
    guard segments.isEmpty else { return nil }
    if let last = snapshots.last {
      return LogDamage(
        "the segment behind it is missing", file: LogNames.snapshot(last), offset: 0,
        sequence: last + 1)
    }
    guard let mark else { return nil }
    let known = mark.synced == 0 ? "a log was begun" : mark.knownRecords
    return LogDamage(
      "\(known), but no segment is there", file: LogNames.segment(1), offset: 0, sequence: 1)
  }

  /// Returns the files that have the content of a segment or snapshot under any other name.
  func strays(_ directory: any LogDirectory) -> [LogDamage] {
    var strays: [LogDamage] = []
    for name in others where Self.isOurs(name, directory) {
      strays.append(
        LogDamage(
          "it is a file of a log, but has no name of one", file: name, offset: 0,
          sequence: segments.last ?? 1))
    }
    return strays
  }

  /// Returns true if the content of the file begins like a segment or snapshot.
  private static func isOurs(_ name: String, _ directory: any LogDirectory) -> Bool {
    let beginning = Array(#"{"seq":"#.utf8)
    var bytes: [UInt8] = []
    do throws(LogFileError) {
      let file = try directory.open(name, for: .reading)
      _ = try file.read(at: 0, beginning.count, appendingTo: &bytes)
    } catch {
      // A directory, or a file that cannot be read.
      return false
    }
    return bytes == beginning
  }
}
