import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("Following a log")
struct LogFollowTests {
  @Test("Records come as they become durable, in order, and the end comes with closing")
  func own() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path, configuration: .init(segmentBytes: 2000))
    try await log.append((1...30).map { RecordContent(.note, payload($0)) }).durable()
    let following = Task {
      var seen: [LogRecord] = []
      for try await record in log.follow(from: 11) {
        #expect(record.sequence <= log.durableSequence)
        seen.append(record)
      }
      return seen
    }
    for number in 31...100 { try await log.append(.note, payload(number)).durable() }
    try await log.close()
    let seen = try await following.value
    #expect(numbers(seen) == Array(11...100))
  }

  @Test("Nothing comes that is not durable")
  func durableOnly() async throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .interval(.seconds(1))))
    try log.write(1...5)
    // Another process sees what is written, and is told what is durable.
    let pauses = Pauses(log)
    var iterator = LogReader(disk).follow(from: 1) { await pauses.pause() }.makeAsyncIterator()
    #expect(numbers(try LogReader(disk).all()) == Array(1...5))
    for number in 1...8 {
      let record = try #require(try await iterator.next())
      #expect(numbers([record]) == [number])
      #expect(number <= log.log.durableSequence)
    }
    #expect(await pauses.count == 2)
  }

  @Test("A damaged lock file makes nothing durable, and one that cannot be read is an error")
  func lockFile() async throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(durability: .interval(.seconds(1))))
    // It syncs the file.
    try log.snapshot()
    try log.write(1...5)
    disk.flip(LogNames.lock, at: 20, mask: 1)
    let pauses = Pauses(log)
    var iterator = LogReader(disk).follow(from: 1) { await pauses.pause() }.makeAsyncIterator()
    for number in 1...5 {
      #expect(try await iterator.next()?.sequence == number)
      #expect(log.log.durableSequence == 5)
    }
    // A copy without the file is followed up to its end.
    let copy = SimulatedDisk()
    copy.files = disk.files.filter { $0.key != LogNames.lock }
    iterator = LogReader(copy).follow(from: 5) {}.makeAsyncIterator()
    #expect(try await iterator.next()?.sequence == 5)

    let directory = try TemporaryDirectory()
    let closed = try RecordLog(directory.path)
    try closed.append(.note, payload(1))
    try await closed.close()
    let lock = directory.path + "/" + LogNames.lock
    try FileManager.default.removeItem(atPath: lock)
    try FileManager.default.createDirectory(atPath: lock, withIntermediateDirectories: false)
    await #expect(throws: LogError.self) {
      for try await _ in try LogReader(directory.path).follow(from: 1) {}
    }
  }

  /// Has records synced in the first pause, and three more written and synced in the second.
  private actor Pauses {
    let log: SimulatedLog
    var count = 0

    init(_ log: SimulatedLog) { self.log = log }

    func pause() {
      count += 1
      if count == 2 { try? log.write(6...8) }
      log.queue.passTime()
      log.drain()
    }
  }

  @Test("A cancelled task ends, also while it waits")
  func cancelled() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path)
    try await log.append(.note, payload(1)).durable()
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let following = Task {
      var count = 0
      for try await record in log.follow(from: 1) {
        count += 1
        continuation.yield(record.sequence)
      }
      return count
    }
    for await _ in stream { break }
    following.cancel()
    #expect(try await following.value == 1)
  }

  @Test("A cursor goes on after the end, over a segment that was written again")
  func cursor() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 700))
    var cursor = try LogReader(disk).read()
    #expect(try cursor.next() == nil)
    var seen: [LogRecord] = []
    for number in 1...40 {
      if number % 9 == 0 { disk.inject([.sync(5)]) }
      try log.write(number...number)
      while let record = try cursor.next() { seen.append(record) }
    }
    try log.write(41...41)
    while let record = try cursor.next() { seen.append(record) }
    #expect(numbers(seen) == Array(1...41))
    #expect(seen.map(\.sequence) == Array(1...41))
  }
}
