import Foundation

/// The directory of a log: all file system operations that a log uses.
///
/// ``POSIXLogDirectory`` is the implementation for real directories. Another implementation puts a
/// log into the app's own storage, or into a test. All names are of files directly in the
/// directory.
///
/// A log relies on these guarantees only:
/// - Bytes written to a file survive a crash once ``LogFile/sync()`` has returned, and later writes
///   to other bytes of the file do not affect them.
/// - Creating, renaming and removing files survives a crash once ``sync()`` has returned. A rename
///   is atomic.
/// - A file can be written while ``LogFile/sync()`` runs on another thread. The sync covers at
///   least the bytes written before it was called.
/// - Bytes that were written beyond the end of a file and did not survive are missing or read as
///   zero.
package protocol LogDirectory: Sendable {
  /// The name of the directory in messages, usually its path.
  var name: String { get }

  /// The identity of the machine's boot: the same for all processes until the machine is started
  /// again, such as after a power failure. For as long as it is the same, bytes that were written
  /// and not synced are in their files.
  ///
  /// Nil, which the default implementation returns, if it is not known: then the machine may have
  /// been started again before each opening of a log.
  var boot: UUID? { get }

  /// Returns the names of all files.
  func list() throws(LogFileError) -> [String]

  /// Opens a file. It is closed by ``LogFile/close()`` or when its last reference is released.
  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile

  /// Renames a file, replacing an existing file with the new name.
  func rename(_ file: String, to other: String) throws(LogFileError)

  /// Removes a file.
  func remove(_ file: String) throws(LogFileError)

  /// Waits until the names of all files are on stable storage.
  func sync() throws(LogFileError)

  /// Creates the file if it does not exist, keeps its content, and locks it exclusively, also
  /// against other users in this process. Returns nil if it is locked already. The lock ends when
  /// the file is closed or the process ends.
  func lock(_ file: String) throws(LogFileError) -> (any LogFile)?

  /// Returns true while `name` leads to the file with this identity, which was opened in this
  /// directory; false after the file or the directory was renamed, removed or replaced, so that the
  /// next process would not find what is written to the file.
  ///
  /// A log calls this after each sync, before it reports records as durable; before it opens a file
  /// again that it has closed; and for its lock file before each write. The default implementation
  /// returns true, which is correct for storage that no other program can change.
  func isInPlace(_ file: LogFileIdentity?, _ name: String) throws(LogFileError) -> Bool
}

extension LogDirectory {
  /// Returns nil: the boot is not known.
  package var boot: UUID? { nil }

  /// Returns true: no other program changes the storage.
  package func isInPlace(
    _ file: LogFileIdentity?, _ name: String
  ) throws(LogFileError) -> Bool { true }
}

/// The identity of a file, which it keeps when it is renamed. Once the file is closed and removed,
/// another one may get the same identity.
package struct LogFileIdentity: Sendable, Hashable {
  /// The number of the device.
  let device: UInt64
  /// The number of the file on the device.
  let number: UInt64

  /// Makes an identity.
  package init(device: UInt64, number: UInt64) {
    self.device = device
    self.number = number
  }
}

/// The purpose for which a file is opened.
package enum LogFileAccess: Sendable, Hashable {
  /// Reads an existing file.
  case reading
  /// Reads and writes an existing file.
  case writing
  /// Creates or empties a file, then reads and writes it.
  case creating
}

/// An open file of a ``LogDirectory``. Buffers that are passed in are valid during the call only.
package protocol LogFile: AnyObject, Sendable {
  /// Returns the identity of the file. The default implementation returns nil, which is correct for
  /// storage that no other program can change.
  func identity() throws(LogFileError) -> LogFileIdentity?

  /// Returns the size in bytes.
  func size() throws(LogFileError) -> Int

  /// Reads bytes from `offset` on and returns their number, which is smaller than requested near
  /// the end of the file and 0 at the end.
  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int

  /// Writes bytes from `offset` on and returns their number, which may be smaller than requested.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int

  /// Truncates the file to `size` bytes.
  func truncate(to size: Int) throws(LogFileError)

  /// Waits until all written bytes are on stable storage.
  ///
  /// After an error, the fate of all bytes written since the last successful sync is unknown, and a
  /// second sync may succeed without having written them. The log then writes them again, to
  /// another file.
  func sync() throws(LogFileError)

  /// Closes the file. No other call may follow, except another close.
  func close()
}

/// An error of the file system.
public struct LogFileError: Error, Sendable, Hashable {
  /// The file system operation that failed.
  package enum Operation: String, Sendable {
    case list, open, read, write, truncate, sync, rename, remove, lock
  }

  /// The operation that failed.
  package var operation: Operation
  /// The name of the file or directory.
  package var file: String
  /// The error number of the system, an `errno`.
  package var code: Int32

  /// Makes an error.
  package init(_ operation: Operation, _ file: String, code: Int32) {
    self.operation = operation
    self.file = file
    self.code = code
  }
}

extension LogFile {
  /// Returns nil: no other program changes the storage.
  package func identity() throws(LogFileError) -> LogFileIdentity? { nil }

  /// Writes all of `bytes`, with as many calls as it takes.
  func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = try again { () throws(LogFileError) in try write(rest, at: offset + done) }
      // A write that accepts no bytes and reports no error would be repeated forever.
      guard count > 0 else { throw LogFileError(.write, "", code: POSIXLogDirectory.noSpace) }
      done += count
    }
  }

  /// Writes all of `bytes`.
  package func writeAll(_ bytes: some Collection<UInt8>, at offset: Int) throws(LogFileError) {
    try ContiguousArray(bytes).withUnsafeBufferPointer { buffer throws(LogFileError) in
      try writeAll(UnsafeRawBufferPointer(buffer), at: offset)
    }
  }

  /// Appends up to `count` bytes from `offset` on to `bytes`, and returns how many were read.
  package func read(
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

  /// Calls ``sync()``, again each time a signal interrupts it.
  package func syncFully() throws(LogFileError) {
    try again { () throws(LogFileError) in try sync() }
  }
}

/// Calls `body` again for as long as a signal interrupts it.
func again<Result>(_ body: () throws(LogFileError) -> Result) throws(LogFileError) -> Result {
  while true {
    do throws(LogFileError) {
      return try body()
    } catch {
      guard error.code == POSIXLogDirectory.interrupted else { throw error }
    }
  }
}
