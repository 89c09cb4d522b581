import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("What is missing from a log although it was durable")
struct LogLossTests {
  private let name = LogNames.segment(1)

  /// The files of a log of ten records that was closed, and where the lines of its segment end.
  private func closedLog() throws -> (files: [String: [UInt8]], ends: [Int]) {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...10)
    try log.close()
    let bytes = try #require(disk.files[name])
    return (
      disk.files, bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
    )
  }

  /// What is wrong with a log of ten durable records of which `count` are left, in a segment of which
  /// `offset` bytes are whole.
  private func damage(_ count: Int, offset: Int) -> LogDamage {
    let left = count == 0 ? "none is" : count == 1 ? "only 1 is" : "only \(count) are"
    return LogDamage(
      "10 records were known to be durable, but \(left) there", file: name,
      offset: offset, sequence: count + 1, readable: count > 0 ? 1...count : nil)
  }

  @Test("A log that was closed and is cut at any byte is damaged, and is left as it is")
  func everyCut() throws {
    let (files, ends) = try closedLog()
    for length in ends[0]..<files[name]!.count {
      var cut = files
      cut[name]!.removeLast(files[name]!.count - length)
      let whole = ends.lastIndex { $0 <= length }!
      let expected = LogError.damaged(damage(whole, offset: ends[whole]))
      let disk = SimulatedDisk()
      disk.files = cut
      let verification = try LogReader(disk).verify()
      #expect(verification.damage == [damage(whole, offset: ends[whole])], "cut at \(length)")
      #expect(throws: expected, "cut at \(length)") { try SimulatedLog(disk) }
      #expect(disk.files == cut)
      var cursor = try LogReader(disk).read()
      var read: [LogRecord] = []
      #expect(throws: expected, "cut at \(length)") {
        while let record = try cursor.next() { read.append(record) }
      }
      #expect(numbers(read) == Array(1..<(whole + 1)))
    }
    #expect(
      LogError.damaged(damage(4, offset: 500)).description
        == "The log is damaged: log-000000000001.jsonl, byte 500, record 5: 10 records were known to "
        + "be durable, but only 4 are there; records 1 to 4 can be read.")
  }

  @Test("A last segment that is missing as a whole is damage where the one before it ends")
  func lastSegment() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 300))
    for number in 1...10 { try log.write(number...number) }
    try log.close()
    var files = disk.files
    let segments = try LogFiles(disk).segments
    files[LogNames.segment(segments.last!)] = nil
    disk.files = files
    let damage = try LogReader(disk).verify().damage
    #expect(damage.map(\.file) == [LogNames.segment(segments[segments.count - 2])])
    #expect(damage.map(\.sequence) == [segments.last!])
    #expect(throws: LogError.self) { try SimulatedLog(disk) }
    #expect(throws: LogError.self) { try LogReader(disk).all() }
  }

  @Test("A crash may take what was not known to be durable, and only that")
  func crash() throws {
    for durability in [LogDurability.interval(.seconds(1)), .none] {
      let disk = SimulatedDisk()
      let log = try SimulatedLog(disk, .init(durability: durability))
      try log.write(1...3)
      log.log.whenSynced { _ in }
      log.drain()
      let synced = disk.files[name]!.count
      try log.write(4...9)
      disk.kill()
      let files = disk.files
      for length in stride(from: synced - 1, to: files[name]!.count, by: 7) {
        let disk = SimulatedDisk()
        disk.files = files
        disk.files[name]!.removeLast(files[name]!.count - length)
        #expect(try LogReader(disk).verify().isWhole == (length >= synced), "\(durability)")
        if length < synced {
          #expect(throws: LogError.self) { try SimulatedLog(disk) }
        } else {
          #expect(try SimulatedLog(disk).log.lastSequence >= 3)
        }
      }
    }
  }

  @Test("A lock file that is older than the records raises no alarm")
  func staleMark() throws {
    let disk = SimulatedDisk()
    var log = try SimulatedLog(disk)
    var stale: [[UInt8]?] = [nil, []]
    for first in stride(from: 1, to: 10, by: 3) {
      try log.write(first...(first + 1))
      stale.append(disk.files["lock"])
      try log.write((first + 2)...(first + 2))
      try log.close()
      stale.append(disk.files["lock"])
      log = try SimulatedLog(disk)
      stale.append(disk.files["lock"])
    }
    disk.kill()
    let files = disk.files
    for mark in stale {
      let disk = SimulatedDisk()
      disk.files = files
      disk.files["lock"] = mark
      #expect(try LogReader(disk).verify().isWhole)
      #expect(numbers(try LogReader(disk).all()) == Array(1...9))
      #expect(try SimulatedLog(disk).log.lastSequence == 9)
    }
  }

  @Test("What is missing can be accepted, and is said once")
  func accepted() throws {
    var (files, ends) = try closedLog()
    files[name]!.removeLast(files[name]!.count - ends[4] - 7)
    let disk = SimulatedDisk()
    disk.files = files
    let log = try SimulatedLog(disk, .init(acceptsLoss: true))
    #expect(log.log.opening.losses == [damage(4, offset: ends[4])])
    #expect(log.log.opening.tornBytes == 7 && log.log.lastSequence == 4)
    try log.write(5...6)
    // What said that there were ten does not come back with a power cut.
    for _ in 0..<3 {
      disk.crash()
      #expect(try LogReader(disk).verify().isWhole)
      #expect(numbers(try LogReader(disk).all()) == Array(1...6))
      #expect(try SimulatedLog(disk).log.opening.losses.isEmpty)
    }
  }

  @Test("The record of a loss is durable before the log forgets the loss")
  func recordOfLoss() throws {
    let (files, ends) = try closedLog()
    for seed in 0..<20 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      disk.files = files
      disk.files[name]!.removeLast(files[name]!.count - ends[4])
      func open() throws -> RecordLog {
        try RecordLog(
          disk, configuration: .init(acceptsLoss: true), queue: ManualLogQueue(),
          snapshotQueue: ManualLogQueue(), afterLoss: RecordContent(.note, payload(99)))
      }
      // The first fault is repeated, so that the second one is that of the record.
      disk.inject([.syncDirectory(EINTR), seed % 2 == 0 ? .write(EIO) : .sync(EIO)])
      #expect(throws: LogError.self) { try open() }
      #expect(!disk.hasFaults)
      disk.crash()
      #expect(try open().opening.losses.count == 1)
      disk.crash()
      let all = numbers(try LogReader(disk).all())
      #expect(all.prefix(5) == [1, 2, 3, 4, 99] && all.allSatisfy { $0 < 5 || $0 == 99 })
      #expect(try open().opening.losses.isEmpty)
    }
  }

  @Test("A snapshot under load after an accepted loss ends the segment behind a whole record")
  func snapshotAfterLoss() throws {
    let (files, ends) = try closedLog()
    let disk = SimulatedDisk()
    disk.files = files
    disk.files[name]!.removeLast(files[name]!.count - ends[4])
    let (queue, snapshots, box) = (ManualLogQueue(), ManualLogQueue(), ResultBox())
    let log = try RecordLog(
      disk, configuration: .init(acceptsLoss: true), queue: queue, snapshotQueue: snapshots,
      afterLoss: RecordContent(.note, payload(99)))
    for number in 6...8 { try log.append(.note, payload(number)) }
    log.snapshot(
      at: log.lastSequence, standingFor: [.note], state: { [RecordContent(.state, payload(8))] },
      then: { box.put($0) })
    try log.append(.note, payload(9))
    while queue.step() || snapshots.step() {}
    #expect(throws: Never.self) { try #require(box.result).get() }
    #expect(try LogReader(disk).verify().isWhole)
    #expect(numbers(try LogReader(disk).all()) == [1, 2, 3, 4, 99, 6, 7, 8, 9])
    disk.crash()
    #expect(try SimulatedLog(disk).log.lastSequence == 9)
  }

  @Test("What is written while the end is looked at is not missed")
  func readingBeside() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...5)
    var cursor = try LogReader(disk).read()
    for _ in 1...5 { _ = try cursor.next() }
    #expect(try cursor.next() == nil)
    try log.write(6...7)
    #expect(try cursor.next()?.sequence == 6)
    #expect(try cursor.next()?.sequence == 7)
    #expect(try cursor.next() == nil)
  }

  @Test("Without its only segment a log is damaged, not new")
  func onlySegment() throws {
    let (files, _) = try closedLog()
    let disk = SimulatedDisk()
    disk.files = files
    disk.files[name] = nil
    let damage = LogDamage(
      "10 records were known to be durable, but no segment is there", file: name, offset: 0,
      sequence: 1)
    let left = disk.files
    #expect(try LogReader(disk).verify().damage == [damage])
    #expect(throws: LogError.damaged(damage)) { try LogReader(disk).firstSequence() }
    #expect(throws: LogError.damaged(damage)) { try LogReader(disk).all() }
    #expect(throws: LogError.damaged(damage)) { try SimulatedLog(disk) }
    #expect(disk.files == left)
    // Accepted, it begins anew.
    let log = try SimulatedLog(disk, .init(acceptsLoss: true))
    #expect(log.log.opening.isNew && log.log.opening.losses == [damage])
    try log.write(1...3)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...3))
    #expect(try SimulatedLog(disk).log.opening.losses.isEmpty)
    // A process that was killed while it made the log has left a lock, and nothing else.
    disk.files = ["lock": []]
    #expect(try LogReader(disk).firstSequence() == nil)
    #expect(try SimulatedLog(disk).log.opening.isNew)
  }

  @Test("Without its first snapshot a log is damaged")
  func firstSnapshot() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.snapshot()
    try log.write(1...10)
    try log.close()
    let whole = disk.files
    #expect(try LogReader(disk).verify().isWhole)
    disk.files[LogNames.snapshot(0)] = nil
    let damage = LogDamage(
      "it is missing, and the records behind it depend on it", file: LogNames.snapshot(0),
      offset: 0, sequence: 0, readable: 1...10)
    #expect(try LogReader(disk).verify().damage == [damage])
    #expect(throws: LogError.damaged(damage)) { try SimulatedLog(disk) }
    // One that is there, but is not what was written, is no better.
    disk.files = whole
    disk.flip(LogNames.snapshot(0), at: 40, mask: 1)
    #expect(throws: LogError.self) { try SimulatedLog(disk) }
    // Accepted, it is no longer asked for.
    let again = try SimulatedLog(disk, .init(acceptsLoss: true))
    #expect(again.log.opening.losses.map(\.file) == [LogNames.snapshot(0)])
    try again.close()
    #expect(try SimulatedLog(disk).log.opening.losses.isEmpty)
    disk.files[LogNames.snapshot(0)] = nil
    #expect(try LogReader(disk).verify().isWhole)
    // A later snapshot stands for it, but not for the states before that.
    disk.files = whole
    let third = try SimulatedLog(disk)
    try third.snapshot()
    try third.close()
    disk.files[LogNames.snapshot(0)] = nil
    #expect(try SimulatedLog(disk).log.opening.snapshot == 10)
    #expect(try LogReader(disk).verify().damage == [damage])
  }

  @Test("The snapshot that the records depend on may become another one, whenever that ends")
  func compactedSnapshot() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(history: .nothing, segmentBytes: 300))
    try log.snapshot()
    for number in 1...10 { try log.write(number...number) }
    try log.snapshot()
    for number in 11...15 { try log.write(number...number) }
    try log.close()
    #expect(try LogReader(disk).verify().isWhole)
    let whole = disk.files
    disk.files[LogNames.snapshot(10)] = nil
    #expect(try LogReader(disk).verify().damage.contains { $0.file == LogNames.snapshot(10) })
    disk.files = whole
    // Another one on top of it.
    let again = try SimulatedLog(disk, .init(history: .all))
    try again.snapshot()
    try again.close()
    #expect(try LogReader(disk).verify().isWhole)
    disk.files[LogNames.snapshot(15)] = nil
    #expect(try LogReader(disk).verify().isWhole)
    #expect(try SimulatedLog(disk).log.opening.snapshot == 10)
  }
}
