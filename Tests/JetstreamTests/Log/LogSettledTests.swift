import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Opening a log that was closed")
struct LogSettledTests {
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
      if seed.isMultiple(of: 2) { try log.snapshot() }
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
      #expect(throws: LogError.self) { try #require(box.result).get() }
      disk.crash()
      #expect(try LogReader(disk).verify().isWhole, "seed \(seed)")
      #expect(try SimulatedLog(disk).log.lastSequence == 6, "seed \(seed)")
    }
  }
}
