/// Reads the records of a log in order, across all segments.
///
/// At the end of the log, ``next()`` returns nil and can be called again later. A cursor can be
/// used while this or another process writes the log.
///
/// The cursor takes no lock. At the end of a segment it lists the files again, to find the next one. If
/// the writer has replaced the last segment by one with the same lines, the cursor opens it again and
/// continues at the same offset. If a file is removed between listing and opening, the cursor tries
/// again; records that are no longer kept end it with ``LogError/notKept(sequence:kept:)``.
package struct LogCursor: Sendable {
  private let directory: any LogDirectory
  /// The sequence number of the next record.
  package private(set) var sequence: Int
  /// The number of bytes at the end of the log that belong to incomplete records. Valid after
  /// ``next()`` has returned nil.
  package var tornBytes: Int { scan?.tornBytes ?? 0 }

  private var scan: SegmentScan?
  /// The remaining records of the batch that was read last, in reverse order: the next one is last.
  private var ready: [LogRecord] = []

  init(_ directory: any LogDirectory, from sequence: Int) {
    self.directory = directory
    self.sequence = sequence
  }

  /// Returns the next record; nil at the end of the log.
  ///
  /// - Throws: ``LogError/damaged(_:)`` at a damaged place, after all records before it, and at the
  ///   end of a log that was known to be longer; ``LogError/notKept(sequence:kept:)`` if the log no longer
  ///   has the record or begins later.
  package mutating func next() throws(LogError) -> LogRecord? { try next(upTo: .max) }

  /// Returns the next record; nil at the end of the log or if the sequence number is above `limit`.
  mutating func next(upTo limit: Int) throws(LogError) -> LogRecord? {
    if let record = try advance(upTo: limit) { return record }
    guard sequence <= limit, let mark = LogMark(directory), mark.synced >= sequence else {
      return nil
    }
    // The record may have been written after the first attempt, but before the mark: then it is
    // there now.
    if let record = try advance(upTo: limit) { return record }
    guard let scan else {
      guard let damage = try LogFiles(directory).missingSegments(mark) else { return nil }
      throw .damaged(damage)
    }
    let damage = mark.missingEnd(
      behind: scan.next - 1, inSegment: scan.header.first, at: scan.offset, first: sequence)
    guard let damage else { return nil }
    throw .damaged(try readable(damage))
  }

  /// Returns the next complete record; nil if there is none yet or its sequence number is above
  /// `limit`.
  private mutating func advance(upTo limit: Int) throws(LogError) -> LogRecord? {
    while sequence <= limit {
      if let record = ready.popLast() {
        sequence = record.sequence + 1
        return record
      }
      guard scan != nil else {
        guard try open() else { return nil }
        continue
      }
      do throws(LogError) {
        if let batch = try scan?.batch() {
          ready = batch.reversed()
          ready.removeLast(ready.reversed().prefix { $0.sequence < sequence }.count)
          continue
        }
      } catch {
        guard case .damaged(let damage) = error else { throw error }
        // The segment may have ended before this place meanwhile, with another one following it.
        if scan?.isClosed == false, try open() { continue }
        throw .damaged(try readable(damage))
      }
      if try open() { continue }
      guard var last = scan else { return nil }
      try last.reopen(directory)
      let batch = try last.batch()
      scan = last
      guard let batch else { return nil }
      ready = batch.reversed()
    }
    return nil
  }

  /// Opens the segment that contains the next record. Returns false if no segment follows the last
  /// one read.
  private mutating func open() throws(LogError) -> Bool {
    var attempts = 0
    while true {
      let names = try LogFiles(directory)
      guard let position = names.segments.lastIndex(where: { $0 <= sequence }) else {
        guard let first = names.segments.first, let newest = names.segments.last else {
          return false
        }
        // The mark may lag behind, but never behind the records in front of the last segment.
        let last = max(first, newest - 1, LogMark(directory)?.synced ?? 0)
        throw .notKept(sequence: sequence, kept: first...last)
      }
      let first = names.segments[position]
      let follows = position + 1 < names.segments.count
      if let scan, scan.header.first == first, scan.isClosed || !follows {
        guard scan.isClosed else { return false }
        throw .damaged(
          try readable(
            LogDamage(
              "the records between it and the next segment are missing", file: scan.name,
              offset: scan.offset, sequence: sequence)))
      }
      do throws(LogError) {
        var end: Int?
        if follows {
          let next = try SegmentScan(directory, first: names.segments[position + 1]).header
          guard next.after?.first == first else {
            throw .damaged(
              LogDamage(
                "the segment before it is missing", file: LogNames.segment(next.first), offset: 0,
                sequence: sequence))
          }
          end = next.after?.bytes
        }
        scan = try SegmentScan(directory, first: first, end: end)
        return true
      } catch .file(let error) where error.code == POSIXLogDirectory.notFound && attempts < 3 {
        // The file was compacted away or replaced between the two calls.
        attempts += 1
      }
    }
  }

  private func readable(_ damage: LogDamage) throws(LogError) -> LogDamage {
    var damage = damage
    let first = try LogFiles(directory).segments.first ?? 1
    let last = scan.map { $0.next - 1 } ?? sequence - 1
    damage.readable = first <= last ? first...last : nil
    return damage
  }
}
