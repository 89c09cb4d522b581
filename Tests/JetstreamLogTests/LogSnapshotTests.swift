import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Snapshots of a log")
struct LogSnapshotTests {
  @Test("Opening reads the snapshot and what follows it, and nothing before")
  func tail() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 1000))
    try log.write(1...50)
    try log.snapshot()
    try log.write(51...60)
    try log.close()
    // Old segments are not looked at, apart from their headers.
    var files = disk.files
    let first = LogNames.segment(1)
    files[first]![files[first]!.count - 10] ^= 1
    disk.files = files
    let again = try SimulatedLog(disk)
    #expect(again.log.opening.snapshot == 50 && again.log.opening.tailCount == 10)
    #expect(again.log.opening.damagedSnapshots.isEmpty)
    #expect(try !LogReader(disk).verify().isWhole)
    let snapshot = try #require(try LogReader(disk).snapshot())
    #expect(snapshot.sequence == 50 && snapshot.kept.isEmpty)
    #expect(numbers(snapshot.state) == Array(1...50))
  }

  @Test("History is kept as asked", arguments: [LogHistory.all, .nothing, .last(25)])
  func history(_ history: LogHistory) throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(history: history, segmentBytes: 500))
    for end in stride(from: 10, through: 100, by: 10) {
      try log.write((end - 9)...end)
      try log.snapshot()
    }
    try log.write(101...105)
    let reader = LogReader(disk)
    let verification = try reader.verify()
    #expect(verification.isWhole)
    let first = try #require(verification.records?.lowerBound)
    switch history {
    case .all: #expect(first == 1 && verification.snapshots.count == 10)
    case .nothing: #expect(first == 101 && verification.snapshots == [100])
    case .last(let count):
      // When the last snapshot was made, there were 100 records.
      #expect(first <= 101 - count && first > 101 - count - 20)
      #expect(verification.snapshots == [70, 80, 90, 100])
    }
    #expect(numbers(try reader.all()) == Array(first...105))
    if first > 1 {
      #expect(throws: LogError.notKept(sequence: 1, kept: first...105)) {
        try reader.all(from: 1)
      }
    }
    try log.close()
    #expect(try SimulatedLog(disk).log.lastSequence == 105)
  }

  @Test(
    "Closing waits for a snapshot that was asked for before, and nothing touches the files after it"
  )
  func closing() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(
      disk, .init(durability: .interval(.seconds(1)), history: .nothing, segmentBytes: 500))
    try log.write(1...10)
    let (made, closed) = (ResultBox(), ResultBox())
    log.log.whenSynced { _ in }
    log.drain()
    log.log.snapshot(at: 10, standingFor: [.note], state: { [] }, then: { made.put($0) })
    log.log.close { closed.put($0) }
    while closed.result == nil {
      if !log.snapshots.step() { try #require(log.queue.step()) }
    }
    try closed.result?.get()
    try #require(made.result).get()
    // Another process may have the log open now.
    let files = disk.files
    log.queue.passTime()
    log.drain()
    #expect(disk.files == files)
    #expect(try SimulatedLog(disk).log.opening.snapshot == 10)
  }

  @Test("Records of kinds that the state does not stand for are carried along")
  func kept() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(history: .nothing, segmentBytes: 500))
    for number in 1...30 {
      try log.log.append(number % 7 == 0 ? .other : .note, payload(number))
      log.drain()
    }
    try log.snapshot()
    try log.log.append(.other, payload(31))
    try log.write(32...40)
    try log.snapshot()
    let snapshot = try #require(try LogReader(disk).snapshot())
    #expect(snapshot.sequence == 40)
    #expect(snapshot.kept.map(\.sequence) == [7, 14, 21, 28, 31])
    #expect(numbers(snapshot.kept) == [7, 14, 21, 28, 31])
    #expect(snapshot.kept.allSatisfy { $0.kind == .other })
    // Whoever stands for them later ends that.
    let box = ResultBox()
    log.log.snapshot(
      at: 40, standingFor: [.note, .other], state: { [RecordContent(.state, payload(1))] },
      then: { box.put($0) }
    )
    log.drain()
    try #require(box.result).get()
    #expect(try LogReader(disk).snapshot()?.kept == [])
  }

  @Test("A damaged snapshot is passed over, and said, if the records are all there")
  func damaged() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 500))
    try log.write(1...20)
    try log.snapshot()
    try log.write(21...40)
    try log.snapshot()
    try log.write(41...45)
    try log.close()
    let whole = disk.files
    for (name, others) in [(LogNames.snapshot(40), 20), (LogNames.snapshot(20), 40)] {
      for change in [(0, 3), (1, 100), (2, 700)] {
        var files = whole
        switch change.0 {
        case 0: files[name] = Array(files[name]![..<change.1])
        case 1: files[name]![change.1] ^= 4
        default: files[name]!.removeLast(files[name]!.count - change.1)
        }
        disk.files = files
        let again = try SimulatedLog(disk)
        #expect(again.log.opening.snapshot == others)
        #expect(again.log.opening.damagedSnapshots.count == (others == 20 ? 1 : 0))
        #expect(again.log.lastSequence == 45)
        #expect(try LogReader(disk).snapshot()?.sequence == others)
        #expect(try LogReader(disk).verify().damage.map(\.file) == [name])
        try again.close()
      }
    }
    // Without the records, there is nothing to begin with.
    disk.files = whole
    let log2 = try SimulatedLog(disk, .init(history: .nothing))
    log2.log.compact(keeping: .nothing) { _ in }
    log2.drain()
    try log2.close()
    var files = disk.files
    files[LogNames.snapshot(40)]![90] ^= 1
    disk.files = files
    #expect(throws: LogError.self) { try SimulatedLog(disk) }
  }

  @Test("A snapshot whose name is not durable counts only in place of one of the same state")
  func unsyncedName() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    disk.inject([.syncDirectory(EIO)])
    #expect(throws: LogError.self) { try log.snapshot() }
    #expect(try !disk.hasFaults && LogReader(disk).snapshot() == nil)
    try log.snapshot()
    disk.inject([.syncDirectory(EIO)])
    #expect(throws: LogError.self) { try log.snapshot() }
    #expect(try !disk.hasFaults && LogReader(disk).snapshot()?.sequence == 0)
    try log.close()
    #expect(try LogReader(disk).verify().isWhole)
  }

  @Test(
    "A snapshot that could not be noted in the lock file counts, and is missed when it is lost",
    arguments: [LogFileError.Operation.write, .sync])
  func unnoted(operation: LogFileError.Operation) throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    disk.inject([.lock(operation, EIO)])
    try log.snapshot()
    #expect(try !disk.hasFaults && LogReader(disk).snapshot()?.sequence == 0)
    try log.write(1...3)
    try log.close()
    #expect(try SimulatedLog(disk).log.opening.snapshot == 0)
    disk.kill()
    disk.files[LogNames.snapshot(0)] = nil
    #expect(throws: LogError.damaged(LogDamage(missingSnapshot: 0, readable: 1...3))) {
      try SimulatedLog(disk)
    }
  }

  @Test("A snapshot counts although what it replaces could not be removed; the next one removes it")
  func unremoved() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(history: .nothing))
    try log.snapshot()
    try log.write(1...10)
    // Before anything is removed, the new snapshot is noted as the oldest one.
    disk.inject([.lock(.sync, EIO)])
    try log.snapshot()
    #expect(!disk.hasFaults)
    #expect(try LogReader(disk).snapshot()?.sequence == 10)
    #expect(try LogReader(disk).firstSequence() == 1)
    try log.write(11...12)
    try log.snapshot()
    #expect(try LogReader(disk).firstSequence() == 13)
    #expect(try LogReader(disk).verify().snapshots == [12])
  }

  @Test("A snapshot for which the disk has no room leaves the room there is to the next records")
  func noRoom() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...50)
    log.log.whenDurable(50, needsSync: true, andRoll: true) { _ in }
    log.drain()
    disk.capacity = disk.usedBytes + 2_000
    #expect(throws: LogError.self) { try log.snapshot() }
    try log.write(51...55)
    #expect(log.log.failure == nil && log.log.durableSequence == 55)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...55))
  }

  @Test("A snapshot that was being written when the process ended is not one")
  func incomplete() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...5)
    try log.close()
    var files = disk.files
    files[LogNames.newSnapshot] = Array("{\"seq\":".utf8)
    files[LogNames.newSegment] = []
    disk.files = files
    #expect(try LogReader(disk).verify().isWhole)
    #expect(try SimulatedLog(disk).log.lastSequence == 5)
    #expect(disk.files[LogNames.newSnapshot] == nil && disk.files[LogNames.newSegment] == nil)
  }
}
