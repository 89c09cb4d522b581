import Foundation
import JetstreamSimulation
import Testing

@testable import Jetstream

private final class Page: ModelObject {
  @Property var title = ""
}

@Suite("A log that may not be written")
struct LogReadOnlyTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// Makes a log of five change sets behind a state, and gives the scope.
  private func makeLog() async throws -> Scope {
    let page = Page()
    page.title = "0"
    let scope = Scope(name: "Page", root: page, ticker: .manual())
    scope.flush()
    let log = try FragmentLog(folder.path, configuration: .init(segmentBytes: 500))
    try await log.restore(into: scope)
    log.record(scope) { Issue.record("\($0)") }
    for number in 1...5 {
      page.title = "\(number)"
      scope.flush()
    }
    try await log.close()
    return scope
  }

  private func check(_ reader: LogReader, _ original: Scope) throws {
    let verification = try reader.verify()
    #expect(verification.isWhole && verification.records == 1...5)
    #expect(verification.snapshots == [0])
    #expect(try reader.firstSequence() == 1)
    #expect(try reader.all().map(\.sequence) == Array(1...5))
    #expect(try reader.snapshot()?.sequence == 0)
    #expect(try reader.changeSets(in: 2...3).map(\.sequence) == [2, 3])
    let page = Page()
    let scope = Scope(name: "Page", root: page, ticker: .manual())
    let restored = try reader.restore(into: scope)
    #expect(restored.sequence == 5 && restored.snapshot == 0 && restored.changeSetCount == 5)
    #expect(scope.canonicalJSON == original.canonicalJSON)
    for sequence in [3, 0, 5] {
      #expect(try reader.restore(into: scope, at: sequence).sequence == sequence)
      #expect(page.title == "\(sequence)")
    }
    #expect(throws: LogError.notKept(sequence: 6, kept: 1...5)) {
      try reader.restore(into: scope, at: 6)
    }
    #expect(throws: LogError.notKept(sequence: -1, kept: 0...5)) {
      try reader.restore(into: scope, at: -1)
    }
  }

  @Test("It is verified, read and restored in a directory that refuses to be written")
  func refusingDirectory() async throws {
    let original = try await makeLog()
    let directory = ReadOnlyDirectory(try POSIXLogDirectory(existing: folder.path))
    try check(LogReader(directory), original)
    #expect(throws: LogError.file(LogFileError(.lock, LogNames.lock, code: EROFS))) {
      try FragmentLog(RecordLog(directory))
    }
  }

  @Test("It is verified, read and restored without permission to write, and stays as it is")
  func permissions() async throws {
    let original = try await makeLog()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    func contents() throws -> [String: Data] {
      try Dictionary(
        uniqueKeysWithValues: names.map {
          ($0, try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + $0)))
        })
    }
    let before = try contents()
    for name in names { #expect(chmod(folder.path + "/" + name, 0o444) == 0) }
    #expect(chmod(folder.path, 0o555) == 0)
    defer { chmod(folder.path, 0o755) }
    try check(LogReader(folder.path), original)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names.sorted())
    #expect(try contents() == before)
    // Root may write all the same.
    if geteuid() != 0 { #expect(throws: LogError.self) { try FragmentLog(folder.path) } }
  }

  @Test("It is read beside the process that writes it")
  func besideWriter() async throws {
    let original = try await makeLog()
    let log = try FragmentLog(folder.path)
    try check(LogReader(folder.path), original)
    try log.append(ChangeSet(fragments: [], bases: [:]))
    try await log.sync()
    #expect(try LogReader(folder.path).changeSets(in: 1...9).count == 6)
    try await log.close()
  }

  @Test("What is missing or damaged is not restored")
  func missing() async throws {
    _ = try await makeLog()
    let scope = Scope(name: "Page", root: Page(), ticker: .manual())
    let file = folder.path + "/" + LogNames.snapshot(0)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    try bytes.dropLast(3).write(to: URL(fileURLWithPath: file))
    #expect(throws: LogError.self) { try LogReader(folder.path).restore(into: scope) }
    try FileManager.default.removeItem(atPath: file)
    let missing = LogDamage(missingSnapshot: 0, readable: nil)
    #expect(throws: LogError.damaged(missing)) {
      try LogReader(folder.path).restore(into: scope)
    }
    #expect(throws: LogError.damaged(LogDamage(missingSnapshot: 0, readable: 1...5))) {
      try LogReader(folder.path).restore(into: scope, at: 3)
    }
  }

  @Test("A state that is not kept any more is an error that names those that are")
  func notKept() async throws {
    let scope = try await makeLog()
    let log = try FragmentLog(folder.path, configuration: .init(history: .nothing))
    try await log.snapshot(of: scope)
    try await log.close()
    let then = Scope(name: "Page", root: Page(), ticker: .manual())
    #expect(throws: LogError.notKept(sequence: 3, kept: 5...5)) {
      try LogReader(folder.path).restore(into: then, at: 3)
    }
    #expect(throws: LogError.notKept(sequence: 3, kept: 5...5)) {
      try LogReader(folder.path).difference(from: 3, to: 5, using: then)
    }
  }

  @Test("Change sets in front of a damaged record can be read")
  func changeSetsBeforeDamage() throws {
    let disk = SimulatedDisk()
    let simulated = try SimulatedLog(disk)
    let log = FragmentLog(simulated.log)
    for _ in 1...6 { try log.append(ChangeSet(fragments: [], bases: [:])) }
    simulated.drain()
    let bytes = try #require(disk.files[LogNames.segment(1)])
    let ends = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }
    disk.flip(LogNames.segment(1), at: ends[4] - 5, mask: 1)
    let reader = LogReader(disk)
    #expect(try reader.changeSets(in: 1...3).map(\.sequence) == [1, 2, 3])
    #expect(try reader.changeSets(in: 3...3).map(\.sequence) == [3])
    #expect(throws: LogError.self) { try reader.changeSets(in: 1...4) }
  }

  @Test("Nothing is made where no log is")
  func nothing() throws {
    let scope = Scope(name: "Page", root: Page(), ticker: .manual())
    let empty = try LogReader(folder.path)
    #expect(try empty.firstSequence() == nil)
    #expect(try empty.restore(into: scope).sequence == 0)
    #expect(throws: LogError.notKept(sequence: 1, kept: nil)) {
      try empty.restore(into: scope, at: 1)
    }
    #expect(try empty.changeSets(in: 1...9).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    let path = folder.path + "/nowhere"
    #expect(throws: LogError.file(LogFileError(.list, path, code: ENOENT))) { try LogReader(path) }
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}

/// A directory on a file system that is mounted for reading, for root as well.
private struct ReadOnlyDirectory: LogDirectory {
  private let directory: POSIXLogDirectory

  init(_ directory: POSIXLogDirectory) { self.directory = directory }

  var name: String { directory.name }

  func list() throws(LogFileError) -> [String] { try directory.list() }

  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    guard access == .reading else { throw LogFileError(.open, file, code: EROFS) }
    return try directory.open(file, for: access)
  }

  func rename(_ file: String, to other: String) throws(LogFileError) {
    throw LogFileError(.rename, file, code: EROFS)
  }

  func remove(_ file: String) throws(LogFileError) {
    throw LogFileError(.remove, file, code: EROFS)
  }

  func sync() throws(LogFileError) { throw LogFileError(.sync, name, code: EROFS) }

  func lock(_ file: String) throws(LogFileError) -> (any LogFile)? {
    throw LogFileError(.lock, file, code: EROFS)
  }
}
