import Foundation
import JetstreamSimulation
import Synchronization
import Testing

@testable import Jetstream

@Suite("Records that are written at once")
struct LogWriteTests {
  @Test("A killed process leaves every record, although nothing of it was synced")
  func kill() throws {
    for segmentBytes in [200, 1 << 20] {
      let disk = SimulatedDisk(seed: 1)
      let log = try SimulatedLog(disk, .init(segmentBytes: segmentBytes))
      for number in 1...30 {
        try log.log.append(.note, payload(number))
        log.log.writeNow()
        // The queue is behind, and comes to its work now and then.
        if number.isMultiple(of: 7) { log.queue.step() }
      }
      #expect(log.log.durableSequence < 30)
      disk.kill()
      let again = try SimulatedLog(disk)
      #expect(again.log.opening.tornBytes == 0)
      #expect(numbers(try LogReader(disk).all()) == Array(1...30))
      try again.write(31...32)
      disk.crash()
      #expect(numbers(try LogReader(disk).all()) == Array(1...32))
    }
  }

  @Test("A record is in the file before the sync of an earlier one has ended")
  func duringSync() throws {
    let disk = SimulatedDisk()
    let directory = InterruptedDirectory(disk)
    let queue = ManualLogQueue()
    let log = try RecordLog(
      directory, configuration: .init(), queue: queue, snapshotQueue: ManualLogQueue())
    try log.append(.note, payload(1))
    let seen = Mutex<[Int]>([])
    directory.onSync { _ in
      directory.onSync { _ in }
      try! log.append(.note, payload(2))
      log.writeNow()
      let found = numbers(try! LogReader(disk).all())
      seen.withLock { $0 = found }
    }
    queue.step()
    #expect(seen.withLock { $0 } == [1, 2])
    // What came in the middle of the sync does not count as synced.
    #expect(log.durableSequence == 1)
    queue.drain()
    #expect(log.durableSequence == 2)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == [1, 2])
  }

  @Test("A record is in the file at once also while very much is being synced")
  func duringLongSync() throws {
    let disk = SimulatedDisk()
    let directory = InterruptedDirectory(disk)
    let queue = ManualLogQueue()
    let log = try RecordLog(
      directory, configuration: .init(durability: .none, segmentBytes: 1 << 30), queue: queue,
      snapshotQueue: ManualLogQueue())
    let large = Array("\"\(String(repeating: "x", count: 1 << 20))\"".utf8)
    let seen = Mutex(0)
    directory.onSync { _ in
      directory.onSync { _ in }
      try! log.append(.note, payload(1))
      log.writeNow()
      let found = try! LogReader(disk).all().count
      seen.withLock { $0 = found }
    }
    var count = 0
    while seen.withLock({ $0 }) == 0, count < 40 {
      try log.append(.note, large)
      count += 1
      queue.step()
    }
    #expect(count >= 16 && seen.withLock { $0 } == count + 1)
    queue.drain()
  }

  @Test("A record waits in memory, and its caller for nothing, while a failed sync is made up for")
  func duringRepetition() throws {
    let disk = SimulatedDisk()
    let directory = InterruptedDirectory(disk)
    let queue = ManualLogQueue()
    let log = try RecordLog(
      directory, configuration: .init(), queue: queue, snapshotQueue: ManualLogQueue())
    disk.inject([.sync(EIO)])
    try log.append(.note, payload(1))
    queue.drain()
    #expect(log.failure != nil)
    let calls = Mutex(0)
    // The lines are written again with a sync of their segment, and one of its name.
    directory.onSync { _ in
      guard calls.withLock({ $0 }) < 2 else { return }
      calls.withLock { $0 += 1 }
      try! log.append(.note, payload(1 + calls.withLock { $0 }))
      log.writeNow()
    }
    log.whenSynced { _ in }
    queue.drain()
    #expect(calls.withLock { $0 } == 2)
    #expect(log.failure == nil && log.durableSequence == 3)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == [1, 2, 3])
  }

  @Test("A snapshot that is asked for while its last record is synced ends the segment, too")
  func snapshotDuringSync() throws {
    let disk = SimulatedDisk()
    let directory = InterruptedDirectory(disk)
    let (queue, snapshots) = (ManualLogQueue(), ManualLogQueue())
    let log = try RecordLog(
      directory, configuration: .init(history: .nothing), queue: queue, snapshotQueue: snapshots)
    for number in 1...3 { try log.append(.note, payload(number)) }
    let made = ResultBox()
    directory.onSync { _ in
      directory.onSync { _ in }
      log.snapshot(at: 3, standingFor: [.note], state: { [] }, then: { made.put($0) })
    }
    // The sync makes the records durable. The segment ends with the next piece of work.
    queue.step()
    #expect(log.durableSequence == 3)
    snapshots.drain()
    queue.drain()
    snapshots.drain()
    try #require(made.result).get()
    #expect(try LogReader(disk).firstSequence() == 4)
    #expect(try LogReader(disk).snapshot()?.sequence == 3)
  }

  @Test("All that was appended is written when that is asked for, however much it is")
  func writeAll() throws {
    let (disk, queue) = (SimulatedDisk(), ManualLogQueue())
    let log = try RecordLog(
      disk, configuration: .init(), queue: queue, snapshotQueue: queue)
    func last() throws -> Int {
      var (cursor, last) = (try LogReader(disk).read(from: 1), 0)
      while let line = try cursor.next() { last = line.sequence }
      return last
    }
    try log.append(.note, payload(1, length: 2 << 20))
    log.writeNow()
    #expect(try last() == 0)
    try log.writeAll()
    #expect(try last() == 1 && log.durableSequence == 0)
    queue.drain()
    #expect(log.durableSequence == 1)
    try log.writeAll()
    // After a failed sync only the queue may write again. The call asks it to.
    disk.inject([.sync(EIO)])
    try log.append(.note, payload(2))
    queue.step()
    #expect(throws: LogError.self) { try log.writeAll() }
    queue.drain()
    try log.writeAll()
    #expect(try last() == 2 && log.durableSequence == 2)
  }

  @Test("A client's log is read with the change sets that are not written yet")
  func unwrittenHistory() throws {
    let queue = ManualLogQueue()
    let records = try RecordLog(
      SimulatedDisk(), configuration: .init(history: .nothing), queue: queue, snapshotQueue: queue)
    let (log, root) = (ClientLog(records), UUID())
    let long = SyncFragment(
      .change, uuid: root, className: "Canvas",
      properties: ["name": .string(String(repeating: "x", count: 2 << 20))])
    let made: [ReplicaRecord] = [
      .named(client: UUID(), root: root), .made(number: 1, ChangeSet(fragments: [long], undo: [])),
    ]
    log.append(made.map(\.content), after: 0) { _ in }
    #expect(try log.history()?.records.count == made.count)
  }

  @Test("A log that is closed between a snapshot's request and its commit makes the snapshot first")
  func closeBeforeCommit() throws {
    let disk = SimulatedDisk()
    let directory = InterruptedDirectory(disk)
    let (queue, snapshots) = (HoldingLogQueue(), ManualLogQueue())
    let log = try RecordLog(
      directory, configuration: .init(history: .nothing), queue: queue, snapshotQueue: snapshots)
    for number in 1...3 { try log.append(.note, payload(number)) }
    let (made, closed) = (ResultBox(), ResultBox())
    directory.onSync { _ in
      directory.onSync { _ in }
      // Another thread closes the log before this one has put its commit into the queue.
      queue.hold {
        log.snapshot(at: 3, standingFor: [.note], state: { [] }, then: { made.put($0) })
      }
      log.close { closed.put($0) }
    }
    // The commit, and then the attempt to close.
    for _ in 1...10 { queue.manual.step() }
    snapshots.drain()
    #expect(made.result == nil && closed.result == nil)
    queue.release()
    for _ in 1...10 {
      queue.manual.step()
      snapshots.step()
    }
    try #require(made.result).get()
    try #require(closed.result).get()
    #expect(try LogReader(disk).snapshot()?.sequence == 3)
    #expect(try LogReader(disk).firstSequence() == 4)
  }

  @Test(
    "A process that is killed, and a machine that stops, in the middle of whatever is synced leave what they promise",
    arguments: [false, true])
  func duringRolls(isMachine: Bool) throws {
    // Segments end in between, and with snapshots.
    func work(on disk: SimulatedDisk, stopAt: Int?) throws -> (syncs: Int, written: Int, safe: Int)
    {
      let directory = InterruptedDirectory(disk)
      let (queue, snapshots) = (ManualLogQueue(), ManualLogQueue())
      let log = try RecordLog(
        directory, configuration: .init(history: .nothing, segmentBytes: 400), queue: queue,
        snapshotQueue: snapshots)
      let isGone = Mutex(false)
      let last = Mutex(0)
      let append: @Sendable () -> Void = {
        let number = last.withLock { last in
          last += 1
          return last
        }
        try! log.append(.note, payload(number))
        log.writeNow()
      }
      let safe = Mutex(0)
      let opened = directory.syncCount
      directory.onSync { number in
        if isGone.withLock({ $0 }) { return }
        // Whatever is being synced, records can be appended.
        append()
        guard number - opened == stopAt else { return }
        safe.withLock { $0 = log.durableSequence }
        isGone.withLock { $0 = true }
        directory.end()
        if isMachine { disk.crash() } else { disk.kill() }
      }
      for round in 1...12 where !isGone.withLock({ $0 }) {
        append()
        queue.step()
        guard round.isMultiple(of: 4), !isGone.withLock({ $0 }) else { continue }
        let state = (1...log.lastSequence).map { RecordContent(.state, payload($0)) }
        log.snapshot(
          at: log.lastSequence, standingFor: [.note], state: { state }, then: { _ in })
        queue.step()
        snapshots.step()
      }
      return (directory.syncCount - opened, last.withLock { $0 }, safe.withLock { $0 })
    }
    let syncs = try work(on: SimulatedDisk(), stopAt: nil).syncs
    #expect(syncs > 20)
    for stop in 1...syncs {
      for seed in 1...(isMachine ? 6 : 1) as ClosedRange<UInt64> {
        let disk = SimulatedDisk(seed: seed)
        let (_, written, safe) = try work(on: disk, stopAt: stop)
        let again = try SimulatedLog(disk)
        let found = again.log.lastSequence
        #expect(found >= (isMachine ? safe : written), "sync \(stop), seed \(seed)")
        #expect(found <= written)
        let base = try LogReader(disk).snapshot()?.sequence ?? 0
        let records = numbers(try LogReader(disk).all(from: base + 1))
        #expect(records == Array((base + 1)..<(found + 1)), "sync \(stop), seed \(seed)")
        try again.write((found + 1)...(found + 3))
        #expect(try LogReader(disk).verify().isWhole)
      }
    }
  }

  @Test("Closing leaves nothing for later, whatever was written at once")
  func close() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .none, segmentBytes: 300))
    for number in 1...10 {
      try log.log.append(.note, payload(number))
      log.log.writeNow()
    }
    try log.close()
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...10))
  }
}
