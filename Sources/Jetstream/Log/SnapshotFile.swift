import Foundation

/// Reads the file of a snapshot: a header and the lines of one batch, and nothing after them.
struct SnapshotFile {
  let header: SnapshotHeader
  private let name: String
  private var scanner: LogScanner
  /// The number of lines after the header.
  private let count: Int
  private var rest: Int

  /// Opens the snapshot `sequence`, and checks that it belongs to the given log.
  init(_ directory: any LogDirectory, _ sequence: Int, of log: UUID?) throws(LogError) {
    let name = LogNames.snapshot(sequence)
    let file = try reading { () throws(LogFileError) in try directory.open(name, for: .reading) }
    self.name = name
    scanner = LogScanner(file, name)
    switch try reading({ [scanner] () throws(LogFileError) in
      var scanner = scanner
      return (try scanner.next(), scanner)
    }) {
    case (.line(let line, let payload), let moved):
      scanner = moved
      rest = line.rest
      count = rest
      header = try SnapshotHeader(line, payload, sequence: sequence, file: name)
    default:
      throw .damaged(
        LogDamage("its header is damaged", file: name, offset: 0, sequence: sequence))
    }
    guard log == nil || header.log == log else {
      throw .damaged(
        LogDamage("it belongs to another log", file: name, offset: 0, sequence: sequence))
    }
  }

  /// Returns the next record; nil when all have been read and the file ends there.
  mutating func next() throws(LogError) -> (isState: Bool, record: LogRecord)? {
    let offset = scanner.offset
    func damage(_ problem: String) -> LogError {
      .damaged(LogDamage(problem, file: name, offset: offset, sequence: header.sequence))
    }
    switch try reading({ () throws(LogFileError) in try scanner.next() }) {
    case .line(let line, let payload):
      guard rest > 0, line.rest == rest - 1 else {
        throw damage("a line is missing or one too many")
      }
      rest -= 1
      let isState = count - rest <= header.stateCount
      guard isState ? line.sequence == header.sequence : line.sequence <= header.sequence else {
        throw damage("a line has a wrong number")
      }
      return (isState, LogRecord(sequence: line.sequence, kind: line.kind, payload: payload))
    case .nothing where rest == 0: return nil
    case .nothing, .unfinished: throw damage("its end is missing")
    case .wrong(let problem): throw damage(problem)
    }
  }

  /// Reads the whole snapshot.
  mutating func content() throws(LogError) -> LogSnapshot {
    var state: [LogRecord] = []
    var kept: [LogRecord] = []
    while let (isState, record) = try next() {
      if isState { state.append(record) } else { kept.append(record) }
    }
    return LogSnapshot(sequence: header.sequence, state: state, kept: kept)
  }

  /// Reads the whole snapshot, and throws if it is damaged.
  mutating func check() throws(LogError) {
    while try next() != nil {}
  }
}
