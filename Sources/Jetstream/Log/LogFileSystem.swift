/// The directory that a log lives in: everything a log asks of a file system.
///
/// ``POSIXLogDirectory`` is the real one. Another one brings a log into a store of the app's own, or
/// into a test. All names are of files right inside the directory.
///
/// A log relies on this much and no more:
/// - what was written to a file survives a crash once ``LogFile/sync()`` has returned, and no later write
///   to other bytes of the file takes it away;
/// - names that were made, changed or removed survive once ``sync()`` has returned; a rename is one step
///   that is either done or not;
/// - a file can be written while ``LogFile/sync()`` is under way on another thread, which covers at least what
///   was written before it was called;
/// - what was written beyond the end of a file and did not survive is missing or reads as zero bytes.
package protocol LogDirectory: Sendable {
  /// What messages call the directory; its path, usually.
  var name: String { get }

  /// The names of all files.
  func list() throws(LogFileError) -> [String]

  /// Opens a file. It is closed when nobody refers to it any more, or by ``LogFile/close()``.
  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile

  /// Renames a file, replacing one that has the name already.
  func rename(_ file: String, to other: String) throws(LogFileError)

  /// Removes a file.
  func remove(_ file: String) throws(LogFileError)

  /// Returns when the names of all files are on stable storage.
  func sync() throws(LogFileError)

  /// Makes the file if there is none, leaves its content as it is, and locks it against everybody, this process
  /// included. Nil if somebody else has it. Closing the file, or the end of the process, ends the lock.
  func lock(_ file: String) throws(LogFileError) -> (any LogFile)?

  /// Returns true while the name `name` leads to `file`, which was opened in this directory. False after the file or
  /// the directory was renamed, removed or replaced: the next process would not find what is written to the file.
  ///
  /// A log asks after each sync, before it says that anything is durable. Always true unless implemented, which is
  /// right for a store that nothing else can change.
  func isInPlace(_ file: any LogFile, _ name: String) throws(LogFileError) -> Bool
}

extension LogDirectory {
  /// Returns true: nothing else changes the store.
  package func isInPlace(_ file: any LogFile, _ name: String) throws(LogFileError) -> Bool { true }
}

/// What a file is opened for.
package enum LogFileAccess: Sendable, Hashable {
  /// A file that is there is read.
  case reading
  /// A file that is there is read and written.
  case writing
  /// A file is made, or emptied if it is there, and then read and written.
  case creating
}

/// An open file of a ``LogDirectory``. The buffers that are handed in are valid during the call only.
package protocol LogFile: AnyObject, Sendable {
  /// The size in bytes.
  func size() throws(LogFileError) -> Int

  /// Reads bytes from `offset` on and tells how many; fewer than asked for near the end, 0 at the end.
  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int

  /// Writes bytes from `offset` on and tells how many; they may be fewer than asked for.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int

  /// Cuts the file to `size` bytes.
  func truncate(to size: Int) throws(LogFileError)

  /// Returns when all that was written is on stable storage.
  ///
  /// After an error nothing is known about what was written since the last success, and a second try
  /// may succeed without meaning anything: the log then writes it again, to another file.
  func sync() throws(LogFileError)

  /// Closes the file. Nothing may be done with it afterwards, except closing it again.
  func close()
}

/// What the file system refused.
public struct LogFileError: Error, Sendable, Hashable {
  /// What was tried.
  package enum Operation: String, Sendable {
    case list, open, read, write, truncate, sync, rename, remove, lock
  }

  /// What was tried.
  package var operation: Operation
  /// The file, or the directory.
  public var file: String
  /// The system's number for the problem, an `errno`.
  public var code: Int32

  /// Makes an error.
  package init(_ operation: Operation, _ file: String, code: Int32) {
    self.operation = operation
    self.file = file
    self.code = code
  }
}

extension LogFile {
  /// Writes all of `bytes`, however many calls it takes.
  func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = try again { () throws(LogFileError) in try write(rest, at: offset + done) }
      // A write that takes nothing and says nothing would be tried for ever.
      guard count > 0 else { throw LogFileError(.write, "", code: POSIXLogDirectory.noSpace) }
      done += count
    }
  }

  /// Writes all of `bytes`.
  func writeAll(_ bytes: some Collection<UInt8>, at offset: Int) throws(LogFileError) {
    try ContiguousArray(bytes).withUnsafeBufferPointer { buffer throws(LogFileError) in
      try writeAll(UnsafeRawBufferPointer(buffer), at: offset)
    }
  }

  /// Appends up to `count` bytes from `offset` on to `bytes` and tells how many there were.
  func read(
    at offset: Int, _ count: Int, appendingTo bytes: inout [UInt8]
  ) throws(LogFileError) -> Int {
    var done = 0
    var failure: LogFileError?
    let part = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      do throws(LogFileError) {
        while done < count {
          let rest = UnsafeMutableRawBufferPointer(
            UnsafeMutableBufferPointer(rebasing: buffer[done...]))
          let more = try again { () throws(LogFileError) in try read(at: offset + done, into: rest)
          }
          if more == 0 { break }
          done += more
        }
      } catch {
        failure = error
      }
      initialized = done
    }
    if let failure { throw failure }
    if bytes.isEmpty { bytes = part } else { bytes += part }
    return done
  }

  /// ``sync()``, again when a signal came in between.
  func syncFully() throws(LogFileError) {
    try again { () throws(LogFileError) in try sync() }
  }
}

/// Does `body` again for as long as nothing but a signal came in between.
func again<Result>(_ body: () throws(LogFileError) -> Result) throws(LogFileError) -> Result {
  while true {
    do throws(LogFileError) {
      return try body()
    } catch {
      guard error.code == POSIXLogDirectory.interrupted else { throw error }
    }
  }
}
