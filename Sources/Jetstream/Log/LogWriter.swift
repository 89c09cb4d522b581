import Foundation

/// Writes the segments of a log. Everything that is not on stable storage yet is in memory as well, so
/// that it can be written again.
///
/// Three states. Usually lines are written behind those on stable storage, and a sync moves the border between
/// the two; it works on bytes that no one changes any more, so lines can be written while it is under way.
/// Then `isRolling`, from when a segment is due until it is there: lines still go to the old one. And
/// `isUncertain` after a failure: nothing is written but all of it, to a segment of its own. In each of them it may be
/// found that the segment `isAway`: then nothing is written at all until it is back.
struct LogWriter {
  private let directory: any LogDirectory
  private let segmentBytes: Int
  /// The header of the segment that is written to.
  private(set) var header: SegmentHeader
  private var file: any LogFile
  /// A segment that may have taken the name of this one: its name was given, and that has failed.
  private var successor: (any LogFile)?
  /// How many bytes of the segment are on stable storage.
  private var syncedBytes: Int
  /// The lines behind them.
  private var unsynced: [UInt8] = []
  /// How many bytes of those have been written.
  private var writtenBytes = 0
  /// The number of bytes of all lines that were handed over.
  private var takenBytes = 0
  /// The last record that is on stable storage.
  private(set) var synced: Int
  /// The last record that has been written.
  private(set) var written: Int
  /// The last record that was handed over.
  private(set) var last: Int
  /// True after a sync, or giving a segment its name, has failed: it is not known what of all that was written
  /// since the last sync is on stable storage.
  private(set) var isUncertain = false
  /// True after the segment was found to be renamed, removed or replaced, until it is in its place again: nothing is
  /// written meanwhile.
  private(set) var isAway = false
  /// True while another segment is due, and after it could not be made.
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
  var waitingBytes: Int {
    isUncertain || isAway ? unsynced.count : unsynced.count - writtenBytes
  }

  /// True when so much was written that the log has to sync it, although its owner has not asked for that.
  var needsSync: Bool { writtenBytes >= Self.maxUnsynced }

  /// The most that is written without a sync: it is held in memory until then.
  private static let maxUnsynced = 16 << 20

  /// Takes over lines that end with record `last`, and leaves room for others behind.
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

  /// True when a plain write is enough for the lines that wait: the log need not sync anything or begin a segment
  /// before.
  var canWrite: Bool { !isUncertain && !isAway && !needsSync }

  /// True when another segment is due.
  var isFull: Bool { isRolling || syncedBytes + writtenBytes >= segmentBytes }

  /// Writes what has not been written. A part that an earlier call has written is written over: it is
  /// the same.
  mutating func write() throws(LogFileError) {
    if isUncertain { return try writeAgain() }
    guard writtenBytes < unsynced.count else { return }
    try write(to: file, at: syncedBytes, from: writtenBytes)
    writtenBytes = unsynced.count
    written = last
  }

  /// Writes the lines behind `start` of those that are not on stable storage; the first one has its place at
  /// `offset`.
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

  /// Bytes that are being brought to stable storage. More can be written meanwhile.
  struct Sync {
    fileprivate let directory: any LogDirectory
    fileprivate let name: String
    fileprivate let file: any LogFile
    fileprivate let bytes: Int
    fileprivate let last: Int

    /// Takes as long as the disk does.
    func perform() throws(LogFileError) { try file.syncFully() }
  }

  /// A place behind a record, by how many bytes of lines were handed over until then.
  struct Mark {
    let bytes: Int
    let last: Int
  }

  /// Returns the sync after which everything that was written, or everything up to `mark`, is on stable storage; nil
  /// if that is so already.
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

  /// A sync has failed, or a segment may have its name or not: what was written since the last sync is written
  /// again, also what was written meanwhile.
  mutating func fail() { isUncertain = true }

  // MARK: The place of the segment

  /// Looks whether the segment is where the next process will look for it.
  mutating func checkPlace() throws(LogFileError) -> Bool {
    let name = LogNames.segment(header.first)
    // Also if that cannot be found out.
    isAway = true
    if let successor, try directory.isInPlace(successor, name) { file = successor }
    isAway = try !directory.isInPlace(file, name)
    return !isAway
  }

  /// The segment was not in its place after a sync.
  mutating func leave() { isAway = true }

  // MARK: Segments

  /// A segment that is made to follow the one that is written to.
  struct Segment {
    fileprivate let header: SegmentHeader
    fileprivate let file: any LogFile
    fileprivate let size: Int
  }

  /// The header of the segment that follows behind what is on stable storage; nil if this one has nothing
  /// there yet.
  mutating func beginRoll() -> SegmentHeader? {
    guard synced >= header.first else {
      isRolling = false
      return nil
    }
    isRolling = true
    let after = SegmentHeader.Predecessor(first: header.first, bytes: syncedBytes)
    return SegmentHeader(log: header.log, first: synced + 1, after: after)
  }

  /// Makes a segment without lines, which has no name of one yet. Takes as long as the disk does.
  static func prepare(
    _ header: SegmentHeader, in directory: any LogDirectory
  ) throws(LogFileError) -> Segment {
    let (file, size) = try make(header, [], in: directory)
    return Segment(header: header, file: file, size: size)
  }

  /// Goes on in a segment that was prepared. If that fails, the one before goes on, unless it ends uncertain which
  /// of them counts. What is not on stable storage stands in the new one as well before it has
  /// its name. So a process that is killed at any moment leaves it in the one or in the other.
  ///
  /// - Returns: the segment before, of which what is behind its end counts no more as soon as the name is on
  ///   stable storage.
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
      // Under its name, which errors tell.
      file = (try? directory.open(name, for: .writing)) ?? next.file
      syncedBytes = next.size
      writtenBytes = unsynced.count
      written = last
      isRolling = false
    }
    return (file, syncedBytes)
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
    let (file, size) = try Self.make(header, lines, in: directory)
    // One without durable records has the same name. From when this one has it until it is known to be on stable
    // storage, it is the one to be found in its place.
    let isReplaced = header.first == self.header.first
    if isReplaced { successor = file }
    let name = try Self.giveName(header, in: directory)
    if isReplaced { (self.file, successor) = (file, nil) }
    self.file = try Self.open(name, in: directory)
    self.header = header
    syncedBytes = size
    isRolling = false
  }

  /// Makes a segment, complete and under its name on stable storage.
  private static func makeSegment(
    _ header: SegmentHeader, _ lines: [UInt8], in directory: any LogDirectory
  ) throws(LogFileError) -> (any LogFile, size: Int) {
    let size = try make(header, lines, in: directory).size
    return (try open(giveName(header, in: directory), in: directory), size)
  }

  /// Opens a segment under its name, which errors tell, once that is on stable storage.
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
  /// Looks whether what was synced is where the next process will look for it.
  func isInPlace() throws(LogFileError) -> Bool { try directory.isInPlace(file, name) }
}
