import Foundation

/// A segment that has been made, and synced, under a temporary name.
struct NewSegment {
  let header: SegmentHeader
  let file: any LogFile
  /// The number of bytes of its header and lines.
  let size: Int

  /// Makes a segment. Blocks for as long as the disk takes.
  init(
    _ header: SegmentHeader, _ lines: [UInt8] = [], in directory: any LogDirectory
  ) throws(LogFileError) {
    let bytes = header.line + lines
    file = try directory.open(LogNames.newSegment, for: .creating)
    try file.writeAll(bytes, at: 0)
    try file.syncFully()
    self.header = header
    size = bytes.count
  }

  /// Renames the segment to its final name, and returns that. The name is not on stable storage yet.
  func giveName(in directory: any LogDirectory) throws(LogFileError) -> String {
    let name = LogNames.segment(header.first)
    try again { () throws(LogFileError) in
      try directory.rename(LogNames.newSegment, to: name)
    }
    return name
  }

  /// Syncs the directory, then opens a segment under its final name, which appears in errors.
  static func open(
    _ name: String, in directory: any LogDirectory
  ) throws(LogFileError) -> any LogFile {
    try again { () throws(LogFileError) in try directory.sync() }
    return try directory.open(name, for: .writing)
  }
}
