#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Synchronization

/// A directory of the operating system, accessed with POSIX calls.
package struct POSIXLogDirectory: LogDirectory {
  /// The path of the directory.
  package let path: String

  /// The path of the directory.
  package var name: String { path }

  static let interrupted = EINTR
  static let noSpace = ENOSPC
  static let notFound = ENOENT

  /// Uses an existing directory.
  package init(existing path: String) throws(LogFileError) {
    self.path = path
    _ = try list()
  }

  /// Uses a directory, and creates it and those above it if they do not exist.
  package init(_ path: String) throws(LogFileError) {
    self.path = path
    try Self.create(path)
    _ = try list()
  }

  /// Creates a directory behind those above it, each one durable in its parent before anything is in it.
  ///
  /// So a directory that has something in it is durable, and costs no sync. The name of an empty one is synced again:
  /// the attempt that made it may have ended before that.
  static func create(
    _ path: String, syncing sync: (String) throws(LogFileError) -> Void = syncDirectory
  ) throws(LogFileError) {
    var isThere = true
    do throws(LogFileError) {
      if try !POSIXLogDirectory(unchecked: path).list(atMost: 1).isEmpty { return }
    } catch {
      // One that may not be read may still have directories below it.
      if [EACCES, EPERM].contains(error.code) { return }
      guard error.code == ENOENT else { throw LogFileError(.open, path, code: error.code) }
      isThere = false
    }
    if !isThere {
      let parent = (path as NSString).deletingLastPathComponent
      if !parent.isEmpty, parent != path { try create(parent, syncing: sync) }
      guard mkdir(path, 0o777) == 0 || errno == EEXIST else {
        throw LogFileError(.open, path, code: errno)
      }
    }
    do throws(LogFileError) {
      try sync(path + "/..")
    } catch {
      // A parent that may not be read cannot be synced. What is below it was made by another user, or by hand.
      guard isThere, [EACCES, EPERM].contains(error.code) else { throw error }
    }
  }

  /// Returns the names of all files.
  package func list() throws(LogFileError) -> [String] { try list(atMost: .max) }

  private func list(atMost limit: Int) throws(LogFileError) -> [String] {
    guard let stream = opendir(path) else { throw LogFileError(.list, path, code: errno) }
    defer { closedir(stream) }
    var names: [String] = []
    while names.count < limit {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno == 0 { break }
        throw LogFileError(.list, path, code: errno)
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        // The name is a tuple of characters with a zero behind the last one.
        pointer.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Opens a file.
  package func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    let flags =
      switch access {
      // Does not wait for a process that writes to it if the file is a pipe.
      case .reading: O_RDONLY | O_NONBLOCK
      case .writing: O_RDWR
      case .creating: O_RDWR | O_CREAT | O_TRUNC
      }
    return try openFile(file, flags)
  }

  /// Renames a file.
  package func rename(_ file: String, to other: String) throws(LogFileError) {
    guard
      renameat(AT_FDCWD, "\(path)/\(file)", AT_FDCWD, "\(path)/\(other)") == 0
    else { throw LogFileError(.rename, file, code: errno) }
  }

  /// Removes a file.
  package func remove(_ file: String) throws(LogFileError) {
    guard unlink("\(path)/\(file)") == 0 else {
      throw LogFileError(.remove, file, code: errno)
    }
  }

  /// Syncs the directory itself.
  package func sync() throws(LogFileError) { try Self.syncDirectory(path) }

  /// Locks the file with `flock`, which belongs to the open file, so that a second attempt by this
  /// process is refused too. On a network file system where the lock belongs to the process,
  /// ``held`` refuses it.
  package func lock(_ file: String) throws(LogFileError) -> (any LogFile)? {
    let opened = try openFile(file, O_RDWR | O_CREAT)
    let identity = try opened.status(for: .lock).identity
    guard Self.held.withLock({ $0.insert(identity).inserted }) else {
      return nil
    }
    while flock(opened.descriptor, LOCK_EX | LOCK_NB) != 0 {
      let code = errno
      if code == EINTR { continue }
      Self.held.withLock { _ = $0.remove(identity) }
      if code == EWOULDBLOCK { return nil }
      throw LogFileError(.lock, file, code: code)
    }
    opened.heldLock.withLock { $0 = identity }
    return opened
  }

  /// Compares the identity with that of the file at the path.
  package func isInPlace(_ file: LogFileIdentity?, _ name: String) throws(LogFileError) -> Bool {
    try again { () throws(LogFileError) in
      var status = stat()
      if stat("\(path)/\(name)", &status) == 0 { return file == status.identity }
      if [ENOENT, ENOTDIR, ELOOP].contains(errno) { return false }
      throw LogFileError(.sync, "\(path)/\(name)", code: errno)
    }
  }

  /// The files that this process has locked.
  fileprivate static let held = Mutex<Set<LogFileIdentity>>([])

  private func openFile(_ file: String, _ flags: Int32) throws(LogFileError) -> POSIXLogFile {
    let descriptor = try again { () throws(LogFileError) in
      #if canImport(Darwin)
      let result = Darwin.open("\(path)/\(file)", flags | O_CLOEXEC, 0o666)
      #elseif canImport(Musl)
      let result = Musl.open("\(path)/\(file)", flags | O_CLOEXEC, 0o666)
      #else
      let result = Glibc.open("\(path)/\(file)", flags | O_CLOEXEC, 0o666)
      #endif
      guard result >= 0 else { throw LogFileError(.open, file, code: errno) }
      return result
    }
    return POSIXLogFile(file, descriptor)
  }

  private static func syncDirectory(_ path: String) throws(LogFileError) {
    let directory = try POSIXLogDirectory(unchecked: path).openFile(".", O_RDONLY | O_DIRECTORY)
    try again { () throws(LogFileError) in
      guard fsync(directory.descriptor) == 0 else { throw LogFileError(.sync, path, code: errno) }
    }
  }

  private init(unchecked path: String) { self.path = path }
}

/// A file with its descriptor.
private final class POSIXLogFile: LogFile {
  private let name: String
  /// The descriptor; -1 once the file is closed.
  private let open: Atomic<Int32>
  /// The identity under which this file is locked; nil if it is not.
  let heldLock = Mutex<LogFileIdentity?>(nil)

  init(_ name: String, _ descriptor: Int32) {
    self.name = name
    open = Atomic(descriptor)
  }

  deinit { close() }

  var descriptor: Int32 { open.load(ordering: .relaxed) }

  func identity() throws(LogFileError) -> LogFileIdentity? { try status(for: .read).identity }

  func size() throws(LogFileError) -> Int { Int(try status(for: .read).st_size) }

  func status(for operation: LogFileError.Operation) throws(LogFileError) -> stat {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw LogFileError(operation, name, code: errno) }
    return status
  }

  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int {
    let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
    guard count >= 0 else { throw LogFileError(.read, name, code: errno) }
    return count
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int {
    let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
    guard count >= 0 else { throw LogFileError(.write, name, code: errno) }
    return count
  }

  func truncate(to size: Int) throws(LogFileError) {
    guard ftruncate(descriptor, off_t(size)) == 0 else {
      throw LogFileError(.truncate, name, code: errno)
    }
  }

  func sync() throws(LogFileError) {
    #if canImport(Darwin)
    // A plain fsync leaves the bytes in the drive's cache. It is the best that some file systems have, such as those of
    // a network; after any other error it might succeed although the bytes are lost.
    if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    guard [ENOTSUP, EOPNOTSUPP, EINVAL, ENOTTY].contains(errno) else {
      throw LogFileError(.sync, name, code: errno)
    }
    let result = fsync(descriptor)
    #else
    let result = fdatasync(descriptor)
    #endif
    guard result == 0 else { throw LogFileError(.sync, name, code: errno) }
  }

  func close() {
    let descriptor = open.exchange(-1, ordering: .relaxed)
    guard descriptor >= 0 else { return }
    let identity = heldLock.withLock { lock in
      defer { lock = nil }
      return lock
    }
    // The descriptor's lock ends first, so that a file that is free in the registry is really free.
    // It is unlocked explicitly, because a process that is being started may have a copy of the
    // descriptor, which would keep the lock.
    if identity != nil { flock(descriptor, LOCK_UN) }
    #if canImport(Darwin)
    _ = Darwin.close(descriptor)
    #elseif canImport(Musl)
    _ = Musl.close(descriptor)
    #else
    _ = Glibc.close(descriptor)
    #endif
    if let identity { POSIXLogDirectory.held.withLock { _ = $0.remove(identity) } }
  }
}

extension stat {
  fileprivate var identity: LogFileIdentity {
    LogFileIdentity(device: UInt64(truncatingIfNeeded: st_dev), number: UInt64(st_ino))
  }
}

extension LogFileError: CustomStringConvertible {
  /// The operation, file and error, such as "write log-000000000001.jsonl: No space left on
  /// device".
  public var description: String {
    "\(operation.rawValue) \(file): \(String(cString: strerror(code)))"
  }
}
