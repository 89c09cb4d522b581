import Foundation
import Jetstream

extension SimulatedDisk.State {
  mutating func make(_ file: String) -> Int {
    let inode = nextInode
    nextInode += 1
    inodes[inode] = SimulatedDisk.Inode()
    names[file] = inode
    changes.append(.link(file, inode))
    return inode
  }

  /// The number of bytes of all files.
  var usedBytes: Int { names.values.reduce(0) { $0 + (inodes[$1]?.bytes.count ?? 0) } }

  /// Returns the size up to which the disk has room for a file; nil for any.
  func largestSize(of inode: SimulatedDisk.Inode) -> Int? {
    let size = inode.bytes.count
    if isFull { return (size + 511) / 512 * 512 }
    return capacity.map { size + max($0 - usedBytes, 0) }
  }

  /// Throws if the directory cannot be found.
  func find(_ file: String, _ operation: LogFileError.Operation) throws(LogFileError) {
    if isAway { throw LogFileError(operation, file, code: ENOENT) }
  }

  /// Throws, and removes the fault, if the next fault is for this operation.
  mutating func fail(
    _ file: String, _ operation: LogFileError.Operation
  ) throws(LogFileError) {
    let code: Int32
    switch (faults.first, operation) {
    case (.lock(operation, let errno), _) where file == LogNames.lock: code = errno
    // The mark in the file of the lock is no part of the log.
    case _ where file == LogNames.lock: return
    case (.write(let errno), .write), (.sync(let errno), .sync), (.rename(let errno), .rename),
      (.syncDirectory(let errno), .list), (.open(let errno), .open),
      (.truncate(let errno), .truncate):
      code = errno
    default: return
    }
    faults.removeFirst()
    throw LogFileError(operation, file, code: code)
  }

  mutating func crash() {
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
      // A truncation that was not synced has happened or not.
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
    // A durable byte that was not changed survives, whatever happens to its sector.
    for position in 0..<min(old.count, size) where old[position] == new[position] {
      result[position] = old[position]
    }
    return result
  }
}
