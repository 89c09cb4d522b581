/// An error of opening, reading or writing a log.
public enum LogError: Error, Sendable, Hashable {
  /// The log is damaged: data that was complete has changed or is missing.
  case damaged(LogDamage)
  /// The log in this directory is open for writing already, in this process or another one.
  case inUse(path: String)
  /// The log is not in this directory any more: the directory, the segment that is written to, or the file `lock` was
  /// renamed, removed or replaced while the log was open. Nothing that is not durable yet becomes so, until all are
  /// back in their place; the next attempt looks.
  case moved(path: String)
  /// The file system reported an error. While writing, all records that are not durable stay in
  /// memory, in order, and the next attempt begins with them. Do not append them again.
  case file(LogFileError)
  /// The record is not kept any more, or not there yet; the numbers of those that are.
  case notKept(sequence: Int, kept: ClosedRange<Int>?)
  /// A file was made by a newer version of the format: its name, and the version.
  case newerVersion(file: String, version: Int)
  /// So many bytes wait to be written that no more are accepted. Nothing of the append was.
  case backlog(bytes: Int)
  /// A payload is longer than a record may be.
  case tooLong(bytes: Int)
  /// The log has been closed.
  case closed
  /// A record is whole, but not what its kind says it is: its number, and what is wrong.
  case unreadable(sequence: Int, problem: String)
}

/// A damaged place in a log, and the range of records that can still be read.
public struct LogDamage: Sendable, Hashable {
  /// The name of the damaged file.
  package var file: String
  /// The byte offset of the damage in the file.
  package var offset: Int
  /// The sequence number of the first record that cannot be read.
  package var sequence: Int
  /// A description of the problem, as a clause without a full stop.
  package var problem: String
  /// The sequence numbers of the records before the damage that can be read; nil if there are none.
  package var readable: ClosedRange<Int>?

  init(
    _ problem: String, file: String, offset: Int, sequence: Int,
    readable: ClosedRange<Int>? = nil
  ) {
    self.file = file
    self.offset = offset
    self.sequence = sequence
    self.problem = problem
    self.readable = readable
  }
}

extension LogDamage: CustomStringConvertible {
  /// The place, the problem and the readable records, in one sentence.
  public var description: String {
    let rest =
      readable.map { "records \($0.lowerBound) to \($0.upperBound) can be read" }
      ?? "no record before it can be read"
    return "\(file), byte \(offset), record \(sequence): \(problem); \(rest)"
  }
}

extension LogError: CustomStringConvertible {
  /// A description of the error, as a sentence.
  public var description: String {
    switch self {
    case .damaged(let damage): "The log is damaged: \(damage)."
    case .inUse(let directory): "The log in \(directory) is open for writing already."
    case .moved(let directory):
      "The log in \(directory) is not there any more: the directory, its last segment or its lock file was renamed, "
        + "removed or replaced while the log was open."
    case .file(let error): "The file system failed: \(error)."
    case .notKept(let sequence, let kept?):
      "Record \(sequence) is not in the log, which has \(kept.lowerBound) to \(kept.upperBound)."
    case .notKept(let sequence, kept: nil): "Record \(sequence) is not in the log, which has none."
    case .newerVersion(let file, let version):
      "\(file) has version \(version) of the format, which is newer than this program."
    case .backlog(let bytes): "\(bytes) bytes wait to be written: the log accepts no more."
    case .tooLong(let bytes): "\(bytes) bytes are too long for one record."
    case .closed: "The log is closed."
    case .unreadable(let sequence, let problem): "Record \(sequence) cannot be read: \(problem)."
    }
  }
}
