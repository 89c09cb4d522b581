import Foundation
import Synchronization

@testable import Jetstream

/// A disk in memory that forgets, at a crash, whatever was not synced: all of it, or any part.
///
/// A file's bytes survive if it was synced after they were written; otherwise each sector of them
/// survives or not by itself, or only its beginning does, and the rest is missing or zero. Each
/// change of a name survives if the directory was synced afterwards; otherwise it is done or not,
/// whatever became of those before it. After a failed sync, what was not synced is still to be read,
/// but no later sync brings it to the disk.
final class SimulatedDisk: LogDirectory {
  let name = "simulated"
  private let state: Mutex<State>

  init(seed: UInt64 = 0) { state = Mutex(State(random: SeededGenerator(seed: seed))) }

  /// What goes wrong next.
  enum Fault: Hashable {
    case write(Int32)
    /// So many bytes are written, and the rest not.
    case shortWrite(Int)
    case sync(Int32)
    case rename(Int32)
    case syncDirectory(Int32)
    case open(Int32)
    case truncate(Int32)
  }

  fileprivate struct Inode {
    var bytes: [UInt8] = []
    var durable: [UInt8] = []
    /// The offsets of bytes that no sync will bring to the disk any more.
    var lost: [Range<Int>] = []
  }

  fileprivate enum NameChange {
    case link(String, Int)
    case unlink(String)
    case rename(String, String, Int)
  }

  fileprivate struct State {
    var random: SeededGenerator
    var inodes: [Int: Inode] = [:]
    var names: [String: Int] = [:]
    var durableNames: [String: Int] = [:]
    var changes: [NameChange] = []
    var nextInode = 1
    var locked: Set<String> = []
    var faults: [Fault] = []
    var isFull = false
    /// Raised by a crash: files of before are dead.
    var epoch = 0
    var syncCount = 0
    var writeCount = 0
  }

  // MARK: What a test does

  func inject(_ faults: [Fault]) { state.withLock { $0.faults += faults } }

  func clearFaults() { state.withLock { $0.faults = [] } }

  /// While the disk is full, a write takes what is left of its sector.
  var isFull: Bool {
    get { state.withLock { $0.isFull } }
    set { state.withLock { $0.isFull = newValue } }
  }

  var syncCount: Int { state.withLock { $0.syncCount } }

  var files: [String: [UInt8]] {
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

  /// Changes the bits of one byte of a file that are set in `mask`; a second time, it is what it was.
  func flip(_ file: String, at position: Int, mask: UInt8) {
    state.withLock { state in
      let inode = state.names[file]!
      state.inodes[inode]!.bytes[position] ^= mask
      state.inodes[inode]!.durable[position] ^= mask
    }
  }

  /// Ends the process that wrote, not the machine: files stay as they are.
  func kill() {
    state.withLock { state in
      state.epoch += 1
      state.locked = []
      state.faults = []
      state.isFull = false
    }
  }

  /// Ends the machine.
  func crash() {
    kill()
    state.withLock { $0.crash() }
  }

  // MARK: LogDirectory

  func list() throws(LogFileError) -> [String] { state.withLock { $0.names.keys.sorted() } }

  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    try state.withLock { state throws(LogFileError) in
      if access != .reading { try state.fail(file, .open) }
      if let inode = state.names[file] {
        if access == .creating { state.inodes[inode]?.bytes = [] }
        return SimulatedFile(self, file, inode, state.epoch)
      }
      guard access == .creating else { throw LogFileError(.open, file, code: ENOENT) }
      return SimulatedFile(self, file, state.make(file), state.epoch)
    }
  }

  func rename(_ file: String, to other: String) throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      try state.fail(file, .rename)
      guard let inode = state.names.removeValue(forKey: file) else {
        throw LogFileError(.rename, file, code: ENOENT)
      }
      state.names[other] = inode
      state.changes.append(.rename(file, other, inode))
    }
  }

  func remove(_ file: String) throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      guard state.names.removeValue(forKey: file) != nil else {
        throw LogFileError(.remove, file, code: ENOENT)
      }
      state.changes.append(.unlink(file))
    }
  }

  func sync() throws(LogFileError) {
    try state.withLock { state throws(LogFileError) in
      try state.fail(name, .list)
      state.durableNames = state.names
      state.changes = []
    }
  }

  func lock(_ file: String) throws(LogFileError) -> (any LogFile)? {
    state.withLock { state in
      guard state.locked.insert(file).inserted else { return nil }
      return SimulatedFile(
        self, file, state.names[file] ?? state.make(file), state.epoch, holdsLock: true)
    }
  }

  fileprivate func with<Result>(
    _ file: SimulatedFile, _ body: (inout State, inout Inode) throws(LogFileError) -> Result
  ) throws(LogFileError) -> Result {
    try state.withLock { state throws(LogFileError) in
      guard file.epoch == state.epoch, var inode = state.inodes[file.inode] else {
        // Whoever wrote is dead; what a leftover of it does counts for nothing.
        throw LogFileError(.write, file.name, code: EBADF)
      }
      defer { state.inodes[file.inode] = inode }
      return try body(&state, &inode)
    }
  }

  fileprivate func unlock(_ file: SimulatedFile) {
    state.withLock { state in
      if file.epoch == state.epoch { state.locked.remove(file.name) }
    }
  }
}

extension SimulatedDisk.State {
  fileprivate mutating func make(_ file: String) -> Int {
    let inode = nextInode
    nextInode += 1
    inodes[inode] = SimulatedDisk.Inode()
    names[file] = inode
    changes.append(.link(file, inode))
    return inode
  }

  /// Throws if the next fault is for this operation.
  fileprivate mutating func fail(
    _ file: String, _ operation: LogFileError.Operation
  ) throws(LogFileError) {
    let code: Int32
    switch (faults.first, operation) {
    case (.write(let errno), .write), (.sync(let errno), .sync), (.rename(let errno), .rename),
      (.syncDirectory(let errno), .list), (.open(let errno), .open),
      (.truncate(let errno), .truncate):
      code = errno
    default: return
    }
    faults.removeFirst()
    throw LogFileError(operation, file, code: code)
  }

  fileprivate mutating func crash() {
    names = durableNames
    for change in changes where Bool.random(using: &random) {
      switch change {
      case .link(let name, let inode): names[name] = inode
      case .unlink(let name): names[name] = nil
      case .rename(let name, let other, let inode):
        if names[name] == inode { names[name] = nil }
        names[other] = inode
      }
    }
    durableNames = names
    changes = []
    for number in inodes.keys.sorted() {
      guard var inode = inodes[number] else { continue }
      inode.bytes = survivors(of: inode)
      inode.durable = inode.bytes
      inode.lost = []
      inodes[number] = inode
    }
  }

  private mutating func survivors(of inode: SimulatedDisk.Inode) -> [UInt8] {
    let (new, old) = (inode.bytes, inode.durable)
    if new == old { return old }
    if new.count < old.count {
      // A cut that was not synced is done or not.
      return Bool.random(using: &random) ? survivors(new, Array(old[..<new.count])) : old
    }
    return survivors(new, old)
  }

  private mutating func survivors(_ new: [UInt8], _ old: [UInt8]) -> [UInt8] {
    let size = Int.random(in: old.count...new.count, using: &random)
    var result = old + [UInt8](repeating: 0, count: size - old.count)
    let mode = Int.random(in: 0..<4, using: &random)
    for start in stride(from: 0, to: size, by: 512) {
      let sector = start..<min(start + 512, size)
      switch mode == 0 ? 0 : mode == 1 ? 1 : Int.random(in: 0..<3, using: &random) {
      case 0: break
      case 1: result.replaceSubrange(sector, with: new[sector])
      default:
        let end = Int.random(in: sector, using: &random)
        result.replaceSubrange(sector.lowerBound..<end, with: new[sector.lowerBound..<end])
      }
    }
    // What was durable is so, whatever became of its sector since.
    for position in 0..<min(old.count, size) where old[position] == new[position] {
      result[position] = old[position]
    }
    return result
  }
}

/// A file of a simulated disk, opened by one process.
private final class SimulatedFile: LogFile {
  let disk: SimulatedDisk
  let name: String
  let inode: Int
  let epoch: Int
  private let holdsLock: Mutex<Bool>

  init(
    _ disk: SimulatedDisk, _ name: String, _ inode: Int, _ epoch: Int, holdsLock: Bool = false
  ) {
    self.disk = disk
    self.name = name
    self.inode = inode
    self.epoch = epoch
    self.holdsLock = Mutex(holdsLock)
  }

  deinit { close() }

  func size() throws(LogFileError) -> Int {
    try disk.with(self) { _, inode throws(LogFileError) in inode.bytes.count }
  }

  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int {
    nonisolated(unsafe) let buffer = buffer
    return try disk.with(self) { _, inode throws(LogFileError) in
      guard offset < inode.bytes.count else { return 0 }
      let bytes = inode.bytes[offset..<min(offset + buffer.count, inode.bytes.count)]
      buffer.copyBytes(from: bytes)
      return bytes.count
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int {
    let all = Array(bytes)
    return try disk.with(self) { state, inode throws(LogFileError) in
      // The mark in the file of the lock is no part of the log, and may fail.
      if name != LogNames.lock { try state.fail(name, .write) }
      state.writeCount += 1
      var count = all.count
      if case .shortWrite(let limit)? = state.faults.first, name != LogNames.lock {
        state.faults.removeFirst()
        count = min(count, max(limit, 1))
      }
      if state.isFull, offset + count > inode.bytes.count {
        count = min(count, 512 - inode.bytes.count % 512 + inode.bytes.count - offset)
        if offset + count <= inode.bytes.count || offset == inode.bytes.count && offset % 512 == 0 {
          throw LogFileError(.write, name, code: ENOSPC)
        }
      }
      if inode.bytes.count < offset + count {
        inode.bytes += [UInt8](repeating: 0, count: offset + count - inode.bytes.count)
      }
      inode.bytes.replaceSubrange(offset..<(offset + count), with: all[..<count])
      inode.lost = inode.lost.flatMap { lost -> [Range<Int>] in
        [
          lost.lowerBound..<max(min(lost.upperBound, offset), lost.lowerBound),
          min(max(lost.lowerBound, offset + count), lost.upperBound)..<lost.upperBound,
        ].filter { !$0.isEmpty }
      }
      return count
    }
  }

  func truncate(to size: Int) throws(LogFileError) {
    try disk.with(self) { state, inode throws(LogFileError) in
      try state.fail(name, .truncate)
      inode.bytes.removeLast(inode.bytes.count - size)
    }
  }

  func sync() throws(LogFileError) {
    try disk.with(self) { state, inode throws(LogFileError) in
      state.syncCount += 1
      do throws(LogFileError) {
        try state.fail(name, .sync)
      } catch {
        // Interrupted: nothing has happened. Otherwise what is not durable never will be.
        if error.code != EINTR {
          inode.lost.append(min(inode.durable.count, inode.bytes.count)..<inode.bytes.count)
        }
        throw error
      }
      var durable = inode.bytes
      for lost in inode.lost {
        for position in lost where position < durable.count {
          durable[position] = position < inode.durable.count ? inode.durable[position] : 0
        }
      }
      inode.durable = durable
    }
  }

  func close() {
    let held = holdsLock.withLock { held in
      defer { held = false }
      return held
    }
    if held { disk.unlock(self) }
  }
}
