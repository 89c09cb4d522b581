import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Records that count as durable before they are synced")
struct LogUnsyncedEndTests {
  private let unsynced = LogConfiguration(durability: .none)

  /// Makes a log of five records, of which the first three are synced and all count as durable. Released before its
  /// process ends, it syncs the others.
  private func write(to disk: SimulatedDisk) throws -> SimulatedLog {
    let log = try SimulatedLog(disk, unsynced)
    try log.write(1...3)
    log.log.whenSynced { _ in }
    log.drain()
    try log.write(4...5)
    #expect(log.log.durableSequence == 5)
    return log
  }

  @Test("After a power failure they may be missing, with whatever durability the log is opened")
  func powerFailure() throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let ended = try write(to: disk)
      defer { withExtendedLifetime(ended) {} }
      disk.crash()
      // A mark that was not synced may be torn.
      let mark = LogMark(disk)
      let configuration = seed.isMultiple(of: 2) || mark == nil ? unsynced : LogConfiguration()
      let log = try SimulatedLog(disk, configuration).log
      #expect(log.lastSequence >= 3)
      #expect(log.opening.mayHaveLostEnd && log.isEndUncertain, "seed \(seed)")
      #expect(log.opening.losses.isEmpty && log.opening.tailCount == log.lastSequence)
    }
  }

  @Test("If all of them are missing, the log is not taken for the one that was closed before")
  func allOfThem() throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let first = try SimulatedLog(disk)
      try first.write(1...3)
      try first.close()
      disk.files = disk.files
      let log = try SimulatedLog(disk, unsynced)
      defer { withExtendedLifetime(log) {} }
      try log.write(4...5)
      disk.crash()
      disk.files[LogNames.segment(1)] = disk.files[LogNames.segment(1)]?.prefixOfLines(4)
      #expect(try SimulatedLog(disk, unsynced).log.lastSequence == 3)
      disk.kill()
      #expect(try SimulatedLog(disk, unsynced).log.isEndUncertain, "seed \(seed)")
    }
  }

  @Test("A process that is killed loses none, and neither does a log that was closed or is at rest")
  func kill() throws {
    let disk = SimulatedDisk()
    let ended = try write(to: disk)
    defer { withExtendedLifetime(ended) {} }
    disk.kill()
    let log = try SimulatedLog(disk, unsynced)
    #expect(!log.log.opening.mayHaveLostEnd && log.log.lastSequence == 5)
    try log.write(6...7)
    #expect(LogMark(disk)?.unsyncedBoot == disk.boot)
    // The first time that passes brings the sync.
    log.queue.passTime()
    log.queue.passTime()
    #expect(disk.openCount == 0 && LogMark(disk)?.unsyncedBoot == nil)
    // Older versions, which know no boot, can read the file.
    #expect(disk.files[LogNames.lock] == LogMark(disk)?.line)
    try log.write(8...9)
    #expect(LogMark(disk)?.unsyncedBoot == disk.boot)
    try log.close()
    let synced = SimulatedDisk()
    synced.files = disk.files
    synced.crash()
    let last = try SimulatedLog(synced, unsynced)
    #expect(!last.log.opening.mayHaveLostEnd && last.log.lastSequence == 9)
  }

  @Test("A log that lost some in the machine's current boot, or that has no mark, says so as well")
  func others() throws {
    let disk = SimulatedDisk()
    let ended = try write(to: disk)
    defer { withExtendedLifetime(ended) {} }
    let files = disk.files
    disk.kill()
    disk.files[LogNames.segment(1)] = files[LogNames.segment(1)]?.prefixOfLines(5)
    #expect(try SimulatedLog(disk, unsynced).log.opening.mayHaveLostEnd)
    for durability in [LogDurability.none, .everyChangeSet] {
      disk.kill()
      disk.files = files
      disk.files[LogNames.lock] = nil
      let log = try SimulatedLog(disk, LogConfiguration(durability: durability)).log
      #expect(log.opening.mayHaveLostEnd == (durability == .none))
    }
    let new = try SimulatedLog(SimulatedDisk(), unsynced).log
    #expect(new.opening.isNew && !new.opening.mayHaveLostEnd)
  }

  @Test("That they may be missing is known until it is accepted, whatever happens to the log")
  func accepted() throws {
    let disk = SimulatedDisk()
    let ended = try write(to: disk)
    defer { withExtendedLifetime(ended) {} }
    disk.files = disk.files
    disk.crash()
    for round in 0..<3 {
      let log = try SimulatedLog(disk, round == 1 ? LogConfiguration() : unsynced)
      defer { withExtendedLifetime(log) {} }
      #expect(log.log.opening.mayHaveLostEnd, "round \(round)")
      try log.write((6 + round)...(6 + round))
      if round == 0 { try log.close() } else { disk.kill() }
    }
    let log = try SimulatedLog(disk, unsynced)
    defer { withExtendedLifetime(log) {} }
    accept(log)
    #expect(!log.log.isEndUncertain)
    try log.write(9...9)
    disk.kill()
    let next = try SimulatedLog(disk, unsynced)
    #expect(!next.log.opening.mayHaveLostEnd && next.log.lastSequence == 9)
    try next.close()
  }

  @Test("The record of a loss is appended, once, if they may be missing")
  func recordOfLoss() throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let ended = try write(to: disk)
      defer { withExtendedLifetime(ended) {} }
      func open() throws -> RecordLog {
        try RecordLog(
          disk, configuration: unsynced, queue: ManualLogQueue(), snapshotQueue: ManualLogQueue(),
          afterLoss: RecordContent(.note, payload(99)))
      }
      disk.kill()
      #expect(try open().lastSequence == 5)
      disk.kill()
      let log = try SimulatedLog(disk, unsynced)
      defer { withExtendedLifetime(log) {} }
      try log.write(6...6)
      disk.crash()
      #expect(try !open().isEndUncertain)
      #expect(numbers(try LogReader(disk).all()).last == 99)
      // A power failure does not bring back the mark that said that records may be missing.
      disk.crash()
      #expect(try !open().opening.mayHaveLostEnd)
      #expect(numbers(try LogReader(disk).all()).count { $0 == 99 } == 1, "seed \(seed)")
    }
  }

  /// Returns the disk after the machine was started again in an orderly way, which stores everything.
  private func startAgain(_ disk: SimulatedDisk, boot: UInt64 = 1) -> SimulatedDisk {
    let next = SimulatedDisk(seed: boot)
    next.files = disk.files
    next.crash()
    return next
  }

  @Test("A log that was synced and released before it rests has lost none")
  func released() throws {
    let disk = SimulatedDisk()
    var log: SimulatedLog? = try SimulatedLog(disk, unsynced)
    try log?.write(1...3)
    log?.log.whenSynced { _ in }
    log?.drain()
    #expect(LogMark(disk)?.unsyncedBoot == disk.boot)
    log = nil
    #expect(LogMark(disk) == LogMark(isOpen: true, durable: 3))
    let next = try SimulatedLog(startAgain(disk), unsynced).log
    #expect(!next.opening.mayHaveLostEnd && next.lastSequence == 3)
  }

  @Test("If an uncertain end is accepted, only records that are not synced are uncertain then")
  func acceptedAtRest() throws {
    for isSynced in [true, false] {
      let lost = SimulatedDisk()
      let ended = try write(to: lost)
      defer { withExtendedLifetime(ended) {} }
      let disk = startAgain(lost)
      let log = try SimulatedLog(disk, unsynced)
      defer { withExtendedLifetime(log) {} }
      #expect(log.log.isEndUncertain)
      try log.write(6...6)
      if isSynced {
        log.queue.passTime()
        log.queue.passTime()
        #expect(disk.openCount == 0)
      }
      accept(log)
      #expect(!log.log.isEndUncertain)
      #expect(LogMark(disk)?.unsyncedBoot == (isSynced ? nil : disk.boot))
      let next = try SimulatedLog(startAgain(disk, boot: 2), unsynced).log
      #expect(next.opening.mayHaveLostEnd == !isSynced && next.lastSequence == 6)
    }
  }

  /// Accepts an uncertain end, once the queue has done what was asked for before.
  private func accept(_ log: SimulatedLog) {
    log.log.acceptEnd {}
    #expect(log.log.isEndUncertain)
    log.drain()
  }

  @Test("A long line that could not be cut is no harm, and is cut with the next one")
  func uncut() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, unsynced)
    try log.write(1...3)
    disk.inject([.lock(.truncate, EIO)])
    log.queue.passTime()
    log.queue.passTime()
    let mark = try #require(LogMark(disk))
    #expect(!disk.hasFaults && mark.isOpen && mark.synced == 3 && mark.unsyncedBoot == nil)
    #expect(try #require(disk.files[LogNames.lock]).count > mark.line.count)
    try log.close()
    #expect(disk.files[LogNames.lock] == LogMark(isOpen: false, durable: 3).line)
  }

  @Test("A real directory knows the machine's boot")
  func boot() throws {
    let folder = try TemporaryDirectory()
    let boot = try POSIXLogDirectory(folder.path + "/one").boot
    #expect(boot != nil)
    #expect(try POSIXLogDirectory(folder.path + "/two").boot == boot)
  }
}

extension [UInt8] {
  /// The first lines, each with its end.
  fileprivate func prefixOfLines(_ count: Int) -> [UInt8] {
    let ends = indices.filter { self[$0] == UInt8(ascii: "\n") }
    return Array(prefix(ends[count - 1] + 1))
  }
}
