import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

@Suite("The history of a hosted scope on disk")
struct ScopeLogTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  private func history() -> ScopeHistory {
    let root = UUID()
    let client = UUID()
    let decision = ScopeStanding.Decision(
      number: 3, fragmentReplies: [FragmentReply(), FragmentReply(error: .rejected("no"))],
      sequence: 6)
    return ScopeHistory(
      epoch: "first", sequence: 7,
      state: [
        SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": "a"])
      ],
      clients: [
        client: .init(
          decided: 3, decisions: [decision],
          traces: [
            .init(number: 1, sequence: nil, checksum: 0xFFFF_FFFF, outcome: .rejected),
            .init(number: 2, sequence: 5, checksum: nil, outcome: .other),
          ])
      ])
  }

  @Test("What is appended behind a snapshot is read again, and so is the snapshot")
  func roundTrip() async throws {
    let log = try ServerLog(path)
    #expect(try log.history() == nil)
    var expected = history()
    try await log.snapshot(expected)
    let root = expected.state[0].uuid
    expected.records = [
      ScopeRecord(
        sequence: 8,
        fragments: [
          SyncFragment(
            .change, uuid: root, className: "Canvas", properties: [:],
            operations: ["shapes": [.insert(UUID(), .start)]])
        ],
        decision: .init(
          client: UUID(), number: 4, checksum: 1, fragmentReplies: [FragmentReply()])),
      ScopeRecord(
        sequence: nil, fragments: [],
        decision: .init(
          client: UUID(), number: 1, checksum: 2,
          fragmentReplies: [FragmentReply(error: .rejected("no"))])),
      ScopeRecord(sequence: 9, fragments: expected.state),
    ]
    expected.records[0].id = UUID()
    expected.records[0].undo = [
      SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": "a"])
    ]
    expected.records[0].isRemote = true
    expected.records[2].id = UUID()
    expected.records[2].purpose = .undo(UUID())
    for record in expected.records { try await log.append(record).durable() }
    #expect(try log.history() == expected)
    // The change sets in it can be read as such.
    var cursor = try LogReader(path).read(from: 1)
    var sets: [ChangeSet] = []
    while let record = try cursor.next() {
      if record.kind == .set { sets.append(try ChangeSet(record)) }
    }
    #expect(sets.map(\.fragments) == [expected.records[0].fragments, expected.state])
    #expect(sets.map(\.undo) == [expected.records[0].undo, []])
    #expect(sets.map(\.purpose) == [.edit, expected.records[2].purpose])
    try await log.records.close()
    let again = try ServerLog(path)
    #expect(try again.history() == expected)
    try await again.records.close()
  }

  @Test("A log of something else is refused, with the place")
  func otherLog() async throws {
    let records = try RecordLog(path)
    try await records.append(.set, Array(#"{"id":"x"}"#.utf8)).durable()
    #expect(
      throws: LogError.unreadable(sequence: 1, problem: "there is no state that it departs from")
    ) {
      try ServerLog(records).history()
    }
    try await records.close()
  }

  @Test("A backup that is put in place is another history, in snapshots too")
  func newEpoch() async throws {
    let log = try ServerLog(path)
    try await log.snapshot(history())
    try await FragmentLog(log.records).beginEpoch()
    let again = try #require(try log.history())
    #expect(again.epoch != "first" && !again.epoch.isEmpty)
    #expect(again.sequence == 7)
    try await log.snapshot(again)
    #expect(try log.history() == again)
    try await log.records.close()
  }

  @Test("A history that is begun where there was nothing can be hosted, and its lines are JSON")
  func epochOfNothing() async throws {
    let log = try ServerLog(path)
    try await FragmentLog(log.records).beginEpoch()
    #expect(try log.history() == nil)
    let first = history()
    try await log.snapshot(first)
    #expect(try log.history() == first)
    try await FragmentLog(log.records).beginEpoch()
    #expect(try log.history()?.epoch != "first")
    var cursor = try LogReader(path).read()
    while let record = try cursor.next() {
      #expect(throws: Never.self) { try JSONValue(parsing: record.payload) }
    }
    // Older versions wrote the epoch without quotes.
    try log.records.append(LogKind("epoch"), Array("01234567-89ab-4cde-8f01-23456789abcd".utf8))
    try await log.records.close()
    let again = try ServerLog(path)
    #expect(try again.history()?.epoch == "01234567-89ab-4cde-8f01-23456789abcd")
    try await again.records.close()
  }

  @Test("A history whose end is missing is hosted by those who accept that, and by nobody else")
  func missingEnd() async throws {
    let log = try ServerLog(path)
    try await log.snapshot(history())
    for sequence in 8...10 {
      try await log.append(ScopeRecord(sequence: sequence, fragments: history().state)).durable()
    }
    try await log.records.close()
    // The last record is cut off.
    let file = URL(fileURLWithPath: path + "/log-000000000001.jsonl")
    let bytes = try Data(contentsOf: file)
    let end = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n"))) + 1
    try bytes.prefix(end).write(to: file)
    let error = #expect(throws: LogError.self) { try ServerLog(path) }
    #expect(
      "\(error as Any)".contains("3 records were known to be durable, but only 2 are there"))
    let again = try ServerLog(path, configuration: LogConfiguration(acceptsLoss: true))
    #expect(again.records.opening.losses.map(\.sequence) == [3])
    try await FragmentLog(again.records).beginEpoch()
    let left = try #require(try again.history())
    #expect(left.records.map(\.sequence) == [8, 9] && left.epoch != "first")
    try await again.records.close()
    // It is whole again.
    try await ServerLog(path).records.close()
  }

  @Test("A record that is not what it should be is named")
  func badRecord() async throws {
    let log = try ServerLog(path)
    try await log.snapshot(history())
    try await log.records.append(.set, Array(#"{"sequence":-1,"fragments":[]}"#.utf8)).durable()
    #expect(
      throws: LogError.unreadable(
        sequence: 1,
        problem:
          "\(FragmentError.invalid(field: "sequence", problem: "should be a whole number from 1 up"))"
      )
    ) { try log.history() }
    try await log.records.close()
  }
}

@Suite("A server that is killed and started again", .live, .serialized, .timeLimit(.minutes(5)))
@MainActor
struct ServerRestartTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  private func start(port: UInt16, snapshotEvery: Int = 10_000) async throws -> (
    server: Server, scope: Scope, log: FragmentLog, port: UInt16
  ) {
    let server = Server()
    let scope = Scope(name: "Canvas", root: Canvas())
    let log = try FragmentLog(path)
    try await server.host(scope, log: log, snapshotEvery: snapshotEvery)
    let bound = try await server.listen(port: port)
    return (server, scope, log, bound)
  }

  @Test("A snapshot holds only what the records before it have made, while more is being delivered")
  func snapshotWithinDelivery() async throws {
    let running = try await start(port: 0, snapshotEvery: 2)
    let canvas = try #require(running.scope.root as? Canvas)
    canvas.name = "first"
    running.scope.flush()
    var isFirst = true
    let token = running.scope.onChanges.listen { [scope = running.scope] _ in
      guard isFirst else { return }
      isFirst = false
      canvas.likes += 10
      scope.flush()
    }
    canvas.likes += 1
    running.scope.flush()
    token.cancel()
    #expect(canvas.likes == 11)
    try await wait { try LogReader(path).snapshot()?.sequence ?? 0 >= 2 }
    await running.server.stop()
    try await running.log.records.close()
    let next = try await start(port: 0)
    #expect((next.scope.root as? Canvas)?.likes == 11)
    await next.server.stop()
    try await next.log.records.close()
  }

  @Test("What clients were told is there again, and what they had not sent is applied once")
  func restart() async throws {
    var running = try await start(port: keptPort(), snapshotEvery: 4)
    let one = try await Participant(port: running.port)
    let two = try await Participant(port: running.port)
    var expected = 0
    for round in 0..<5 {
      for number in 0..<3 {
        let shape = Shape()
        shape.label = "\(round) \(number)"
        one.canvas.shapes.append(shape)
        one.canvas.likes += 1
        one.scope.flush()
        two.canvas.likes += 1
        two.scope.flush()
        expected += 2
      }
      if round.isMultiple(of: 2) { await one.settle() }
      // The process is gone: whatever it had in memory, and its connections.
      await running.server.stop()
      try await running.log.records.close()
      running = try await start(port: running.port, snapshotEvery: 4)
    }
    await one.settle()
    await two.settle()
    let likes = expected
    await two.observe(two.canvas, until: { $0.likes == likes && $0.shapes.count == 15 })
    await one.observe(one.canvas, until: { $0.likes == likes })
    #expect(one.scope.canonicalJSON == two.scope.canonicalJSON)
    #expect(running.scope.canonicalJSON == two.scope.canonicalJSON)
    await running.server.stop()
    try await running.log.records.close()
  }
}

private final class LooseNote: ModelObject {
  override class var wireName: String { "Note" }
  @Property var text = ""
}

private struct ShortText: CodableValue {
  var text = ""

  init() {}

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    text = try container.decode(String.self)
    if text.count > 5 {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "It is too long")
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

private final class StrictNote: ModelObject {
  override class var wireName: String { "Note" }
  @Property var text = ShortText()
}

extension ServerRestartTests {
  @Test(
    "A value that a stricter class does not accept ends the start with its name, and stays in the log",
    arguments: [1, 10_000])
  func stricterClass(snapshotEvery: Int) async throws {
    let note = LooseNote()
    let scope = Scope(name: "Note", root: note)
    let server = Server()
    try await server.host(scope, log: FragmentLog(path), snapshotEvery: snapshotEvery)
    note.text = "a long text"
    scope.flush()
    try await server.remove(scope)
    let strict = Scope(name: "Note", root: StrictNote())
    let log = try FragmentLog(path)
    await #expect(
      throws: ScopeError.invalidValue(
        className: "Note", model: note.uuid, property: "text", expected: "ShortText")
    ) { try await Server().host(strict, log: log) }
    try await log.close()
    let again = LooseNote()
    try LogReader(path).restore(into: Scope(name: "Note", root: again))
    #expect(again.text == "a long text")
  }
}
