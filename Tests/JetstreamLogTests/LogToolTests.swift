import Foundation
import Testing

@testable import Jetstream

@Suite("The command jetstream log", .serialized, .timeLimit(.minutes(5)))
struct LogToolTests {
  private func run(_ arguments: String...) async throws -> LogProcess.End {
    try await LogProcess("jetstream", arguments).finish()
  }

  private func makeLog(_ path: String) async throws {
    let log = try FragmentLog(path, configuration: .init(segmentBytes: 1000))
    for number in 1...30 {
      if number == 21 {
        try await log.records.snapshot(at: 20, standingFor: [.set]) {
          [RecordContent(.fragment, Array(#"{"a":1}"#.utf8))]
        }
      }
      let fragment = SyncFragment(
        .change, uuid: UUID(pair: 1, UInt64(number)), className: "Shape",
        properties: ["x": .integer(Int64(number))])
      try log.append(
        ChangeSet(id: UUID(pair: 0, UInt64(number)), fragments: [fragment], bases: [:]))
      try await log.sync()
    }
    try await log.close()
  }

  @Test("It verifies, dumps and tails")
  func good() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let verified = try await run("log", "verify", directory.path)
    #expect(verified.status == 0 && verified.errors.isEmpty)
    #expect(verified.lines.first?.hasPrefix("records 1 to 30, in ") == true)
    #expect(verified.lines.contains("snapshots at 20") && verified.lines.last == "ok")
    let json = try await run("log", "verify", "--json", directory.path)
    guard case .object(let object) = try JSONValue(parsing: json.lines.joined()) else {
      Issue.record("no object: \(json)")
      return
    }
    #expect(object["whole"] == true && object["last"] == 30 && object["tornBytes"] == 0)
    let dump = try await run("log", "dump", "--from", "3", "--to", "5", directory.path)
    #expect(dump.status == 0 && dump.lines.count == 3)
    #expect(dump.lines[0].hasPrefix("3\tset\t{\"id\":\"00000000-0000-0000-0000-000000000003\""))
    #expect(try await run("log", "dump", "--kind", "other", directory.path).lines.isEmpty)
    let snapshot = try await run("log", "dump", "--snapshot", directory.path)
    #expect(snapshot.lines == ["20\tfragment\t{\"a\":1}"])
    #expect(
      try await run("log", "dump", "--snapshot", "--kind", "fragment", directory.path).lines
        == snapshot.lines)
    #expect(
      try await run("log", "dump", "--snapshot", "--kind", "other", directory.path).lines.isEmpty)
    let early = try await run("log", "dump", "--snapshot", "--to", "19", directory.path)
    #expect(early.status == 3 && early.lines.isEmpty)
    #expect(
      early.errors
        == "jetstream log: the log in \(directory.path) has no snapshot up to record 19.\n")
    let tail = try await run("log", "tail", "-n", "2", directory.path)
    #expect(tail.lines.map { $0.prefix(3) } == ["29\t", "30\t"])
  }

  @Test("A log without a snapshot is said to have none, and a damaged snapshot to be damaged")
  func noSnapshot() async throws {
    let directory = try TemporaryDirectory()
    let log = try FragmentLog(directory.path)
    try log.append(ChangeSet(fragments: [], bases: [:]))
    try await log.close()
    let none = try await run("log", "dump", "--snapshot", directory.path)
    #expect(none.status == 3 && none.lines.isEmpty)
    #expect(none.errors == "jetstream log: the log in \(directory.path) has no snapshot.\n")
    let other = try TemporaryDirectory()
    try await makeLog(other.path)
    let file = URL(fileURLWithPath: other.path + "/" + LogNames.snapshot(20))
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count - 20] ^= 1
    try bytes.write(to: file)
    let damaged = try await run("log", "dump", "--snapshot", other.path)
    #expect(damaged.status == 1 && damaged.errors.contains(LogNames.snapshot(20)))
  }

  @Test("It tells who has written a property")
  func blame() async throws {
    let directory = try TemporaryDirectory()
    let log = try FragmentLog(directory.path)
    let model = UUID(pair: 1, 1)
    for (author, value) in [("Ada", 1), (nil, 2)] as [(String?, Int64)] {
      let fragment = SyncFragment(
        .change, uuid: model, className: "Shape", properties: ["x": .integer(value)])
      let date = Date(timeIntervalSince1970: 1_700_000_000.5)
      try log.append(
        ChangeSet(
          fragments: [fragment], undo: [], author: author, message: author.map { _ in "a\tb" },
          date: author.map { _ in date }))
    }
    try await log.close()
    let blame = try await run("log", "blame", directory.path, model.uuidString, "x")
    #expect(blame.lines == ["1\t2023-11-14T22:13:20.500Z\tAda\t1\ta b", "2\t-\t-\t2\t-"])
    #expect(blame.status == 0)
    #expect(try await run("log", "blame", directory.path, model.uuidString, "y").lines.isEmpty)
    for arguments in [[], ["no UUID", "x"], [model.uuidString]] {
      let wrong = try await LogProcess("jetstream", ["log", "blame", directory.path] + arguments)
        .finish()
      #expect(wrong.status == 2 && wrong.errors.contains("UUID"))
    }
  }

  @Test("A pipe in the place of a segment is named, and not waited for")
  func pipe() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let name = LogNames.segment(31)
    try #require(mkfifo("\(directory.path)/\(name)", 0o600) == 0)
    let result = try await run("log", "verify", directory.path)
    #expect(result.status == 3 && result.errors.contains(name), "\(result)")
  }

  @Test("A pipe that is no file of the log is ignored, and not waited for")
  func otherPipe() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    try #require(mkfifo("\(directory.path)/x", 0o600) == 0)
    let result = try await run("log", "verify", directory.path)
    #expect(result.status == 0 && result.lines.last == "ok", "\(result)")
    try await FragmentLog(directory.path).close()
  }

  @Test("It goes on with what comes")
  func follow() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let process = try LogProcess("jetstream", ["log", "tail", "-n", "1", "-f", directory.path])
    defer { process.kill() }
    #expect(try await process.line()?.hasPrefix("30\tset\t") == true)
    let log = try FragmentLog(directory.path)
    try log.append(ChangeSet(fragments: [], bases: [:]))
    try await log.sync()
    #expect(try await process.line()?.hasPrefix("31\tset\t") == true)
    process.kill()
    _ = try await process.finish()
    try await log.close()
  }

  @Test("A damaged log is told apart from a torn tail, by place and by status")
  func damaged() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let last = try #require(try LogFiles(POSIXLogDirectory(directory.path)).segments.last)
    let file = URL(fileURLWithPath: directory.path + "/" + LogNames.segment(last))
    let bytes = try Data(contentsOf: file)
    try (bytes + Data(#"{"seq":31,"kind":"set","rest":0,"syn"#.utf8)).write(to: file)
    let torn = try await run("log", "verify", directory.path)
    #expect(torn.status == 0 && torn.lines.contains { $0.hasPrefix("torn tail: ") })
    var changed = bytes
    changed[changed.count - 20] ^= 1
    try changed.write(to: file)
    let damaged = try await run("log", "verify", directory.path)
    #expect(damaged.status == 1 && damaged.lines.last == "damaged")
    #expect(damaged.lines.contains { $0.contains("record 30: its checksum is wrong") })
    let dump = try await run("log", "dump", directory.path)
    #expect(dump.status == 1 && dump.lines.count == 29)
    #expect(dump.errors.contains("record 30"))
  }

  @Test("What was durable and is missing is damage, and says what and where")
  func missingEnd() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let last = try #require(try LogFiles(POSIXLogDirectory(directory.path)).segments.last)
    let file = URL(fileURLWithPath: directory.path + "/" + LogNames.segment(last))
    let bytes = try Data(contentsOf: file)
    let end = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n"))) + 1
    for length in [end, end + 20] {
      try bytes.prefix(length).write(to: file)
      let verified = try await run("log", "verify", directory.path)
      #expect(verified.status == 1 && verified.lines.last == "damaged")
      let place = "\(LogNames.segment(last)), byte \(end), record 30: "
      let problem = "30 records were known to be durable, but only 29 are there"
      #expect(verified.lines.contains { $0.contains(place + problem) }, "\(verified.lines)")
      let dump = try await run("log", "dump", directory.path)
      #expect(dump.status == 1 && dump.lines.count == 29)
      #expect(dump.errors.contains(problem))
    }
  }

  @Test("Without its only segment a log is damaged, and a folder without a log has none")
  func noSegment() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path)
    for number in 1...5 { try log.append(.note, payload(number)) }
    try await log.close()
    try FileManager.default.removeItem(atPath: directory.path + "/" + LogNames.segment(1))
    let problem = "5 records were known to be durable, but no segment is there"
    for command in ["verify", "dump", "tail"] {
      let result = try await run("log", command, directory.path)
      #expect(result.status == 1, "\(command)")
      let said = result.errors + result.lines.joined(separator: "\n")
      #expect(said.contains(problem), "\(command): \(said)")
    }
    // A snapshot shows as well that there was a log.
    let other = try TemporaryDirectory()
    try await makeLog(other.path)
    for first in try LogFiles(POSIXLogDirectory(other.path)).segments {
      try FileManager.default.removeItem(atPath: other.path + "/" + LogNames.segment(first))
    }
    try FileManager.default.removeItem(atPath: other.path + "/lock")
    let result = try await run("log", "verify", other.path)
    #expect(result.status == 1 && result.lines.contains { $0.contains("segment behind it") })
  }

  @Test("Behind a segment that is cut, it tells what is whole")
  func cutSegment() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let segments = try LogFiles(POSIXLogDirectory(directory.path)).segments
    let file = URL(fileURLWithPath: directory.path + "/" + LogNames.segment(1))
    let bytes = try Data(contentsOf: file)
    try bytes.prefix(bytes.count / 2).write(to: file)
    let verified = try await run("log", "verify", directory.path)
    #expect(verified.status == 1 && verified.lines.last == "damaged")
    #expect(verified.lines.count { $0.hasPrefix("damaged: ") } == 1)
    #expect(
      verified.lines.contains("records \(segments[1]) to 30 can be read behind the damage"),
      "\(verified.lines)")
  }

  @Test("Without its first snapshot a log is damaged")
  func firstSnapshot() async throws {
    let directory = try TemporaryDirectory()
    let log = try RecordLog(directory.path)
    try await log.snapshot(at: 0, standingFor: [.set]) {
      [RecordContent(.fragment, Array("{}".utf8))]
    }
    for number in 1...5 { try log.append(.note, payload(number)) }
    try await log.close()
    #expect(try await run("log", "verify", directory.path).status == 0)
    try FileManager.default.removeItem(atPath: directory.path + "/" + LogNames.snapshot(0))
    let verified = try await run("log", "verify", directory.path)
    #expect(verified.status == 1 && verified.lines.last == "damaged")
    #expect(verified.lines.contains { $0.contains("snapshot-000000000000.jsonl") })
  }

  @Test(
    "Output that cannot be written is a failure, with a sentence",
    arguments: [">/dev/full", ">&-", ">/dev/full 2>&-"])
  func unwritableOutput(redirection: String) async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path)
    let result = try await LogProcess(
      "jetstream", ["log", "dump", directory.path], redirection: redirection
    ).finish()
    #expect(result.status == 3)
    let isHeard = !redirection.contains("2>&-")
    #expect(result.errors.contains("the output cannot be written") == isHeard)
  }

  @Test("Wrong usage says what is wrong and how it is right")
  func usage() async throws {
    let help = try await run("log", "--help")
    #expect(help.status == 0 && help.lines.first?.hasPrefix("usage: jetstream log") == true)
    #expect(try await run("--help").status == 0)
    for (arguments, problem) in [
      (["log"], "needs verify, tail, dump, blame, show, diff or new-epoch"),
      (["log", "verify"], "needs the directory"),
      (["log", "look", "x"], "there is no \"look\""), (["look"], "there is no command \"look\""),
      (["log", "tail", "-n", "x", "y"], "-n needs a number"), ([], "usage: jetstream"),
      (["log", "dump", "--json", "x"], "dump has no option --json"),
      (["log", "dump", "--from", "5", "--to", "2", "x"], "--from 5 is behind --to 2"),
      (["log", "dump", "--from", "5", "--snapshot", "x"], "--from cannot be given with it"),
    ] {
      let result = try await LogProcess("jetstream", arguments).finish()
      #expect(result.status == 2 && result.errors.contains(problem), "\(arguments)")
    }
    let nowhere = try await run("log", "verify", "/nowhere/at/all")
    #expect(nowhere.status == 3 && nowhere.errors.contains("No such file or directory"))
    let empty = try TemporaryDirectory()
    let none = try await run("log", "tail", empty.path)
    #expect(none.status == 3 && none.errors.contains("there is no log"))
  }
}
