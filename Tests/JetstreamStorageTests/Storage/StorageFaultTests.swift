import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Synchronization
import Testing

/// One history whose storage can be made to fail: a log on a simulated disk, or a storage in memory.
private final class FailingPlace {
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case log, memory

    var testDescription: String { rawValue }
  }

  private let kind: Kind
  private let disk = SimulatedDisk()
  private let memory = MemoryStorage()
  private(set) var queue = GatedQueue()

  init(_ kind: Kind) { self.kind = kind }

  func lease() throws -> any ScopeLease {
    switch kind {
    case .memory: return try memory.takeLease(of: "A", on: queue)
    case .log:
      let log = try RecordLog(
        disk, configuration: LogConfiguration(), queue: queue,
        snapshotQueue: DispatchLogQueue("snapshots"))
      return LogLease(FragmentLog(log))
    }
  }

  /// Has the next append fail, with or without effect.
  func failAppend(losesAnswer: Bool) {
    disk.inject([losesAnswer ? .sync(EIO) : .write(EIO)])
    memory.inject([losesAnswer ? .lostAnswer : .lostRequest])
  }

  /// Has the next snapshot end before it is complete.
  func failSnapshot() {
    disk.inject([.rename(EIO), .rename(EIO), .rename(EIO), .rename(EIO)])
    memory.inject([.halfSnapshot])
  }

  /// The number of bytes that were read from a log.
  var readBytes: Int { disk.readBytes }

  func stopFailing() {
    disk.clearFaults()
    memory.clearFaults()
  }

  /// Ends the right of the holder, which does not know of that: its process was stopped for too long, or is gone.
  func loseLease() {
    disk.kill()
    memory.expireLease(of: "A")
    queue = GatedQueue()
  }
}

@Suite("The contract of storages that fail", .timeLimit(.minutes(5)))
struct StorageFaultTests {
  @Test(
    "An append that fails, or whose answer is lost, is there once when it was appended again",
    arguments: FailingPlace.Kind.allCases, [false, true])
  fileprivate func lostAnswer(_ kind: FailingPlace.Kind, losesAnswer: Bool) async throws {
    let place = FailingPlace(kind)
    let lease = try place.lease()
    try await lease.append(batch(1...2), after: 0)
    place.queue.hold()
    place.failAppend(losesAnswer: losesAnswer)
    let failed = AsyncStream<StorageError?>.makeStream()
    lease.append(batch(3...4), after: 2, outlivesProcess: false) { outcome in
      if case .failure(let error) = outcome { failed.continuation.yield(error) }
      failed.continuation.finish()
    }
    place.queue.letGo()
    var failures = failed.stream.makeAsyncIterator()
    let error = try #require(await failures.next() ?? nil)
    #expect(error.remedy != .none)
    place.stopFailing()
    try await lease.append(batch(3...4), after: 2)
    try await lease.append(batch(5...5), after: 4)
    #expect(try await numbers(lease.read().records) == [1, 2, 3, 4, 5])
    try await lease.release()
    let next = try place.lease()
    #expect(try await numbers(next.read().records) == [1, 2, 3, 4, 5])
    try await next.release()
  }

  @Test("Many batches that are appended again to a log are compared while it is read a few times")
  func manyRepetitions() async throws {
    let place = FailingPlace(.log)
    let lease = try place.lease()
    let answers = AsyncStream<Bool>.makeStream()
    func appendAll() async -> [Bool] {
      place.queue.hold()
      for number in 1...300 {
        lease.append(batch(number...number), after: number - 1, outlivesProcess: false) {
          answers.continuation.yield((try? $0.get()) != nil)
        }
      }
      place.queue.letGo()
      var good: [Bool] = []
      for await isGood in answers.stream {
        good.append(isGood)
        if good.count == 300 { break }
      }
      return good
    }
    place.failAppend(losesAnswer: true)
    #expect(await !appendAll().contains(true))
    place.stopFailing()
    let before = place.readBytes
    #expect(await !appendAll().contains(false))
    let read = place.readBytes - before
    #expect(try await numbers(lease.read().records) == Array(1...300))
    let size = place.readBytes - before - read
    #expect(read < 20 * size, "\(read) bytes of a log of \(size)")
    await #expect(throws: StorageError.conflict(expected: 0, last: 300)) {
      try await lease.append(batch(7...7), after: 0)
    }
    try await lease.release()
  }

  @Test("Batches behind one that failed never overtake it", arguments: FailingPlace.Kind.allCases)
  fileprivate func noOvertaking(_ kind: FailingPlace.Kind) async throws {
    let place = FailingPlace(kind)
    let lease = try place.lease()
    place.queue.hold()
    place.failAppend(losesAnswer: false)
    let answers = AsyncStream<Bool>.makeStream()
    for number in 1...3 {
      lease.append(batch(number...number), after: number - 1, outlivesProcess: false) {
        answers.continuation.yield((try? $0.get()) != nil)
      }
    }
    place.queue.letGo()
    var good: [Bool] = []
    for await isGood in answers.stream {
      good.append(isGood)
      if good.count == 3 { break }
    }
    #expect(good == [false, false, false])
    place.stopFailing()
    for number in 1...3 { try await lease.append(batch(number...number), after: number - 1) }
    #expect(try await numbers(lease.read().records) == [1, 2, 3])
    try await lease.release()
  }

  @Test(
    "A slow storage answers everything in order, once it can", arguments: FailingPlace.Kind.allCases
  )
  fileprivate func slow(_ kind: FailingPlace.Kind) async throws {
    let place = FailingPlace(kind)
    let lease = try place.lease()
    place.queue.hold()
    let answered = Mutex(0)
    let all = AsyncStream<Int>.makeStream()
    for number in 1...50 {
      lease.append(batch(number...number), after: number - 1, outlivesProcess: false) { outcome in
        if case .success = outcome { answered.withLock { $0 += 1 } }
        all.continuation.yield(number)
      }
    }
    #expect(answered.withLock { $0 } == 0)
    place.queue.letGo()
    var order: [Int] = []
    for await number in all.stream {
      order.append(number)
      if order.count == 50 { break }
    }
    #expect(order == Array(1...50) && answered.withLock { $0 } == 50)
    try await lease.release()
  }

  @Test(
    "A half-written snapshot is never read, and the next one counts",
    arguments: FailingPlace.Kind.allCases)
  fileprivate func halfSnapshot(_ kind: FailingPlace.Kind) async throws {
    let place = FailingPlace(kind)
    var lease = try place.lease()
    try await lease.writeSnapshot(at: 0) { batch(100...100) }
    try await lease.append(batch(1...3), after: 0)
    place.failSnapshot()
    await #expect(throws: StorageError.self) {
      try await lease.writeSnapshot(at: 3) { batch(200...209) }
    }
    place.stopFailing()
    var stored = try await lease.read()
    #expect(numbers(stored.snapshot?.state ?? []) == [100] && numbers(stored.records) == [1, 2, 3])
    place.loseLease()
    lease = try place.lease()
    stored = try await lease.read()
    #expect(numbers(stored.snapshot?.state ?? []) == [100] && numbers(stored.records) == [1, 2, 3])
    try await lease.writeSnapshot(at: 3) { batch(300...309) }
    stored = try await lease.read()
    #expect(numbers(stored.snapshot?.state ?? []) == Array(300...309) && stored.records.isEmpty)
    try await lease.release()
  }

  @Test(
    "Nothing that the holder of a stale lease asks for has an effect, before or after",
    arguments: FailingPlace.Kind.allCases)
  fileprivate func staleLease(_ kind: FailingPlace.Kind) async throws {
    let place = FailingPlace(kind)
    let stale = try place.lease()
    try await stale.append(batch(1...2), after: 0)
    let slow = place.queue
    slow.hold()
    let late = AsyncStream<Bool>.makeStream()
    stale.append(batch(3...3), after: 2, outlivesProcess: false) {
      late.continuation.yield((try? $0.get()) != nil)
    }
    place.loseLease()
    let lease = try place.lease()
    #expect(try await numbers(lease.read().records) == [1, 2])
    // The lease of a log lasts as long as its process, which asks for nothing once it has ended.
    if kind == .memory {
      // The append that was on its way arrives now, and more is asked for.
      slow.letGo()
      var arrivals = late.stream.makeAsyncIterator()
      #expect(await arrivals.next() == false)
      await #expect(throws: StorageError.leaseLost) {
        try await stale.append(batch(4...4), after: 2)
      }
      await #expect(throws: StorageError.leaseLost) {
        try await stale.writeSnapshot(at: 2) { batch(100...100) }
      }
    }
    try await lease.append(batch(30...31), after: 2)
    if kind == .memory {
      await #expect(throws: StorageError.leaseLost) {
        try await stale.append(batch(5...5), after: 4)
      }
    }
    let stored = try await lease.read()
    #expect(stored.snapshot == nil && numbers(stored.records) == [1, 2, 30, 31])
    try await lease.release()
  }
}

private func batch(_ numbers: ClosedRange<Int>) -> [RecordContent] {
  numbers.map { RecordContent(.set, Array(#"{"n":\#($0)}"#.utf8)) }
}

private func numbers(_ records: [LogRecord]) -> [Int] {
  records.compactMap { record in
    guard case .object(let object)? = try? JSONValue(parsing: record.payload),
      case .integer(let number)? = object["n"]
    else { return nil }
    return Int(number)
  }
}
