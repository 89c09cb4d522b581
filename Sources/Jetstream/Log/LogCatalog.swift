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
  init(_ directory: any LogDirectory) throws(LogError) {
    let names = try LogFiles(directory)
    snapshots = names.snapshots
    for first in names.segments { segments.append(try SegmentScan(directory, first: first).header) }
    for (before, segment) in zip(segments, segments.dropFirst()) {
      guard segment.log == before.log, segment.after?.first == before.first else {
        throw .damaged(
          LogDamage(
            "the segment before it is missing", file: LogNames.segment(segment.first), offset: 0,
            sequence: segment.after?.first ?? before.first))
      }
    }
    if segments.isEmpty, let last = snapshots.last {
      throw .damaged(
        LogDamage(
          "the segment behind it is missing", file: LogNames.snapshot(last), offset: 0,
          sequence: last + 1))
    }
    for name in names.others where try Self.isOurs(name, directory) {
      throw .damaged(
        LogDamage(
          "it is a file of a log, but has no name of one", file: name, offset: 0,
          sequence: segments.last?.first ?? 1))
    }
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

  /// Whether an unknown file begins like those of a log.
  private static func isOurs(
    _ name: String, _ directory: any LogDirectory
  ) throws(LogError) -> Bool {
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
}
