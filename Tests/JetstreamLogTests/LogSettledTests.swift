import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Opening a log that was closed")
struct LogSettledTests {
  private let syncs: [SimulatedDisk.Fault] = [.sync(EIO), .syncDirectory(EIO)]

  /// Returns true if the next opening syncs the file, or the directory, that the fault is for.
  private func opens(_ disk: SimulatedDisk, without fault: SimulatedDisk.Fault) throws -> Bool {
    disk.inject([fault])
    defer {
      disk.clearFaults()
      disk.kill()
    }
    let before = disk.files
    let log = try? SimulatedLog(disk)
    // The opening of a killed process would not be that of a closed log.
    if let log { try log.close() }
    disk.kill()
    if disk.files != before { disk.files = before }
    return log != nil
  }

  @Test("It takes no sync, and the log is as durable as before")
  func closed() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let first = try SimulatedLog(disk, .init(history: .nothing))
      try first.write(1...4)
      if seed.isMultiple(of: 2) { try first.snapshot() }
      try first.close()
      disk.inject(syncs)
      let log = try SimulatedLog(disk)
      #expect(disk.hasFaults)
      disk.clearFaults()
      try log.write(5...6)
      disk.crash()
      let again = try SimulatedLog(disk)
      #expect(again.log.lastSequence == 6, "seed \(seed)")
      #expect(try LogReader(disk).verify().isWhole, "seed \(seed)")
    }
  }

  @Test("After a process was killed it takes a sync of the file and one of the directory")
  func killed() throws {
    for fault in syncs {
      let disk = SimulatedDisk()
      let log = try SimulatedLog(disk)
      try log.write(1...3)
      disk.kill()
      #expect(try !opens(disk, without: fault), "\(fault)")
    }
  }

  @Test("A log with records that its mark does not know was not closed as it is")
  func outdatedMark() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    try log.close()
    #expect(try opens(disk, without: .sync(EIO)))
    let mark = disk.files[LogNames.lock]
    let again = try SimulatedLog(disk)
    try again.write(4...4)
    try again.close()
    disk.files[LogNames.lock] = mark
    for fault in syncs { #expect(try !opens(disk, without: fault), "\(fault)") }
    disk.files[LogNames.lock] = nil
    for fault in syncs { #expect(try !opens(disk, without: fault), "\(fault)") }
  }

  @Test("A log is not closed before the name of its last segment is durable")
  func unsyncedName() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk)
      try log.write(1...3)
      disk.inject([.syncDirectory(EIO)])
      // The end of the segment, and closing, wait in the queue one behind the other.
      log.log.whenDurable(3, needsSync: true, andRoll: true) { _ in }
      try log.close()
      #expect(!disk.hasFaults)
      let again = try SimulatedLog(disk)
      try again.write(4...5)
      disk.crash()
      #expect(numbers(try LogReader(disk).all()) == Array(1...5), "seed \(seed)")
    }
  }

  @Test("A snapshot whose name may not be durable is not noted as the oldest one")
  func unsyncedSnapshot() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk)
      try log.write(1...3)
      let hasEarlier = seed.isMultiple(of: 2)
      if hasEarlier { try log.snapshot() }
      try log.write(4...6)
      log.log.whenDurable(6, needsSync: true, andRoll: true) { _ in }
      log.drain()
      disk.inject([.syncDirectory(EIO)])
      #expect(throws: LogError.self) { try log.snapshot() }
      try log.close()
      let again = try SimulatedLog(disk)
      disk.inject([.syncDirectory(EIO)])
      let box = ResultBox()
      again.log.compact(keeping: .nothing) { box.put($0) }
      again.drain()
      // Without an earlier snapshot there is none, and no record is dropped.
      let outcome = try #require(box.result)
      if hasEarlier {
        #expect(throws: LogError.self) { try outcome.get() }
      } else {
        try outcome.get()
      }
      disk.crash()
      #expect(try LogReader(disk).verify().isWhole, "seed \(seed)")
      #expect(numbers(try LogReader(disk).all()) == Array(1...6), "seed \(seed)")
    }
  }

  @Test(
    "While the file of the lock cannot be read it fails, and what is missing is found afterwards")
  func unreadableMark() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...10)
    try log.close()
    disk.files[LogNames.segment(1)]!.removeLast(200)
    let left = disk.files
    for operation in [LogFileError.Operation.open, .read] {
      disk.inject([.lock(operation, EIO)])
      let failure = LogError.file(LogFileError(operation, LogNames.lock, code: EIO))
      #expect(throws: failure) { try SimulatedLog(disk, .init(acceptsLoss: true)) }
      #expect(disk.files == left && !disk.hasFaults)
    }
    #expect(try SimulatedLog(disk, .init(acceptsLoss: true)).log.opening.losses.count == 1)
  }
}
