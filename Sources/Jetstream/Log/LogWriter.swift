import Foundation

/// Writes the segments of a log. Everything that is not on stable storage yet is in memory as well, so
/// that it can be written again.
struct LogWriter {
  private let directory: any LogDirectory
  private let segmentBytes: Int
  /// The header of the segment that is written to.
  private(set) var header: SegmentHeader
  private var file: any LogFile
  /// How many bytes of the segment are on stable storage.
  private var syncedBytes: Int
  /// The lines behind them.
  private var unsynced: [UInt8] = []
  /// How many bytes of those have been written.
  private var writtenBytes = 0
  /// The last record that is on stable storage.
  private(set) var synced: Int
  /// The last record that has been written.
  private(set) var written: Int
  /// The last record that was handed over.
  private(set) var last: Int
  /// True after a sync has failed: nobody knows what became of what was written since the last one.
  private var isUncertain = false
  /// True while another segment has to begin before anything is written: an attempt to make it may have
  /// got as far as its name.
  private var isRolling = false

  /// Goes on in a segment of which `bytes` bytes, up to record `last`, are on stable storage.
  init(
    _ directory: any LogDirectory, _ file: any LogFile, _ header: SegmentHeader, bytes: Int,
    last: Int, segmentBytes: Int
  ) {
    self.directory = directory
    self.file = file
    self.header = header
    self.segmentBytes = segmentBytes
    syncedBytes = bytes
    synced = last
    written = last
    self.last = last
  }

  /// Makes the first segment of a new log.
  init(new log: UUID, _ directory: any LogDirectory, segmentBytes: Int) throws(LogFileError) {
    let header = SegmentHeader(log: log, first: 1, after: nil)
    let (file, size) = try Self.makeSegment(header, [], in: directory)
    self.init(directory, file, header, bytes: size, last: 0, segmentBytes: segmentBytes)
  }

  /// Whether everything that was handed over is on stable storage.
  var isSynced: Bool { synced == last }

  /// How many bytes wait to be written, or to be written again.
  var waitingBytes: Int { isUncertain ? unsynced.count : unsynced.count - writtenBytes }

  /// The most that is written without a sync, whoever asks for one: it is held in memory until then.
  private static let maxUnsynced = 16 << 20

  /// Takes over lines that end with record `last`, and leaves room for others behind.
  mutating func take(_ lines: inout [UInt8], last: Int) {
    self.last = max(last, self.last)
    if lines.isEmpty { return }
    if unsynced.isEmpty {
      swap(&unsynced, &lines)
    } else {
      unsynced.append(contentsOf: lines)
    }
    lines.removeAll(keepingCapacity: lines.capacity <= 1 << 20)
  }

  /// Takes over lines that end with record `last`, unless it has.
  mutating func take(_ lines: [UInt8], last: Int) {
    guard last > self.last else { return }
    var lines = lines
    take(&lines, last: last)
  }

  /// Writes what has not been written. A part that an earlier call has written is written over: it is
  /// the same.
  mutating func write() throws(LogFileError) {
    if isUncertain { return try writeAgain() }
    guard writtenBytes < unsynced.count else { return }
    if isRolling || syncedBytes + writtenBytes >= segmentBytes { try roll() }
    if writtenBytes >= Self.maxUnsynced { try sync() }
    let written = writtenBytes
    let offset = syncedBytes + written
    try unsynced.withUnsafeBufferPointer { [file] lines throws(LogFileError) in
      try file.writeAll(
        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: lines[written...])), at: offset)
    }
    writtenBytes = unsynced.count
    self.written = last
  }

  /// Brings what was written to stable storage.
  mutating func sync() throws(LogFileError) {
    if isUncertain { return try writeAgain() }
    guard writtenBytes > 0 else { return }
    do throws(LogFileError) {
      try file.syncFully()
    } catch {
      isUncertain = true
      throw error
    }
    if writtenBytes == unsynced.count {
      unsynced.removeAll(keepingCapacity: unsynced.capacity <= 1 << 20)
    } else {
      unsynced.removeFirst(writtenBytes)
    }
    syncedBytes += writtenBytes
    writtenBytes = 0
    synced = written
  }

  /// Begins another segment, unless this one is empty.
  mutating func roll() throws(LogFileError) {
    try sync()
    guard synced >= header.first else { return }
    isRolling = true
    let after = SegmentHeader.Predecessor(first: header.first, bytes: syncedBytes)
    try use(SegmentHeader(log: header.log, first: synced + 1, after: after), [])
  }

  /// Writes all that is not known to be on stable storage to a segment of its own, which says how much
  /// of this one counts.
  private mutating func writeAgain() throws(LogFileError) {
    let isEmpty = synced < header.first
    let after = SegmentHeader.Predecessor(first: header.first, bytes: syncedBytes)
    let (old, end) = (file, syncedBytes)
    try use(
      SegmentHeader(log: header.log, first: synced + 1, after: isEmpty ? header.after : after),
      unsynced)
    isUncertain = false
    unsynced = []
    writtenBytes = 0
    synced = last
    written = last
    // Only to save space.
    if !isEmpty { try? old.truncate(to: end) }
  }

  private mutating func use(_ header: SegmentHeader, _ lines: [UInt8]) throws(LogFileError) {
    let (file, size) = try Self.makeSegment(header, lines, in: directory)
    self.file = file
    self.header = header
    syncedBytes = size
    isRolling = false
  }

  /// Makes a segment, complete and under its name on stable storage.
  private static func makeSegment(
    _ header: SegmentHeader, _ lines: [UInt8], in directory: any LogDirectory
  ) throws(LogFileError) -> (any LogFile, size: Int) {
    let bytes = header.line + lines
    let file = try directory.open(LogNames.newSegment, for: .creating)
    try file.writeAll(bytes, at: 0)
    try file.syncFully()
    let name = LogNames.segment(header.first)
    try again { () throws(LogFileError) in
      try directory.rename(LogNames.newSegment, to: name)
    }
    try again { () throws(LogFileError) in try directory.sync() }
    // Under its name, which errors tell.
    return (try directory.open(name, for: .writing), bytes.count)
  }
}
