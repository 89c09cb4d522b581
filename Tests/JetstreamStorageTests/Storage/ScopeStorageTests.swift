import Foundation
import Jetstream
import JetstreamServer
import JetstreamSimulation
import Testing

/// The contract of all storages of histories, which is written at `ScopeStorage` and `ScopeLease`.
@Suite("The contract of storages", .timeLimit(.minutes(5)))
struct ScopeStorageTests {
  /// A storage under test.
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case directory, memory

    var testDescription: String { rawValue }
  }

  private let files = try! TemporaryDirectory()

  private func make(_ kind: Kind, keepsRecords: Bool = true) throws -> any ScopeStorage {
    switch kind {
    case .memory: return MemoryStorage(keepsRecords: keepsRecords)
    case .directory:
      var configuration = LogConfiguration()
      configuration.history = keepsRecords ? .all : .nothing
      return try ScopeDirectory(files.path, configuration: configuration)
    }
  }

  @Test(
    "A history begins empty, and is read by the next holder as it was appended",
    arguments: Kind.allCases)
  func roundTrip(_ kind: Kind) async throws {
    let storage = try make(kind)
    #expect(try await storage.find("A").isNew)
    let lease = try await storage.lease("A")
    var stored = try await lease.read()
    #expect(stored.snapshot == nil && stored.records.isEmpty && stored.last == 0)
    try await lease.append(batch(1...3), after: 0)
    try await lease.append(batch(4...4), after: 3)
    try await lease.release()
    #expect(try await storage.find("A").isNew == false)
    #expect(try await storage.find("B").isNew)
    let next = try await storage.lease("A")
    stored = try await next.read()
    #expect(
      texts(stored.records) == texts(1...4) && stored.records.map(\.sequence) == [1, 2, 3, 4])
    #expect(stored.records.allSatisfy { $0.kind == .set })
    try await next.release()
  }

  @Test(
    "Batches take effect in the order of the calls, before the answers have come",
    arguments: Kind.allCases)
  func order(_ kind: Kind) async throws {
    let lease = try await make(kind).lease("A")
    let answers = AsyncStream<Result<Int, StorageError>>.makeStream()
    for number in 0..<200 {
      lease.append(
        batch(number * 3 + 1...number * 3 + 3), after: number * 3, outlivesProcess: number % 7 == 0
      ) { answers.continuation.yield($0) }
    }
    var count = 0
    for await answer in answers.stream {
      count += 1
      #expect(try answer.get() >= count * 3)
      if count == 200 { break }
    }
    #expect(try await texts(lease.read().records) == texts(1...600))
    try await lease.release()
  }

  @Test(
    "A batch behind a record that is not the last is refused, and changes nothing",
    arguments: Kind.allCases)
  func expectation(_ kind: Kind) async throws {
    let lease = try await make(kind).lease("A")
    try await lease.append(batch(1...2), after: 0)
    await #expect(throws: StorageError.gap(expected: 5, last: 2)) {
      try await lease.append(batch(6...6), after: 5)
    }
    await #expect(throws: StorageError.conflict(expected: 1, last: 2)) {
      try await lease.append(batch(7...7), after: 1)
    }
    await #expect(throws: StorageError.conflict(expected: 0, last: 2)) {
      try await lease.append(batch(1...3), after: 0)
    }
    #expect(try await texts(lease.read().records) == texts(1...2))
    try await lease.append(batch(3...3), after: 2)
    try await lease.release()
  }

  @Test("A batch that is appended again is there once", arguments: Kind.allCases)
  func repetition(_ kind: Kind) async throws {
    let lease = try await make(kind, keepsRecords: false).lease("A")
    try await lease.append(batch(1...2), after: 0)
    try await lease.append(batch(1...2), after: 0)
    try await lease.append(batch(3...5), after: 2)
    try await lease.append(batch(1...2), after: 0)
    try await lease.append(batch(3...5), after: 2)
    #expect(try await texts(lease.read().records) == texts(1...5))
    // Also when a snapshot stands for it.
    try await lease.writeSnapshot(at: 5) { batch(100...101) }
    try await lease.append(batch(3...5), after: 2)
    try await lease.append(batch(6...6), after: 5)
    #expect(try await texts(lease.read().records) == texts(6...6))
    try await lease.release()
  }

  @Test(
    "A snapshot stands for the records up to one, while more are appended", arguments: Kind.allCases
  )
  func snapshot(_ kind: Kind) async throws {
    let storage = try make(kind)
    let lease = try await storage.lease("A")
    try await lease.writeSnapshot(at: 0) { batch(100...100) }
    #expect(try await storage.find("A").isNew == false)
    try await lease.append(batch(1...4), after: 0)
    async let written = lease.writeSnapshot(at: 3) { batch(200...202) }
    try await lease.append(batch(5...6), after: 4)
    #expect(try await written.removalError == nil)
    await #expect(throws: StorageError.notKept(sequence: 7)) {
      try await lease.writeSnapshot(at: 7) { batch(300...300) }
    }
    try await lease.release()
    let next = try await storage.lease("A")
    let stored = try await next.read()
    #expect(stored.snapshot?.sequence == 3 && stored.last == 6)
    #expect(texts(stored.snapshot?.state ?? []) == texts(200...202))
    #expect(texts(stored.records) == texts(4...6))
    try await next.append(batch(7...7), after: 6)
    try await next.release()
  }

  @Test(
    "One has the lease at a time, and it is worth nothing once it was given back",
    arguments: Kind.allCases)
  func exclusion(_ kind: Kind) async throws {
    let storage = try make(kind)
    let lease = try await storage.lease("A")
    try await lease.append(batch(1...1), after: 0)
    let error = await #expect(throws: StorageError.self) { try await storage.lease("A") }
    #expect({ if case .leased("A", _)? = error { true } else { false } }())
    let other = try await storage.lease("B")
    try await lease.release()
    try await lease.release()
    await #expect(throws: StorageError.leaseLost) { try await lease.append(batch(2...2), after: 1) }
    await #expect(throws: StorageError.leaseLost) {
      try await lease.writeSnapshot(at: 1) { batch(100...100) }
    }
    let next = try await storage.lease("A")
    await #expect(throws: StorageError.leaseLost) { try await lease.append(batch(2...2), after: 1) }
    #expect(try await texts(next.read().records) == texts(1...1))
    try await next.release()
    try await other.release()
  }

  @Test(
    "A schema is kept beside the history, and found without the lease", arguments: Kind.allCases)
  func schema(_ kind: Kind) async throws {
    let storage = try make(kind)
    #expect(try await storage.find("A").schema == nil)
    let schema = ScopeSchema(of: Canvas.self)
    try await storage.keep(schema, of: "A")
    let lease = try await storage.lease("A")
    let found = try await storage.find("A")
    #expect(found.schema?.json == schema.json && found.isNew)
    #expect(try await storage.find("B").schema == nil)
    try await lease.release()
  }

  @Test(
    "A follower is given each record in order, from where it asks, whoever has the lease",
    arguments: Kind.allCases)
  func following(_ kind: Kind) async throws {
    let storage = try make(kind)
    // Before there is anything.
    let all = Task { try await first(6, of: storage.follow("A", after: 0)) }
    var lease = try await storage.lease("A")
    try await lease.append(batch(1...3), after: 0)
    let late = Task { try await first(3, of: storage.follow("A", after: 3)) }
    try await lease.release()
    lease = try await storage.lease("A")
    try await lease.append(batch(4...6), after: 3)
    #expect(try await texts(all.value) == texts(1...6))
    #expect(try await texts(late.value) == texts(4...6))
    let cancelled = Task { try await first(1, of: storage.follow("A", after: 6)) }
    cancelled.cancel()
    #expect(try await cancelled.value.isEmpty)
    try await lease.release()
  }

  @Test("A follower of what is no longer kept is told so", arguments: Kind.allCases)
  func followingTheDropped(_ kind: Kind) async throws {
    let storage = try make(kind, keepsRecords: false)
    let lease = try await storage.lease("A")
    try await lease.append(batch(1...5), after: 0)
    try await lease.writeSnapshot(at: 5) { batch(100...100) }
    await #expect(throws: StorageError.notKept(sequence: 3)) {
      try await first(1, of: storage.follow("A", after: 2))
    }
    try await lease.append(batch(6...6), after: 5)
    #expect(try await texts(first(1, of: storage.follow("A", after: 5))) == texts(6...6))
    try await lease.release()
  }
}

private func batch(_ numbers: ClosedRange<Int>) -> [RecordContent] {
  numbers.map { RecordContent(.set, Array(#"{"n":\#($0)}"#.utf8)) }
}

private func texts(_ records: [LogRecord]) -> [String] {
  records.map { String(decoding: $0.payload, as: UTF8.self) }
}

private func texts(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { #"{"n":\#($0)}"# } }

/// The first records of a sequence, or fewer if it ends.
private func first(_ count: Int, of records: StoredRecords) async throws -> [LogRecord] {
  var result: [LogRecord] = []
  for try await record in records {
    result.append(record)
    if result.count == count { break }
  }
  return result
}
