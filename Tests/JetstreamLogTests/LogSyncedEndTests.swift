import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("A log whose records are all synced, with a power failure right after that")
struct LogSyncedEndTests {
  private let unsynced = LogConfiguration(durability: .none)

  /// The end of a log's use, after which all its records are synced.
  enum End: CaseIterable {
    case closed, atRest, released
  }

  @Test("It has lost nothing if it was closed, released or at rest", arguments: End.allCases)
  func ended(_ end: End) throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      var log: SimulatedLog? = try SimulatedLog(disk, unsynced)
      try log?.write(1...5)
      switch end {
      case .closed: try log?.close()
      case .atRest:
        log?.queue.passTime()
        log?.queue.passTime()
      case .released: log = nil
      }
      disk.crash()
      let next = try SimulatedLog(disk, unsynced).log
      #expect(!next.opening.mayHaveLostEnd && next.lastSequence == 5, "seed \(seed)")
      withExtendedLifetime(log) {}
    }
  }

  @Test("It has lost nothing if it was opened after the end of a process")
  func opened() throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let ended = try SimulatedLog(disk, unsynced)
      try ended.write(1...5)
      disk.kill()
      let log = try SimulatedLog(disk, unsynced)
      #expect(!log.log.opening.mayHaveLostEnd)
      disk.crash()
      let next = try SimulatedLog(disk, unsynced).log
      #expect(!next.opening.mayHaveLostEnd && next.lastSequence == 5, "seed \(seed)")
      withExtendedLifetime((ended, log)) {}
    }
  }

  @Test("An uncertain end that was accepted is not uncertain again")
  func accepted() throws {
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let ended = try SimulatedLog(disk, unsynced)
      try ended.write(1...3)
      ended.log.whenSynced { _ in }
      ended.drain()
      try ended.write(4...5)
      disk.crash()
      let log = try SimulatedLog(disk, unsynced)
      #expect(log.log.isEndUncertain)
      log.log.acceptEnd {}
      log.drain()
      disk.crash()
      #expect(try !SimulatedLog(disk, unsynced).log.opening.mayHaveLostEnd, "seed \(seed)")
      withExtendedLifetime((ended, log)) {}
    }
  }
}
