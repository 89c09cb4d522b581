import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("A log of records")
struct RecordLogTests {
  @Test("What was appended is read back, in order and from any number on")
  func readBack() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    #expect(log.log.opening.isNew && log.log.opening.isEmpty)
    try log.write(1...20)
    let reader = LogReader(disk)
    #expect(numbers(try reader.all()) == Array(1...20))
    for first in 1...21 {
      let records = try reader.all(from: first)
      #expect(records.map(\.sequence) == Array(first..<21))
    }
    try log.close()
    let again = try SimulatedLog(disk)
    #expect(again.log.lastSequence == 20 && again.log.durableSequence == 20)
    #expect(again.log.opening.tailCount == 20 && again.log.opening.tornBytes == 0)
    try again.write(21...30)
    #expect(numbers(try reader.all()) == Array(1...30))
    #expect(try reader.verify().records == 1...30)
  }

  @Test("Segments roll over, say where the one before ends, and are read as one log")
  func segments() throws {
    let disk = SimulatedDisk()
    let configuration = LogConfiguration(segmentBytes: 1000)
    var log = try SimulatedLog(disk, configuration)
    for number in 1...100 {
      try log.log.append(.note, payload(number))
      log.drain()
      if number % 17 == 0 {
        try log.close()
        log = try SimulatedLog(disk, configuration)
      }
    }
    let verification = try LogReader(disk).verify()
    #expect(verification.segments > 10)
    #expect(verification.isWhole && verification.records == 1...100)
    for first in [1, 2, 13, 50, 99, 100] {
      #expect(numbers(try LogReader(disk).all(from: first)) == Array(first...100))
    }
    for (name, bytes) in disk.files where name.hasPrefix("log-") { #expect(bytes.count < 1300) }
  }

  @Test("Many appends share one sync, and all are told in order")
  func groupCommit() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    let before = disk.syncCount
    let boxes = try (1...100).map { number in
      let box = ResultBox()
      try log.log.append(.note, payload(number)).whenDurable { box.put($0) }
      return box
    }
    #expect(log.log.durableSequence == 0 && boxes.allSatisfy { $0.result == nil })
    log.drain()
    #expect(disk.syncCount == before + 1)
    #expect(log.log.durableSequence == 100)
    for box in boxes { try box.result?.get() }
    #expect(boxes.allSatisfy { $0.result != nil })
  }

  @Test("A batch is one, although its records have numbers of their own")
  func batch() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.log.append(.note, payload(1))
    let receipt = try log.log.append((2...5).map { RecordContent(.note, payload($0)) })
    #expect(receipt.sequence == 5 && !receipt.isDurable)
    log.drain()
    #expect(receipt.isDurable)
    try log.close()
    // Without its last line, all of it is torn.
    let name = LogNames.segment(1)
    var bytes = try #require(disk.files[name])
    let whole = bytes.count
    bytes.removeLast(10)
    disk.files = [name: bytes]
    let again = try SimulatedLog(disk)
    #expect(again.log.lastSequence == 1)
    let cut = try #require(disk.files[name])
    #expect(again.log.opening.tornBytes == whole - 10 - cut.count)
    try again.write(2...3)
    #expect(numbers(try LogReader(disk).all()) == [1, 2, 3])
  }

  @Test("With an interval, appends are written at once and synced when it ends")
  func interval() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .interval(.seconds(1))))
    let box = ResultBox()
    let before = disk.syncCount
    try log.log.append(.note, payload(1)).whenDurable { box.put($0) }
    log.drain()
    #expect(numbers(try LogReader(disk).all()) == [1])
    #expect(box.result == nil && disk.syncCount == before)
    log.queue.passTime()
    #expect(box.result != nil && disk.syncCount == before + 1)
    log.queue.passTime()
    #expect(disk.syncCount == before + 1)
    try log.write(2...3)
    #expect(log.log.durableSequence == 1)
    let synced = ResultBox()
    log.log.whenSynced { synced.put($0) }
    log.drain()
    #expect(log.log.durableSequence == 3 && synced.result != nil)
  }

  @Test("Without durability, an append counts once it is written; sync still means it")
  func none() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .none, segmentBytes: 10_000))
    let before = disk.syncCount
    for number in 1...10 {
      try log.write(number...number)
      #expect(log.log.durableSequence == number)
    }
    // One sync, of the mark, says that there are records which are not synced.
    #expect(disk.syncCount == before + 1)
    let synced = ResultBox()
    log.log.whenSynced { synced.put($0) }
    log.drain()
    #expect(disk.syncCount == before + 2 && synced.result != nil)
    disk.crash()
    #expect(try SimulatedLog(disk).log.lastSequence == 10)
  }

  @Test("More than may wait is refused, and nothing of it is in the log")
  func backlog() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 16 << 20, backlogBytes: 1000))
    var last = 0
    #expect(throws: LogError.self) {
      for number in 1...100 {
        try log.log.append(.note, payload(number))
        last = number
      }
    }
    #expect((3...20).contains(last))
    log.drain()
    try log.write((last + 1)...(last + 1))
    #expect(numbers(try LogReader(disk).all()) == Array(1...(last + 1)))
  }

  @Test("A closed log accepts nothing and can be opened again")
  func close() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.log.append(.note, payload(1))
    #expect(throws: LogError.inUse(path: "simulated")) { try SimulatedLog(disk) }
    try log.close()
    try log.close()
    #expect(throws: LogError.closed) { try log.log.append(.note, payload(2)) }
    let again = try SimulatedLog(disk)
    #expect(again.log.lastSequence == 1)
    #expect(LogMark(disk) == LogMark(isOpen: true, durable: 1))
  }

  @Test("On a real disk: append, await, block, close, read")
  func real() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path + "/log", configuration: .init(segmentBytes: 2000))
    for number in 1...20 { try await log.append(.note, payload(number)).durable() }
    for number in 21...40 { try log.append(.note, payload(number)).wait() }
    #expect(throws: LogError.inUse(path: directory.path + "/log")) {
      try RecordLog(directory.path + "/log")
    }
    for number in 41...60 { try log.append(.note, payload(number)) }
    try await log.sync()
    #expect(log.durableSequence == 60)
    try await log.close()
    let reader = try LogReader(directory.path + "/log")
    #expect(numbers(try reader.all()) == Array(1...60))
    let verification = try reader.verify()
    #expect(verification.isWhole && verification.segments >= 3 && verification.tornBytes == 0)
    let again = try RecordLog(directory.path + "/log")
    #expect(again.lastSequence == 60)
    #expect(throws: LogError.self) { try LogReader(directory.path + "/nowhere") }
  }

  #if os(Linux)
  @Test("A process that is being started does not hold the lock of a log that was closed")
  func inheritedLock() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path)
    // Until a new process runs its program, it has copies of all descriptors.
    let folder = "/proc/self/fd"
    let copies = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))
        == directory.path + "/lock"
    }.compactMap { Int32($0) }.map { FileHandle(fileDescriptor: dup($0), closeOnDealloc: true) }
    #expect(copies.count == 1)
    try await log.close()
    try await RecordLog(directory.path).close()
    withExtendedLifetime(copies) {}
  }
  #endif

  @Test("Many tasks append at once: every record is there once, each task's in order")
  func manyTasks() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path, configuration: .init(segmentBytes: 20_000))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for number in 0..<50 {
            try await log.append(.note, payload(task * 50 + number)).durable()
          }
        }
      }
      try await group.waitForAll()
    }
    let all = numbers(try LogReader(directory.path).all())
    #expect(all.sorted() == Array(0..<400))
    for task in 0..<8 {
      let own = all.filter { $0 / 50 == task }
      #expect(own == own.sorted())
    }
  }

  @Test("A file that is newer than this program is refused by name")
  func newerVersion() throws {
    let disk = SimulatedDisk()
    var line: [UInt8] = []
    LogLine.append(
      sequence: 0, kind: .segment, synced: 0,
      payload: Array(#"{"format":2,"log":"x"}"#.utf8), to: &line)
    disk.files = [LogNames.segment(1): line]
    #expect(throws: LogError.newerVersion(file: "log-000000000001.jsonl", version: 2)) {
      try SimulatedLog(disk)
    }
  }

  @Test(
    "A log that is released without being closed writes and syncs what it has",
    arguments: [LogDurability.everyChangeSet, .interval(.seconds(60)), .none])
  func released(_ durability: LogDurability) throws {
    for seed in 0..<10 as Range<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      var log: SimulatedLog? = try SimulatedLog(disk, .init(durability: durability))
      try log?.write(1...5)
      if seed.isMultiple(of: 2) {
        disk.inject([.write(ENOSPC)])
        try log?.write(6...6)
        #expect(log?.log.failure != nil)
      }
      log = nil
      disk.crash()
      let last = seed.isMultiple(of: 2) ? 6 : 5
      #expect(numbers(try LogReader(disk).all()) == Array(1...last))
    }
  }

  @Test("A log of a process that was killed changes nothing when it is released")
  func releasedLate() throws {
    let disk = SimulatedDisk()
    var log: SimulatedLog? = try SimulatedLog(disk, .init(durability: .none))
    try log?.write(1...5)
    disk.inject([.sync(EIO)])
    let box = ResultBox()
    log?.log.whenSynced { box.put($0) }
    log?.drain()
    disk.kill()
    let next = try SimulatedLog(disk)
    try next.write(6...6)
    let files = disk.files
    log = nil
    #expect(disk.files == files)
    try next.close()
  }
}
