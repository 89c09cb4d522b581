import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("A log that is not written to")
struct LogRestTests {
  /// A log that was written and has come to rest.
  private func restingLog(on disk: SimulatedDisk) throws -> SimulatedLog {
    let log = try SimulatedLog(disk)
    try log.write(1...5)
    #expect(disk.openCount == 1)
    log.queue.passTime()
    #expect(disk.openCount == 0)
    return log
  }

  #if os(Linux)
  /// The number of descriptors of this process that lead to files below a path.
  private func descriptors(below path: String) throws -> Int {
    let files = FileManager.default
    return try files.contentsOfDirectory(atPath: "/proc/self/fd").count {
      (try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.hasPrefix(path) == true
    }
  }

  @Test(
    "An open log takes one file descriptor, and a second one while it is written",
    arguments: [LogDurability.everyChangeSet, .interval(.seconds(1)), .none])
  func descriptors(_ durability: LogDurability) throws {
    let folder = try TemporaryDirectory()
    let path = folder.path + "/log"
    for round in 0..<2 {
      let (queue, snapshots) = (ManualLogQueue(), ManualLogQueue())
      let log = try RecordLog(
        POSIXLogDirectory(path), configuration: .init(durability: durability), queue: queue,
        snapshotQueue: snapshots)
      #expect(try descriptors(below: path) == 1)
      for part in 1...3 {
        try log.append(.note, payload(round * 3 + part))
        log.writeNow()
        queue.drain()
        #expect(try descriptors(below: path) == 2)
        // The first time that passes brings the sync, if the commit has not.
        queue.passTime()
        queue.passTime()
        #expect(try descriptors(below: path) == 1)
        #expect(!queue.isWaiting)
        #expect(log.state.withLock { $0.synced } == round * 3 + part)
      }
      #expect(numbers(try LogReader(path).all()) == Array(1...(round * 3 + 3)))
      log.close { _ in }
      while queue.step() || snapshots.step() {}
      #expect(try descriptors(below: path) == 0)
    }
    #expect(try LogReader(path).verify().isWhole)
  }
  #endif

  @Test("A log that is written again and again stays open, and looks once in a while")
  func busy() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...1)
    for number in 2...20 {
      try log.write(number...number)
      log.queue.passTime()
      #expect(disk.openCount == 1 && log.queue.waitingCount == 1)
    }
    log.queue.passTime()
    #expect(disk.openCount == 0 && log.queue.waitingCount == 0)
  }

  @Test("A log rests only once all is on stable storage, and after a failure, when that is over")
  func unsynced() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .interval(.seconds(60))))
    try log.write(1...2)
    disk.inject([.sync(EIO)])
    log.queue.passTime()
    #expect(log.log.failure != nil && disk.openCount == 1)
    log.queue.passTime()
    try log.write(3...3)
    #expect(log.log.failure == nil)
    log.queue.passTime()
    log.queue.passTime()
    #expect(disk.openCount == 0)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == [1, 2, 3])
  }

  @Test("A killed process leaves what it has written at once after a rest")
  func kill() throws {
    let disk = SimulatedDisk()
    let log = try restingLog(on: disk)
    for number in 6...8 {
      try log.log.append(.note, payload(number))
      log.log.writeNow()
    }
    disk.kill()
    let again = try SimulatedLog(disk)
    #expect(again.log.opening.tornBytes == 0)
    try again.write(9...9)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...9))
  }

  @Test("Without a descriptor for the segment, appends wait, and are written by the next attempt")
  func noDescriptors() throws {
    let disk = SimulatedDisk()
    let log = try restingLog(on: disk)
    disk.inject([.open(EMFILE), .open(EMFILE), .open(ENFILE)])
    let error = LogError.file(LogFileError(.open, LogNames.segment(1), code: EMFILE))
    let receipt = try log.log.append(.note, payload(6))
    log.log.writeNow()
    let boxes = [ResultBox(), ResultBox(), ResultBox()]
    for box in boxes {
      receipt.whenDurable { box.put($0) }
      log.drain()
    }
    #expect(throws: error) { try #require(boxes[0].result).get() }
    #expect(throws: LogError.self) { try #require(boxes[1].result).get() }
    try #require(boxes[2].result).get()
    try log.write(7...8)
    #expect(log.log.failure == nil && log.log.durableSequence == 8)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...8))
    #expect(try LogReader(disk).verify().segments == 1)
  }

  @Test("A log at rest is closed without a descriptor")
  func close() throws {
    let disk = SimulatedDisk()
    let log = try restingLog(on: disk)
    disk.inject([.open(EMFILE)])
    try log.close()
    #expect(disk.hasFaults)
    disk.clearFaults()
    disk.crash()
    #expect(try SimulatedLog(disk).log.lastSequence == 5)
  }

  @Test("A segment ends, and a snapshot is made, while the log is at rest")
  func snapshot() throws {
    let disk = SimulatedDisk()
    let log = try restingLog(on: disk)
    try log.snapshot()
    log.queue.passTime()
    #expect(disk.openCount == 0)
    try log.write(6...7)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...7))
    #expect(try LogReader(disk).verify().segments == 2)
  }

  @Test("A directory that goes away during a rest, and comes back, has all that was appended")
  func comesBack() throws {
    let disk = SimulatedDisk()
    let log = try restingLog(on: disk)
    disk.isAway = true
    try log.log.append(.note, payload(6))
    log.log.writeNow()
    log.drain()
    #expect(log.log.failure == .moved(path: "simulated") && log.log.durableSequence == 5)
    disk.isAway = false
    try log.write(7...7)
    #expect(log.log.failure == nil && log.log.durableSequence == 7)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...7))
  }

  /// The contents that a file of the same identity gets while the log is at rest.
  enum Content: CaseIterable {
    case cut, older, another, longerAnother
  }

  @Test("Another content of the segment is not written to", arguments: Content.allCases)
  func replaced(_ content: Content) async throws {
    let folder = try TemporaryDirectory()
    let (path, other) = (folder.path + "/log", folder.path + "/other")
    for (log, count) in [(path, 5), (other, content == .longerAnother ? 9 : 5)] {
      let log = try RecordLog(log)
      for number in 1...count { try await log.append(.note, payload(number)).durable() }
      try await log.close()
    }
    let log = try RecordLog(path)
    let segment = "/" + LogNames.segment(1)
    let file = try #require(FileHandle(forUpdatingAtPath: path + segment))
    let old = try #require(try file.readToEnd())
    let new: Data =
      switch content {
      case .cut: old.dropLast(1)
      case .older: old.prefix(old.count / 2)
      case .another, .longerAnother: try Data(contentsOf: URL(fileURLWithPath: other + segment))
      }
    func replace(by content: Data) throws {
      try file.truncate(atOffset: 0)
      try file.write(contentsOf: content)
    }
    try replace(by: new)
    let receipt = try log.append(.note, payload(6))
    log.writeNow()
    await #expect(throws: LogError.moved(path: path)) { try await receipt.durable() }
    await #expect(throws: LogError.moved(path: path)) { try await log.sync() }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path + segment)) == new)
    try replace(by: old)
    try await log.sync()
    try await log.close()
    #expect(numbers(try LogReader(path).all()) == Array(1...6))
  }
}
