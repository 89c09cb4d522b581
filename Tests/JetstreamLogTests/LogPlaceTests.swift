import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

@Suite("A log that is moved while it is written")
struct LogPlaceTests {
  private let folder: TemporaryDirectory
  private var path: String { folder.path + "/log" }
  private var segment: String { path + "/" + LogNames.segment(1) }
  private let files = FileManager.default

  init() throws { folder = try TemporaryDirectory() }

  enum Change: CaseIterable {
    case renamedDirectory, removedDirectory, anotherDirectory, renamedSegment, removedSegment, copy
    case removedLock
  }

  private func make(_ change: Change) throws {
    switch change {
    case .renamedDirectory: try files.moveItem(atPath: path, toPath: path + "-old")
    case .removedDirectory: try files.removeItem(atPath: path)
    case .anotherDirectory:
      try files.moveItem(atPath: path, toPath: path + "-old")
      try files.copyItem(atPath: path + "-old", toPath: path)
    case .renamedSegment: try files.moveItem(atPath: segment, toPath: segment + "-old")
    case .removedSegment: try files.removeItem(atPath: segment)
    case .copy:
      try files.copyItem(atPath: segment, toPath: segment + "-new")
      try files.removeItem(atPath: segment)
      try files.moveItem(atPath: segment + "-new", toPath: segment)
    case .removedLock: try files.removeItem(atPath: path + "/" + LogNames.lock)
    }
  }

  @Test(
    "What is appended after it is not durable, and the error names the path",
    arguments: Change.allCases, [false, true])
  func moved(_ change: Change, isAtRest: Bool) async throws {
    var log = try RecordLog(path)
    for number in 1...5 { try await log.append(.note, payload(number)).durable() }
    if isAtRest {
      // A log that has just been opened holds no descriptor of its segment.
      try await log.close()
      log = try RecordLog(path)
    }
    try make(change)
    for number in 6...20 {
      let receipt = try log.append(.note, payload(number))
      log.writeNow()
      await #expect(throws: LogError.moved(path: path)) { try await receipt.durable() }
      #expect(!receipt.isDurable)
    }
    #expect(log.durableSequence == 5 && log.failure == .moved(path: path))
    await #expect(throws: LogError.moved(path: path)) { try await log.sync() }
    await #expect(throws: LogError.moved(path: path)) {
      try await log.snapshot(at: 5, standingFor: [.note]) { [] }
    }
    await #expect(throws: LogError.moved(path: path)) { try await log.close() }
    #expect(
      "\(LogError.moved(path: path))"
        == "The log in \(path) is not there any more: the directory, its last segment or its lock "
        + "file was renamed, removed or replaced while the log was open.")
  }

  @Test("What a second process writes after the lock was removed is not overwritten")
  func secondWriter() async throws {
    let log = try RecordLog(path)
    for number in 1...5 { try await log.append(.note, payload(number)).durable() }
    try make(.removedLock)
    let second = try RecordLog(path)
    for number in 6...8 { try await second.append(.note, payload(number)).durable() }
    let receipt = try log.append(.note, payload(99))
    log.writeNow()
    #expect(throws: LogError.self) { try log.writeAll() }
    await #expect(throws: LogError.moved(path: path)) { try await receipt.durable() }
    await #expect(throws: LogError.moved(path: path)) { try await log.close() }
    try await second.close()
    #expect(numbers(try LogReader(path).all()) == Array(1...8))
  }

  @Test("A directory that comes back has all that was appended meanwhile")
  func comesBack() async throws {
    let log = try RecordLog(path, configuration: .init(segmentBytes: 500))
    for number in 1...5 { try await log.append(.note, payload(number)).durable() }
    for round in 1...3 {
      try files.moveItem(atPath: path, toPath: path + "-old")
      for number in (round * 5 + 1)...(round * 5 + 5) {
        let receipt = try log.append(.note, payload(number))
        await #expect(throws: LogError.moved(path: path)) { try await receipt.durable() }
      }
      // Another one that is there meanwhile stays empty.
      try files.createDirectory(atPath: path, withIntermediateDirectories: false)
      await #expect(throws: LogError.moved(path: path)) { try await log.sync() }
      await #expect(throws: LogError.moved(path: path)) { try await log.close() }
      #expect(try files.contentsOfDirectory(atPath: path).isEmpty)
      try files.removeItem(atPath: path)
      try files.moveItem(atPath: path + "-old", toPath: path)
      try await log.sync()
      #expect(log.durableSequence == round * 5 + 5 && log.failure == nil)
    }
    try await log.close()
    #expect(numbers(try LogReader(path).all()) == Array(1...20))
    #expect(try LogReader(path).verify().isWhole)
  }

  @Test("Closing notices it, too, after everything was durable")
  func closing() async throws {
    let log = try RecordLog(path)
    try await log.append(.note, payload(1)).durable()
    try files.removeItem(atPath: path)
    await #expect(throws: LogError.moved(path: path)) { try await log.close() }
  }

  @Test("It is noticed at the next sync, whenever that is")
  func otherDurability() throws {
    for durability in [LogDurability.interval(.seconds(1)), .none] {
      let disk = SimulatedDisk()
      let log = try SimulatedLog(disk, .init(durability: durability))
      try log.write(1...3)
      disk.isAway = true
      try log.write(4...5)
      let box = ResultBox()
      log.log.whenSynced { box.put($0) }
      log.drain()
      #expect(throws: LogError.moved(path: "simulated")) { try #require(box.result).get() }
      let durable = log.log.durableSequence
      try log.write(6...9)
      log.queue.passTime()
      log.drain()
      #expect(log.log.durableSequence == durable)
      #expect(log.log.failure == .moved(path: "simulated"))
      disk.isAway = false
      log.log.whenSynced { _ in }
      log.drain()
      #expect(log.log.durableSequence == 9 && log.log.failure == nil)
      disk.crash()
      #expect(numbers(try LogReader(disk).all()) == Array(1...9))
    }
  }

  @Test("What was uncertain when the directory went away is written again when it is back")
  func failedSync() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk)
    try log.write(1...3)
    disk.inject([.sync(EIO)])
    try log.write(4...5)
    #expect(log.log.durableSequence == 3)
    disk.isAway = true
    try log.write(6...7)
    #expect(log.log.durableSequence == 3 && log.log.failure == .moved(path: "simulated"))
    disk.isAway = false
    try log.write(8...8)
    #expect(log.log.durableSequence == 8)
    disk.crash()
    #expect(numbers(try LogReader(disk).all()) == Array(1...8))
  }

  @Test("A folder that was made, but is not durable in the one above it, is so before it is used")
  func unsyncedFolder() throws {
    var synced: [String] = []
    var isFailing = true
    func make(_ path: String) throws {
      try POSIXLogDirectory.create(path) { path throws(LogFileError) in
        if isFailing { throw LogFileError(.sync, path, code: EIO) }
        synced.append(path)
      }
    }
    #expect(files.createFile(atPath: folder.path + "/other", contents: nil))
    for place in [path, path + "/a/b"] {
      #expect(throws: LogFileError.self) { try make(place) }
    }
    isFailing = false
    let deep = path + "/a/b"
    try make(deep)
    #expect(synced == [path + "/..", path + "/a/..", deep + "/.."])
    // One that was made by others, or whose attempt has ended, is empty.
    try make(deep)
    #expect(synced.count == 4 && synced.last == deep + "/..")
    #expect(files.createFile(atPath: deep + "/lock", contents: nil))
    try make(deep)
    #expect(synced.count == 4)
    try make(path + "/a/c")
    #expect(synced.count == 5 && synced.last == path + "/a/c/..")
  }

  @Test("Not more waits in memory than may")
  func backlog() throws {
    let disk = SimulatedDisk()
    let log = try SimulatedLog(disk, .init(segmentBytes: 16 << 20, backlogBytes: 2000))
    try log.write(1...3)
    disk.isAway = true
    var last = 3
    #expect(throws: LogError.self) {
      for number in 4...100 {
        try log.write(number...number)
        last = number
      }
    }
    #expect((10...40).contains(last))
    disk.isAway = false
    log.log.whenSynced { _ in }
    log.drain()
    #expect(log.log.durableSequence == last)
    #expect(numbers(try LogReader(disk).all()) == Array(1...last))
  }
}
