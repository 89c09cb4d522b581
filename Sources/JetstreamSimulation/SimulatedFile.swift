import Foundation
import Jetstream
import Synchronization

/// A file of a simulated disk, opened by one process.
final class SimulatedFile: LogFile {
  let disk: SimulatedDisk
  let name: String
  let inode: Int
  let epoch: Int
  let holdsLock: Bool
  private let open = Atomic(true)

  init(
    _ disk: SimulatedDisk, _ name: String, _ inode: Int, _ epoch: Int, holdsLock: Bool = false
  ) {
    self.disk = disk
    self.name = name
    self.inode = inode
    self.epoch = epoch
    self.holdsLock = holdsLock
  }

  deinit { close() }

  var isOpen: Bool { open.load(ordering: .relaxed) }

  func identity() throws(LogFileError) -> LogFileIdentity? { LogFileIdentity(inode: inode) }

  func size() throws(LogFileError) -> Int {
    try disk.with(self) { _, inode throws(LogFileError) in inode.bytes.count }
  }

  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int {
    // Sound: the closure is run before this call returns, by this thread, and does not keep the buffer.
    nonisolated(unsafe) let buffer = buffer
    return try disk.with(self) { state, inode throws(LogFileError) in
      if name == LogNames.lock { try state.fail(name, .read) }
      guard offset < inode.bytes.count else { return 0 }
      let bytes = inode.bytes[offset..<min(offset + buffer.count, inode.bytes.count)]
      state.readBytes += bytes.count
      buffer.copyBytes(from: bytes)
      return bytes.count
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int {
    let all = Array(bytes)
    return try disk.with(self) { state, inode throws(LogFileError) in
      try state.fail(name, .write)
      state.writeCount += 1
      var count = all.count
      if case .shortWrite(let limit)? = state.faults.first, name != LogNames.lock {
        state.faults.removeFirst()
        count = min(count, max(limit, 1))
      }
      if let most = state.largestSize(of: inode) {
        count = min(count, most - offset)
        if count <= 0 { throw LogFileError(.write, name, code: ENOSPC) }
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
    if open.exchange(false, ordering: .relaxed) { disk.close(self) }
  }
}

extension LogFileIdentity {
  init(inode: Int) { self.init(device: 0, number: UInt64(inode)) }
}
