import Foundation

/// Writes the segments of a log. All lines that are not on stable storage yet also stay in memory,
/// so that they can be written again.
///
/// The writer has three states. Normally, lines are written behind those on stable storage, and a
/// sync moves the border between the two; it covers bytes that no longer change, so lines can be
/// written while it runs. While `isRolling`, a new segment is due but not ready, and lines still go
/// to the old one. After a failure the writer `isUncertain`: the next write puts all unsynced lines
/// into a segment of their own. In each state the segment or the lock file may be found to be
/// missing, `isAway`: nothing is written until both are back in place.
///
/// In the normal state, and while everything is on stable storage, the segment can be put to rest:
/// its file is closed. The next line to be written opens it again. If the file is not the one that
/// was closed, it counts as missing.
struct LogWriter {
  private let directory: any LogDirectory
  private let segmentBytes: Int
  /// The identity of the lock file.
  private let lock: LogFileIdentity?
  /// The header of the current segment.
  private(set) var header: SegmentHeader
  private var file: SegmentFile
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
  private(set) var takenBytes = 0
  /// The last record that is on stable storage.
  private(set) var synced: Int
  /// The last record that has been written.
  private(set) var written: Int
  /// The last record that the writer has taken over.
  private(set) var last: Int
  /// True after a sync, or the renaming of a segment, has failed: it is unknown which of the lines
  /// written since the last sync are on stable storage.
  private(set) var isUncertain = false
  /// True from when the segment or the lock file is found renamed, removed or replaced until both
  /// are back in place. Nothing is written meanwhile.
  private(set) var isAway = false
  /// True while a new segment is due, and after an attempt to make it failed.
  private var isRolling = false

  /// Continues in a segment whose first `bytes` bytes, up to record `last`, are on stable storage.
  init(
    _ directory: any LogDirectory, _ file: any LogFile, _ header: SegmentHeader, bytes: Int,
    last: Int, segmentBytes: Int, lock: LogFileIdentity?
  ) {
    self.directory = directory
    self.lock = lock
    self.file = .open(file)
    self.header = header
    self.segmentBytes = segmentBytes
    syncedBytes = bytes
    synced = last
    written = last
    self.last = last
  }

  /// Makes the first segment of a new log.
  init(
    new log: UUID, _ directory: any LogDirectory, segmentBytes: Int, lock: LogFileIdentity?
  ) throws(LogFileError) {
    let segment = try NewSegment(SegmentHeader(log: log, first: 1, after: nil), in: directory)
    let file = try NewSegment.open(segment.giveName(in: directory), in: directory)
    self.init(
      directory, file, segment.header, bytes: segment.size, last: 0, segmentBytes: segmentBytes,
      lock: lock)
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
  /// The number of written bytes without a sync above which nothing more is written until the sync.
  private static let mostUnsynced = 64 << 20

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

  /// True when a plain write is enough for the waiting lines: the log need not write others again first, nor begin a
  /// segment, and does not have too many in memory whose sync is under way.
  var canWrite: Bool { !isUncertain && !isAway && writtenBytes < Self.mostUnsynced }

  /// True when a new segment is due.
  var isFull: Bool { isRolling || syncedBytes + writtenBytes >= segmentBytes }

  /// Writes the lines that have not been written. A part that an earlier, failed call has written
  /// is overwritten with the same bytes. Writes nothing if the lock file is missing, or the segment
  /// was at rest and is; the writer `isAway` then.
  mutating func write() throws(LogFileError) {
    if isUncertain { return try writeAgain() }
    guard writtenBytes < unsynced.count else { return }
    // Without its file, the lock keeps no other process from writing at the same place.
    guard try directory.isInPlace(lock, LogNames.lock) else { return isAway = true }
    guard let file = try openFile() else { return }
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
    fileprivate let lock: LogFileIdentity?
    fileprivate let bytes: Int
    fileprivate let last: Int

    /// Syncs the file. Blocks for as long as the disk takes.
    func perform() throws(LogFileError) { try file.syncFully() }

    /// Returns true if the file and the lock file are in place, where the next process will look for
    /// them.
    func isInPlace() throws(LogFileError) -> Bool {
      guard try directory.isInPlace(lock, LogNames.lock) else { return false }
      return try directory.isInPlace(file.identity(), name)
    }
  }

  /// A position behind a record, as the number of bytes of lines taken over until then.
  struct Mark {
    let bytes: Int
    let last: Int
  }

  /// Returns the sync after which all written lines, or those up to `mark`, are on stable storage;
  /// nil if they already are, or after a failure, when all must be written again first.
  func beginSync(upTo mark: Mark? = nil) -> Sync? {
    guard !isUncertain, writtenBytes > 0, let file = file.opened else { return nil }
    var (bytes, last) = (writtenBytes, written)
    if let mark, mark.last < written {
      (bytes, last) = (mark.bytes - (takenBytes - unsynced.count), mark.last)
    }
    guard bytes > 0 else { return nil }
    return Sync(
      directory: directory, name: name, file: file, lock: lock, bytes: bytes, last: last)
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

  // MARK: The place of the log

  /// Checks that the segment and the lock file are in place, where the next process will look for
  /// them.
  mutating func checkPlace() throws(LogFileError) -> Bool {
    // Stays true if the check throws.
    isAway = true
    if let successor, try directory.isInPlace(successor.identity(), name) {
      file = .open(successor)
    }
    guard try directory.isInPlace(lock, LogNames.lock) else { return false }
    isAway = try !directory.isInPlace(file.identity(), name)
    return !isAway
  }

  /// Notes that the segment or the lock file was not in place after a sync.
  mutating func leave() { isAway = true }

  /// The name of the segment.
  private var name: String { LogNames.segment(header.first) }

  // MARK: Rest

  /// True while the segment is at rest.
  var isAtRest: Bool { file.opened == nil }

  /// Puts the segment to rest: closes its file, and gives the memory for lines back. Does nothing
  /// unless everything is on stable storage: a system may report that it could not store bytes only
  /// to descriptors that were open then, so a sync through a later one might succeed all the same.
  mutating func rest() {
    guard isSynced, canWrite, !isRolling, let opened = file.opened,
      let fingerprint = try? SegmentFingerprint(opened, upTo: syncedBytes)
    else { return }
    file = .atRest(fingerprint)
    opened.close()
    unsynced = []
  }

  /// Returns the file, which is opened if it is at rest; nil if it is missing.
  private mutating func openFile() throws(LogFileError) -> (any LogFile)? {
    guard case .atRest(let fingerprint) = file else { return file.opened }
    guard let opened = try fingerprint.reopen(name, in: directory) else {
      isAway = true
      return nil
    }
    file = .open(opened)
    return opened
  }

  // MARK: Segments

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

  /// Switches to a prepared segment. If writing to it fails, the current segment continues; if
  /// renaming it fails, the writer is uncertain. The unsynced lines are written to the new segment
  /// before it gets its name, so that a process killed at any moment leaves them in one of the two.
  ///
  /// - Returns: The old segment, or nil if it was at rest, and its valid length. The bytes behind it
  ///   are ignored once the new name is on stable storage.
  mutating func follow(
    with next: NewSegment
  ) throws(LogFileError) -> (file: (any LogFile)?, end: Int) {
    try write(to: next.file, at: next.size)
    let name: String
    do throws(LogFileError) {
      name = try next.giveName(in: directory)
    } catch {
      isUncertain = true
      throw error
    }
    defer {
      header = next.header
      // Opened again under its final name, which errors then mention.
      file = .open((try? directory.open(name, for: .writing)) ?? next.file)
      syncedBytes = next.size
      writtenBytes = unsynced.count
      written = last
      isRolling = false
    }
    return (file.opened, syncedBytes)
  }

  /// Writes all unsynced lines to a segment of their own, whose header gives the valid length of
  /// the current one.
  private mutating func writeAgain() throws(LogFileError) {
    let isEmpty = synced < header.first
    let after = SegmentHeader.Predecessor(first: header.first, bytes: syncedBytes)
    let (old, end) = (file.opened, syncedBytes)
    try use(
      SegmentHeader(log: header.log, first: synced + 1, after: isEmpty ? header.after : after),
      unsynced)
    isUncertain = false
    unsynced = []
    writtenBytes = 0
    synced = last
    written = last
    // Only saves space: these bytes are ignored anyway.
    if !isEmpty { try? old?.truncate(to: end) }
  }

  private mutating func use(_ header: SegmentHeader, _ lines: [UInt8]) throws(LogFileError) {
    let segment = try NewSegment(header, lines, in: directory)
    // A current segment without durable records is replaced by one of the same name. If the
    // renaming fails with an unknown outcome, `checkPlace()` finds out which of the two files has
    // the name.
    let isReplaced = header.first == self.header.first
    if isReplaced { successor = segment.file }
    let name = try segment.giveName(in: directory)
    if isReplaced { (file, successor) = (.open(segment.file), nil) }
    file = .open(try NewSegment.open(name, in: directory))
    self.header = header
    syncedBytes = segment.size
    isRolling = false
  }
}
