import Foundation

/// Writes the segments of a log. All lines that are not on stable storage yet also stay in memory,
/// so that they can be written again.
///
/// The writer has three states. Normally, lines are written behind those on stable storage, and a
/// sync moves the border between the two; it covers bytes that no longer change, so lines can be
/// written while it runs. While `isRolling`, a new segment is due but not ready, and lines still go
/// to the old one. After a failure the writer `isUncertain`: the next write puts all unsynced lines
/// into a segment of their own. In each state the segment may be found to be missing, `isAway`:
/// nothing is written until it is back in place.
struct LogWriter {
  private let directory: any LogDirectory
  private let segmentBytes: Int
  /// The header of the current segment.
  private(set) var header: SegmentHeader
  private var file: any LogFile
  /// A new segment that may have replaced the current one: renaming it to the same name has failed,
  /// with an unknown outcome.
  private var successor: (any LogFile)?
  /// The number of bytes of the segment that are on stable storage.
  private var syncedBytes: Int
  /// The lines that are not on stable storage yet.
  private var unsynced: [UInt8] = []
  /// The number of bytes of `unsynced` that have been written.
  private var writtenBytes = 0
  /// The number of bytes of all lines that the writer has taken over.
  private var takenBytes = 0
  /// The last record that is on stable storage.
  private(set) var synced: Int
  /// The last record that has been written.
  private(set) var written: Int
  /// The last record that the writer has taken over.
  private(set) var last: Int
  /// True after a sync, or the renaming of a segment, has failed: it is unknown which of the lines
  /// written since the last sync are on stable storage.
  private(set) var isUncertain = false
  /// True from when the segment is found renamed, removed or replaced until it is back in place.
  /// Nothing is written meanwhile.
  private(set) var isAway = false
  /// True while a new segment is due, and after an attempt to make it failed.
  private var isRolling = false

  /// Continues in a segment whose first `bytes` bytes, up to record `last`, are on stable storage.
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

  /// True while all lines that the writer has taken over are on stable storage.
  var isSynced: Bool { synced == last }

  /// The number of bytes that wait to be written, or to be written again.
  var waitingBytes: Int {
    isUncertain || isAway ? unsynced.count : unsynced.count - writtenBytes
  }

  /// True when so much was written that the log must sync, even if its owner has not asked for it.
  var needsSync: Bool { writtenBytes >= Self.maxUnsynced }

  /// The maximum number of written bytes without a sync. They stay in memory until the sync.
  private static let maxUnsynced = 16 << 20

  /// Takes over lines that end with record `last`, and leaves `lines` empty.
  mutating func take(_ lines: inout [UInt8], last: Int) {
    self.last = max(last, self.last)
    if lines.isEmpty { return }
    takenBytes += lines.count
    if unsynced.isEmpty {
      swap(&unsynced, &lines)
    } else {
      unsynced.append(contentsOf: lines)
    }
    lines.removeAll(keepingCapacity: lines.capacity <= 1 << 20)
  }

  /// True when a plain write is enough for the waiting lines: the log need not first sync or begin
  /// a segment.
  var canWrite: Bool { !isUncertain && !isAway && !needsSync }

  /// True when a new segment is due.
  var isFull: Bool { isRolling || syncedBytes + writtenBytes >= segmentBytes }

  /// Writes the lines that have not been written. A part that an earlier, failed call has written
  /// is overwritten with the same bytes.
  mutating func write() throws(LogFileError) {
    if isUncertain { return try writeAgain() }
    guard writtenBytes < unsynced.count else { return }
    try write(to: file, at: syncedBytes, from: writtenBytes)
    writtenBytes = unsynced.count
    written = last
  }

  /// Writes the unsynced lines from byte `start` on. `offset` is the place of the first unsynced
  /// byte in `file`.
  private func write(
    to file: any LogFile, at offset: Int, from start: Int = 0
  ) throws(LogFileError) {
    guard start < unsynced.count else { return }
    try unsynced.withUnsafeBufferPointer { lines throws(LogFileError) in
      try file.writeAll(
        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: lines[start...])), at: offset + start)
    }
  }

  // MARK: Syncing

  /// A sync in progress. More lines can be written meanwhile.
  struct Sync {
    fileprivate let directory: any LogDirectory
    fileprivate let name: String
    fileprivate let file: any LogFile
    fileprivate let bytes: Int
    fileprivate let last: Int

    /// Syncs the file. Blocks for as long as the disk takes.
    func perform() throws(LogFileError) { try file.syncFully() }
  }

  /// A position behind a record, as the number of bytes of lines taken over until then.
  struct Mark {
    let bytes: Int
    let last: Int
  }

  /// Returns the sync after which all written lines, or those up to `mark`, are on stable storage;
  /// nil if they already are, or after a failure, when all must be written again first.
  func beginSync(upTo mark: Mark? = nil) -> Sync? {
    if isUncertain || writtenBytes == 0 { return nil }
    var (bytes, last) = (writtenBytes, written)
    if let mark, mark.last < written {
      (bytes, last) = (mark.bytes - (takenBytes - unsynced.count), mark.last)
    }
    guard bytes > 0 else { return nil }
    return Sync(
      directory: directory, name: LogNames.segment(header.first), file: file, bytes: bytes,
      last: last)
  }

  mutating func endSync(_ sync: Sync) {
    if sync.bytes == unsynced.count {
      unsynced.removeAll(keepingCapacity: unsynced.capacity <= 1 << 20)
    } else {
      unsynced.removeFirst(sync.bytes)
    }
    syncedBytes += sync.bytes
    writtenBytes -= sync.bytes
    synced = sync.last
  }

  /// Notes that a sync, or the renaming of a segment, has failed. All lines written since the last
  /// sync are written again, including those written during it.
  mutating func fail() { isUncertain = true }

  // MARK: The place of the segment

  /// Checks that the segment is in place, where the next process will look for it.
  mutating func checkPlace() throws(LogFileError) -> Bool {
    let name = LogNames.segment(header.first)
    // Stays true if the check throws.
    isAway = true
    if let successor, try directory.isInPlace(successor, name) { file = successor }
    isAway = try !directory.isInPlace(file, name)
    return !isAway
  }

  /// Notes that the segment was not in place after a sync.
  mutating func leave() { isAway = true }

  // MARK: Segments

  /// A new segment, prepared to follow the current one.
  struct Segment {
    fileprivate let header: SegmentHeader
    fileprivate let file: any LogFile
    fileprivate let size: Int
  }

  /// Returns the header of the segment that follows the synced lines; nil if the current segment
  /// has none of them yet.
  mutating func beginRoll() -> SegmentHeader? {
    guard synced >= header.first else {
      isRolling = false
      return nil
    }
    isRolling = true
    let after = SegmentHeader.Predecessor(first: header.first, bytes: syncedBytes)
    return SegmentHeader(log: header.log, first: synced + 1, after: after)
  }

  /// Makes a segment without lines, still under a temporary name. Blocks for as long as the disk
  /// takes.
  static func prepare(
    _ header: SegmentHeader, in directory: any LogDirectory
  ) throws(LogFileError) -> Segment {
    let (file, size) = try make(header, [], in: directory)
    return Segment(header: header, file: file, size: size)
  }

  /// Switches to a prepared segment. If writing to it fails, the current segment continues; if
  /// renaming it fails, the writer is uncertain. The unsynced lines are written to the new segment
  /// before it gets its name, so that a process killed at any moment leaves them in one of the two.
  ///
  /// - Returns: The old segment and its valid length. The bytes behind it are ignored once the new
  ///   name is on stable storage.
  mutating func follow(with next: Segment) throws(LogFileError) -> (file: any LogFile, end: Int) {
    try write(to: next.file, at: next.size)
    let name: String
    do throws(LogFileError) {
      name = try Self.giveName(next.header, in: directory)
    } catch {
      isUncertain = true
      throw error
    }
    defer {
      header = next.header
      // Opened again under its final name, which errors then mention.
      file = (try? directory.open(name, for: .writing)) ?? next.file
      syncedBytes = next.size
      writtenBytes = unsynced.count
      written = last
      isRolling = false
    }
    return (file, syncedBytes)
  }

  /// Writes all unsynced lines to a segment of their own, whose header gives the valid length of
  /// the current one.
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
    // Only saves space: these bytes are ignored anyway.
    if !isEmpty { try? old.truncate(to: end) }
  }

  private mutating func use(_ header: SegmentHeader, _ lines: [UInt8]) throws(LogFileError) {
    let (file, size) = try Self.make(header, lines, in: directory)
    // A current segment without durable records is replaced by one of the same name. If the
    // renaming fails with an unknown outcome, `checkPlace()` finds out which of the two files has
    // the name.
    let isReplaced = header.first == self.header.first
    if isReplaced { successor = file }
    let name = try Self.giveName(header, in: directory)
    if isReplaced { (self.file, successor) = (file, nil) }
    self.file = try Self.open(name, in: directory)
    self.header = header
    syncedBytes = size
    isRolling = false
  }

  /// Makes a segment and waits until it is on stable storage, complete and under its name.
  private static func makeSegment(
    _ header: SegmentHeader, _ lines: [UInt8], in directory: any LogDirectory
  ) throws(LogFileError) -> (any LogFile, size: Int) {
    let size = try make(header, lines, in: directory).size
    return (try open(giveName(header, in: directory), in: directory), size)
  }

  /// Syncs the directory, then opens a segment under its final name, which appears in errors.
  private static func open(
    _ name: String, in directory: any LogDirectory
  ) throws(LogFileError) -> any LogFile {
    try again { () throws(LogFileError) in try directory.sync() }
    return try directory.open(name, for: .writing)
  }

  private static func make(
    _ header: SegmentHeader, _ lines: [UInt8], in directory: any LogDirectory
  ) throws(LogFileError) -> (any LogFile, size: Int) {
    let bytes = header.line + lines
    let file = try directory.open(LogNames.newSegment, for: .creating)
    try file.writeAll(bytes, at: 0)
    try file.syncFully()
    return (file, bytes.count)
  }

  private static func giveName(
    _ header: SegmentHeader, in directory: any LogDirectory
  ) throws(LogFileError) -> String {
    let name = LogNames.segment(header.first)
    try again { () throws(LogFileError) in
      try directory.rename(LogNames.newSegment, to: name)
    }
    return name
  }
}

extension LogWriter.Sync {
  /// Returns true if the synced file is in place, where the next process will look for it.
  func isInPlace() throws(LogFileError) -> Bool { try directory.isInPlace(file, name) }
}
