import Foundation
import Synchronization

import Jetstream

/// A disk in memory that loses, at a crash, what was not synced: all of it, or any part.
///
/// A file's bytes survive if the file was synced after they were written. Otherwise each sector survives or not
/// by itself, or only its beginning does, and the rest is missing or zero. Each change of a name survives if
/// the directory was synced afterwards; otherwise it may or may not survive, whatever happens to the changes
/// before it. After a failed sync, the bytes that were not synced can still be read, but no later sync makes
/// them durable.
package final class SimulatedDisk: LogDirectory {
  package let name = "simulated"
  private let seed: UInt64
  private let state: Mutex<State>

  package init(seed: UInt64 = 0) {
    self.seed = seed
    state = Mutex(State(random: SimulationRandom(seed: seed)))
  }

  /// A fault of the next operation of its kind, with the error code.
  package enum Fault: Hashable, Sendable {
    case write(Int32)
    /// Only so many bytes are written, at least one.
    case shortWrite(Int)
    case sync(Int32)
    case rename(Int32)
    case syncDirectory(Int32)
    case open(Int32)
    case truncate(Int32)
    /// An operation on the file of the lock, to which no other fault happens.
    case lock(LogFileError.Operation, Int32)
  }

  struct Inode {
    var bytes: [UInt8] = []
    var durable: [UInt8] = []
    /// The offsets of bytes that no later sync makes durable.
    var lost: [Range<Int>] = []
  }

  enum NameChange {
    case link(String, Int)
    case unlink(String)
    case rename(String, String, Int)
  }

  struct State {
    var random: SimulationRandom
    var inodes: [Int: Inode] = [:]
    var names: [String: Int] = [:]
    var durableNames: [String: Int] = [:]
    var changes: [NameChange] = []
    var nextInode = 1
    var locked: Set<String> = []
    var faults: [Fault] = []
    var isFull = false
    var capacity: Int?
    var isAway = false
    /// Raised when the process or the machine ends: files that were opened before are dead.
    var epoch = 0
    /// The number of times that the machine has ended.
    var crashCount: UInt64 = 0
    var openCount = 0
    var syncCount = 0
    var writeCount = 0
    var readBytes = 0
  }

  // MARK: Control by tests

  package func inject(_ faults: [Fault]) { state.withLock { $0.faults += faults } }

  package var hasFaults: Bool { state.withLock { !$0.faults.isEmpty } }

  package func clearFaults() { state.withLock { $0.faults = [] } }

  /// True while the disk is full: a write takes what is left of its sector.
  package var isFull: Bool {
    get { state.withLock { $0.isFull } }
    set { state.withLock { $0.isFull = newValue } }
  }

  /// The number of bytes for which the disk has room; nil for any.
  package var capacity: Int? {
    get { state.withLock { $0.capacity } }
    set { state.withLock { $0.capacity = newValue } }
  }

  /// The number of bytes of all files.
  package var usedBytes: Int { state.withLock { $0.usedBytes } }

  /// True while the directory cannot be found under its name. Files that are open can still be written and
  /// synced.
  package var isAway: Bool {
    get { state.withLock { $0.isAway } }
    set { state.withLock { $0.isAway = newValue } }
  }

  /// The number of files that the living process has open, without the one of the lock.
  package var openCount: Int { state.withLock { $0.openCount } }

  package var syncCount: Int { state.withLock { $0.syncCount } }

  /// The number of bytes that were read from files.
  package var readBytes: Int { state.withLock { $0.readBytes } }

  package var files: [String: [UInt8]] {
    get { state.withLock { state in state.names.compactMapValues { state.inodes[$0]?.bytes } } }
    set {
      state.withLock { state in
        state.inodes = [:]
        state.names = [:]
        state.changes = []
        for (name, bytes) in newValue {
          state.inodes[state.nextInode] = Inode(bytes: bytes, durable: bytes)
          state.names[name] = state.nextInode
          state.nextInode += 1
        }
        state.durableNames = state.names
      }
    }
  }

  /// Flips the bits of one byte of a file that are set in `mask`. A second call restores the byte.
  package func flip(_ file: String, at position: Int, mask: UInt8) {
    state.withLock { state in
      let inode = state.names[file]!
      state.inodes[inode]!.bytes[position] ^= mask
      state.inodes[inode]!.durable[position] ^= mask
    }
  }

  /// Ends the process that writes, but not the machine: the files stay as they are.
  package func kill() {
    state.withLock { state in
      state.epoch += 1
      state.openCount = 0
      state.locked = []
      state.faults = []
      state.isFull = false
      state.isAway = false
    }
  }

  /// Ends the machine: what was not synced may be lost.
  package func crash() {
    kill()
    state.withLock { state in
      state.crashCount += 1
      state.crash()
    }
  }

  // MARK: LogDirectory

  package var boot: UUID? {
    let count = state.withLock { $0.crashCount }
    return UUID(uuid: unsafeBitCast((seed.bigEndian, count.bigEndian), to: uuid_t.self))
  }

  package func list() throws(LogFileError) -> [String] {
    try state.withLock { state throws(LogFileError) in
      try state.find(name, .list)
      return state.names.keys.sorted()
    }
  }

  package func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    try state.withLock { state throws(LogFileError) in
      try state.find(file, .open)
      if access != .reading || file == LogNames.lock { try state.fail(file, .open) }
      guard state.names[file] != nil || access == .creating else {
        throw LogFileError(.open, file, code: ENOENT)
      }
      let inode = state.names[file] ?? state.make(file)
      if access == .creating { state.inodes[inode]?.bytes = [] }
      state.openCount += 1
      return SimulatedFile(self, file, inode, state.epoch)
    }
  }

  package func rename(_ file: String, to other: String) throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      try state.find(file, .rename)
      try state.fail(file, .rename)
      guard let inode = state.names.removeValue(forKey: file) else {
        throw LogFileError(.rename, file, code: ENOENT)
      }
      state.names[other] = inode
      state.changes.append(.rename(file, other, inode))
    }
  }

  package func remove(_ file: String) throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      try state.find(file, .remove)
      guard state.names.removeValue(forKey: file) != nil else {
        throw LogFileError(.remove, file, code: ENOENT)
      }
      state.changes.append(.unlink(file))
    }
  }

  package func sync() throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      try state.find(name, .sync)
      try state.fail(name, .list)
      state.durableNames = state.names
      state.changes = []
    }
  }

  package func lock(_ file: String) throws(LogFileError) -> (any LogFile)? {
    try state.withLock { state throws(LogFileError) in
      try state.find(file, .lock)
      guard state.locked.insert(file).inserted else { return nil }
      return SimulatedFile(
        self, file, state.names[file] ?? state.make(file), state.epoch, holdsLock: true)
    }
  }

  package func isInPlace(_ file: LogFileIdentity?, _ name: String) throws(LogFileError) -> Bool {
    state.withLock { state in
      !state.isAway && file != nil && state.names[name].map(LogFileIdentity.init(inode:)) == file
    }
  }

  func with<Result>(
    _ file: SimulatedFile, _ body: (inout State, inout Inode) throws(LogFileError) -> Result
  ) throws(LogFileError) -> Result {
    try state.withLock { state throws(LogFileError) in
      guard file.isOpen, file.epoch == state.epoch, var inode = state.inodes[file.inode] else {
        // The file was closed, or the process that opened it has ended; its operations do nothing.
        throw LogFileError(.write, file.name, code: EBADF)
      }
      defer { state.inodes[file.inode] = inode }
      return try body(&state, &inode)
    }
  }

  /// Notes that a file was closed.
  func close(_ file: SimulatedFile) {
    state.withLock { state in
      guard file.epoch == state.epoch else { return }
      if file.holdsLock { state.locked.remove(file.name) } else { state.openCount -= 1 }
    }
  }
}
