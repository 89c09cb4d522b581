/// Reads the batches of one segment, and distinguishes its end, a torn tail and damage.
struct SegmentScan {
  let name: String
  let header: SegmentHeader
  /// The sequence number of the next record.
  private(set) var next: Int
  /// The last record that any line read so far reports as being on stable storage.
  private(set) var synced = 0
  /// The number of bytes of a torn tail behind the last complete batch. Valid once the end has been
  /// reached.
  private(set) var tornBytes = 0
  private var scanner: LogScanner

  /// The offset behind the last complete batch.
  var offset: Int { scanner.offset }

  /// True if another segment follows, so that this one must be complete.
  var isClosed: Bool { scanner.end != nil }

  /// Opens the segment that begins with record `first`. `end` is its valid length if another
  /// segment follows; if the file is shorter, ``batch()`` reports damage at its end.
  init(_ directory: any LogDirectory, first: Int, end: Int? = nil) throws(LogError) {
    name = LogNames.segment(first)
    next = first
    let name = name
    let file = try reading { () throws(LogFileError) in try directory.open(name, for: .reading) }
    scanner = LogScanner(file, name, end: end)
    header = try Self.readHeader(&scanner, first)
  }

  /// Continues at the same offset in the file that has the name now. The writer may have replaced a
  /// segment that has no durable records by another one that begins with the same lines.
  mutating func reopen(_ directory: any LogDirectory) throws(LogError) {
    var fresh = try SegmentScan(directory, first: header.first, end: scanner.end)
    fresh.next = next
    fresh.scanner.seek(to: offset)
    self = fresh
  }

  private static func readHeader(
    _ scanner: inout LogScanner, _ first: Int
  ) throws(LogError) -> SegmentHeader {
    let problem: String
    switch try reading({ () throws(LogFileError) in try scanner.next() }) {
    case .line(let line, let payload):
      return try SegmentHeader(line, payload, first: first, file: scanner.name)
    case .nothing: problem = "it is empty"
    case .unfinished: problem = "its header is incomplete"
    case .wrong(let what): problem = "in its header, " + what
    }
    throw .damaged(LogDamage(problem, file: scanner.name, offset: 0, sequence: first))
  }

  /// Returns the next batch; nil at the end. A later call continues there if the file has grown.
  mutating func batch() throws(LogError) -> [LogRecord]? {
    let start = scanner.offset
    var records: [LogRecord] = []
    var expectedRest: Int?
    tornBytes = 0
    while true {
      let offset = scanner.offset
      switch try reading({ () throws(LogFileError) in try scanner.next() }) {
      case .line(let line, let payload):
        let sequence = next + records.count
        guard line.sequence == sequence, line.kind != .segment else {
          throw damage("it is record \(line.sequence), out of order", at: offset, sequence)
        }
        guard expectedRest == nil || line.rest == expectedRest else {
          throw damage("it does not belong to the batch before it", at: offset, sequence)
        }
        synced = max(synced, line.synced)
        records.append(LogRecord(sequence: sequence, kind: line.kind, payload: payload))
        if line.rest == 0 {
          next += records.count
          return records
        }
        expectedRest = line.rest - 1
      case .nothing:
        if let end = scanner.end, offset < end {
          throw damage("its end is missing", at: offset, next + records.count)
        }
        if records.isEmpty { return nil }
        return try tear(from: start, at: offset, "the rest of its batch is missing", records.count)
      case .unfinished:
        return try tear(from: start, at: offset, "its end is missing", records.count)
      case .wrong(let problem):
        let file = scanner.file
        let sequence = next
        guard !isClosed,
          try reading({ () throws(LogFileError) in
            try TornTail.lacksBytes(at: offset, of: file, sequence: sequence)
          })
        else { throw damage(problem, at: offset, next + records.count) }
        return try tear(from: start, at: offset, problem, records.count)
      }
    }
  }

  /// Ends the scan before an incomplete batch. Throws if the segment must be complete.
  private mutating func tear(
    from start: Int, at offset: Int, _ problem: String, _ count: Int
  ) throws(LogError) -> [LogRecord]? {
    if isClosed { throw damage(problem, at: offset, next + count) }
    scanner.seek(to: start)
    let file = scanner.file
    tornBytes = try reading { () throws(LogFileError) in try file.size() - start }
    return nil
  }

  private mutating func damage(_ problem: String, at offset: Int, _ sequence: Int) -> LogError {
    // The readable records end with the last complete batch.
    let readable = next > header.first ? header.first...(next - 1) : nil
    return .damaged(
      LogDamage(problem, file: name, offset: offset, sequence: sequence, readable: readable))
  }
}

/// Calls `body` and converts an error of the file system to a ``LogError``.
func reading<Result>(_ body: () throws(LogFileError) -> Result) throws(LogError) -> Result {
  do throws(LogFileError) {
    return try body()
  } catch {
    throw .file(error)
  }
}
