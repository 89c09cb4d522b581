import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("A disk that fails under a log")
struct LogFaultTests {
  @Test("Short writes and signals go unnoticed")
  func shortWrites() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 600))
    disk.inject([
      .shortWrite(1), .shortWrite(7), .write(EINTR), .shortWrite(50), .sync(EINTR), .sync(EINTR),
      .shortWrite(3), .sync(EINTR), .rename(EINTR), .syncDirectory(EINTR),
    ])
    for number in 1...30 { try log.write(number...number) }
    #expect(log.log.durableSequence == 30 && log.log.failure == nil)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...30))
  }

  @Test("On a full disk appends wait in memory; when there is room, all are there once, in order")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 3000))
    try log.write(1...20)
    disk.isFull = true
    var boxes: [ResultBox] = []
    for number in 21...60 {
      let box = ResultBox()
      try log.log.append(.note, payload(number)).whenDurable { box.put($0) }
      log.drain()
      boxes.append(box)
    }
    let durable = log.log.durableSequence
    #expect((20..<30).contains(durable))
    let full = LogError.file(LogFileError(.write, LogNames.segment(1), code: ENOSPC))
    #expect(
      { if case .file(let error)? = log.log.failure { error.code == ENOSPC } else { false } }())
    #expect(
      "\(full)" == "The file system failed: write log-000000000001.jsonl: No space left on device.")
    #expect(boxes.count { if case .failure? = $0.result { true } else { false } } >= 60 - durable)
    // What is read meanwhile is whole.
    #expect(numbers(try LogReader(disk).all()).prefix(durable) == Array(1...durable)[...])
    disk.isFull = false
    let box = ResultBox()
    log.log.whenSynced { box.put($0) }
    log.drain()
    try #require(box.result).get()
    #expect(log.log.failure == nil && log.log.durableSequence == 60)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...60))
    #expect(try LogReader(disk).verify().isWhole)
  }

  @Test("After a failed sync, what was not durable is written again to a fresh segment")
  func failedSync() throws {
    for seed in 1...30 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk)
      try log.write(1...5)
      disk.inject([.sync(EIO)])
      let box = ResultBox()
      for number in 6...8 { try log.log.append(.note, payload(number)) }
      try log.log.append(.note, payload(9)).whenDurable { box.put($0) }
      log.drain()
      #expect(throws: LogError.file(LogFileError(.sync, LogNames.segment(1), code: EIO))) {
        try #require(box.result).get()
      }
      #expect(log.log.durableSequence == 5)
      // A second sync would succeed, and mean nothing: the next attempt does not rely on it.
      try log.write(10...12)
      #expect(log.log.durableSequence == 12)
      disk.crash()
      #expect(numbers(try LogReader(disk).all()) == Array(1...12), "seed \(seed)")
      let verification = try LogReader(disk).verify()
      #expect(verification.isWhole && verification.segments == 2)
      let again = try SimulatedLog(disk)
      try again.write(13...15)
      #expect(numbers(try LogReader(disk).all()) == Array(1...15))
    }
  }

  @Test("A sync that fails in a segment without durable records replaces it")
  func failedFirstSync() throws {
    let disk = SimulatedDisk(seed: 3)
    let log = try SimulatedLog(disk)
    disk.inject([.sync(EIO), .sync(EIO), .rename(EIO), .syncDirectory(EIO)])
    for number in 1...5 { try log.write(number...number) }
    #expect(log.log.durableSequence == 5 && log.log.failure == nil)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...5))
    #expect(try LogReader(disk).verify().segments == 1)
  }

  @Test("Waiting again is a new attempt")
  func waitAgain() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    disk.inject([.write(EIO), .write(ENOSPC)])
    let receipt = try log.log.append(.note, payload(1))
    log.drain()
    var boxes: [ResultBox] = []
    for _ in 0..<3 {
      let box = ResultBox()
      receipt.whenDurable { box.put($0) }
      log.drain()
      boxes.append(box)
    }
    #expect(throws: LogError.self) { try #require(boxes[0].result).get() }
    try #require(boxes[1].result).get()
    try #require(boxes[2].result).get()
    #expect(numbers(try LogReader(disk).all()) == [1])
  }

  @Test("A snapshot that cannot be written changes nothing")
  func failedSnapshot() throws {
    let faults: [SimulatedDisk.Fault] = [
      .open(EMFILE), .write(ENOSPC), .sync(EIO), .rename(EIO), .syncDirectory(EIO),
    ]
    for fault in faults {
      let disk = SimulatedDisk(seed: 9)
      let log = try SimulatedLog(disk, .init(history: .nothing))
      try log.write(1...10)
      log.log.whenDurable(10, needsSync: true, andRoll: true) { _ in }
      log.drain()
      disk.inject([fault])
      #expect(throws: LogError.self, "\(fault)") { try log.snapshot() }
      #expect(disk.files[LogNames.newSnapshot] == nil, "\(fault)")
      try log.write(11...12)
      disk.crash()
      let again = try SimulatedLog(disk, .init(history: .nothing))
      let base = again.log.opening.snapshot ?? 0
      let tail = numbers(try LogReader(disk).all(from: base + 1))
      #expect(tail == Array((base + 1)...12), "\(fault)")
      try again.snapshot()
      #expect(try LogReader(disk).snapshot()?.sequence == 12)
    }
  }

  @Test("Closing a log that cannot be written fails, and can be tried again")
  func close() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .none))
    try log.write(1...3)
    disk.inject([.sync(EIO)])
    #expect(throws: LogError.self) { try log.close() }
    try log.write(4...5)
    try log.close()
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...5))
  }

  @Test("A log that is closed twice at once stays closed, although it is moved in between")
  func closeTwice() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    let boxes = [ResultBox(), ResultBox()]
    for box in boxes { log.log.close { box.put($0) } }
    while boxes[0].result == nil {
      if !log.queue.step() { Issue.record("The log does not close.") }
      log.snapshots.drain()
    }
    for file in try disk.list() { try disk.remove(file) }
    log.drain()
    for box in boxes { #expect(throws: Never.self) { try #require(box.result).get() } }
    #expect(throws: LogError.closed) { try log.log.append(.note, payload(4)) }
  }

  @Test(
    "What is appended between a close that fails and another one is written before the log is closed"
  )
  func closeAgain() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    let boxes = [ResultBox(), ResultBox()]
    for box in boxes { log.log.close { box.put($0) } }
    disk.isAway = true
    while boxes[0].result == nil, log.queue.step() { log.snapshots.drain() }
    disk.isAway = false
    #expect(throws: LogError.self) { try #require(boxes[0].result).get() }
    try log.log.append(.note, payload(4))
    log.drain()
    #expect(throws: Never.self) { try #require(boxes[1].result).get() }
    #expect(throws: LogError.closed) { try log.log.append(.note, payload(5)) }
    #expect(numbers(try LogReader(disk).all()) == Array(1...4))
  }

  /// Closes a log; fails if that does not end.
  private func close(_ log: SimulatedLog) throws {
    let box = ResultBox()
    log.log.close { box.put($0) }
    for _ in 0..<100 where box.result == nil {
      log.queue.step()
      log.snapshots.drain()
    }
    try #require(box.result, "The log does not close.").get()
  }

  @Test("Closing a log that is not in its place ends with that, although everything is durable")
  func closeAway() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    disk.isAway = true
    let moved = LogError.moved(path: "simulated")
    #expect(throws: moved) { try log.snapshot() }
    #expect(throws: moved) { try close(log) }
    disk.isAway = false
    try close(log)
    #expect(numbers(try LogReader(disk).all()) == [1, 2, 3])
  }

  @Test("Closing a log whose next segment cannot be made ends with that, and can be tried again")
  func closeFullSegment() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 300))
    try log.write(1...3)
    disk.inject(Array(repeating: .open(EMFILE), count: 1000))
    try log.log.append(.note, payload(4))
    log.queue.drain()
    let full = LogError.file(LogFileError(.open, LogNames.newSegment, code: EMFILE))
    for _ in 0..<2 { #expect(throws: full) { try close(log) } }
    #expect(log.log.durableSequence == 4)
    disk.clearFaults()
    try log.write(5...5)
    try close(log)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...5))
  }

  @Test("Opening fails with what the file system says, and leaves the log to others")
  func opening() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    disk.kill()
    for fault in [SimulatedDisk.Fault.open(EACCES), .sync(EIO), .syncDirectory(EIO)] {
      disk.inject([fault])
      #expect(throws: LogError.self) { try SimulatedLog(disk) }
    }
    #expect(try SimulatedLog(disk).log.lastSequence == 3)
  }

  @Test("What a process left behind that was killed after a failed sync is written again")
  func failedSyncAndKill() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk)
      try log.write(1...5)
      disk.inject([.sync(EIO)])
      try log.write(6...9)
      disk.kill()
      // The records are to be read, and the system takes them for written.
      let again = try SimulatedLog(disk)
      #expect(again.log.durableSequence == 9)
      disk.crash()
      #expect(numbers(try LogReader(disk).all()) == Array(1...9), "seed \(seed)")
    }
  }

  @Test("A segment that could not be begun is begun before anything else is written")
  func failedRoll() throws {
    for fault in [SimulatedDisk.Fault.open(EIO), .rename(EIO), .syncDirectory(EIO), .write(EIO)] {
      for seed in 1...10 as ClosedRange<UInt64> {
        let disk = SimulatedDisk(seed: seed)
        let log = try SimulatedLog(disk)
        try log.write(1...3)
        disk.inject([fault])
        // The snapshot needs no new segment.
        try log.snapshot()
        #expect(log.log.failure != nil)
        try log.write(4...6)
        #expect(log.log.failure == nil)
        try log.snapshot()
        try log.write(7...9)
        disk.crash()
        #expect(numbers(try LogReader(disk).all()) == Array(1...9), "\(fault), seed \(seed)")
        #expect(try LogReader(disk).verify().isWhole)
      }
    }
  }

  @Test("A segment stays until the next one has been begun, whatever a snapshot finds on the disk")
  func removalDuringFailedRoll() throws {
    for seed in 1...10 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk, .init(history: .nothing))
      try log.write(1...3)
      disk.inject([.rename(EIO)])
      let box = ResultBox()
      log.log.snapshot(
        at: 3, standingFor: [.note], state: { (1...3).map { RecordContent(.state, payload($0)) } },
        then: { box.put($0) })
      log.queue.drain()
      // The next segment gets its name, and the log does not learn that it has.
      disk.inject([.syncDirectory(EIO)])
      try log.log.append(.note, payload(4))
      log.queue.drain()
      #expect(log.log.failure != nil && log.log.durableSequence == 3)
      log.drain()
      try #require(box.result).get()
      try log.write(5...6)
      #expect(log.log.failure == nil && log.log.durableSequence == 6, "seed \(seed)")
      disk.crash()
      #expect(try SimulatedLog(disk).log.lastSequence == 6, "seed \(seed)")
      #expect(try LogReader(disk).verify().isWhole, "seed \(seed)")
    }
  }

  @Test("Files go one after the other, also when the directory could not be synced in between")
  func failedRemoval() throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      let log = try SimulatedLog(disk, .init(segmentBytes: 300))
      for number in 1...12 { try log.write(number...number) }
      try log.snapshot()
      // The first sync is before all removals.
      disk.inject([.syncDirectory(EINTR), .syncDirectory(EIO)])
      for _ in 0..<3 {
        log.log.compact(keeping: .nothing) { _ in }
        log.drain()
        disk.inject([.syncDirectory(EIO)])
      }
      disk.crash()
      #expect(try LogReader(disk).verify().isWhole, "seed \(seed)")
      #expect(try SimulatedLog(disk).log.lastSequence == 12, "seed \(seed)")
    }
  }
}
