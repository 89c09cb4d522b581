import Foundation

/// Which files a log has, by name and header.
struct LogCatalog {
  /// The headers of the segments in order. Each begins behind the end of the one before it.
  var segments: [SegmentHeader] = []
  /// What the snapshots stand for, in order.
  var snapshots: [Int] = []

  /// The log that all files belong to.
  var log: UUID? { segments.first?.log }

  /// Reads the headers of all segments and checks that they belong together.
  ///
  /// - Throws: ``LogError/damaged(_:)`` where one does not, and for a file that has the name of none but
  ///   the content of one.
  init(_ directory: any LogDirectory, _ files: LogFiles) throws(LogError) {
    snapshots = files.snapshots
    for first in files.segments { segments.append(try SegmentScan(directory, first: first).header) }
    for (before, segment) in zip(segments, segments.dropFirst()) {
      if let gap = segment.gap(behind: before) { throw .damaged(gap) }
    }
    if let stray = files.strays(directory).first { throw .damaged(stray) }
  }

  /// How many bytes of a segment count; nil for the last one.
  func end(ofSegment position: Int) -> Int? {
    position + 1 < segments.count ? segments[position + 1].after?.bytes : nil
  }

  /// The newest snapshot that is whole, and what is wrong with newer ones.
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
  /// The damage between two segments of which this one should follow the other; nil if it does.
  func gap(behind before: SegmentHeader) -> LogDamage? {
    if log == before.log, after?.first == before.first { return nil }
    return LogDamage(
      "the segment before it is missing", file: LogNames.segment(first), offset: 0,
      sequence: after?.first ?? before.first)
  }
}

/// The names in the directory of a log, sorted.
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

  /// The damage of a log that has lost all its segments: a snapshot or the lock file shows that there was one. Nil if
  /// there is a segment, and if there is no log.
  ///
  /// - Parameter mark: what the lock file said before the names were listed.
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

  /// The files that have the content of one of a log, and no name of one.
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

  /// Returns true if a file of another name begins like those of a log.
  private static func isOurs(_ name: String, _ directory: any LogDirectory) -> Bool {
    let beginning = Array(#"{"seq":"#.utf8)
    var bytes: [UInt8] = []
    do throws(LogFileError) {
      let file = try directory.open(name, for: .reading)
      _ = try file.read(at: 0, beginning.count, appendingTo: &bytes)
    } catch {
      // A directory, or a file that is not for us.
      return false
    }
    return bytes == beginning
  }
}
