import Foundation
import Testing

@testable import Jetstream

/// `jetstream log show` and `jetstream log diff` on a tiny log.
@Suite("The commands jetstream log show and diff", .serialized, .timeLimit(.minutes(5)))
struct LogPastToolTests {
  private let root = UUID(pair: 0x0a0a_0a0a_0000_0000, 1)
  private let first = UUID(pair: 0x0b0b_0b0b_0000_0000, 2)
  private let second = UUID(pair: 0x0c0c_0c0c_0000_0000, 3)
  private let third = UUID(pair: 0x0c0c_0c0c_0001_0000, 4)

  private func run(_ arguments: String...) async throws -> LogProcess.End {
    try await LogProcess("jetstream", arguments).finish()
  }

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func change(
    _ uuid: UUID, _ className: String, _ values: JSONObject, _ operations: PropertyOperations = [:]
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: uuid, className: className, properties: values, operations: operations)
  }

  private func add(_ uuid: UUID, _ className: String, _ values: JSONObject) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: className, properties: values)
  }

  /// Five records behind a state.
  private func makeLog(
    _ path: String, _ configuration: LogConfiguration = LogConfiguration()
  ) async throws -> FragmentLog {
    let log = try FragmentLog(path, configuration: configuration)
    let state = change(
      root, "Canvas",
      ["name": "Plan\n\"A\"", "selected": .null, "shapes": [], "my key": ["b": 1, "a": 2]])
    var line: [UInt8] = []
    state.write(to: &line)
    try await log.records.snapshot(at: 0, standingFor: [.set]) { [line] in
      [RecordContent(.fragment, line)]
    }
    let sets = [
      [
        add(first, "Shape", ["x": 0.5, "parts": []]),
        change(root, "Canvas", [:], ["shapes": [.insert(first, .end)]]),
      ],
      [
        add(second, "Shape", ["x": 2, "parts": [text(third)]]),
        add(third, "Part", ["owner": text(second), "seen": ["by": text(first)]]),
        change(
          root, "Canvas", ["selected": text(second)], ["shapes": [.insert(second, .start)]]),
      ],
      [change(first, "Shape", ["x": 1.5]), change(root, "Canvas", ["name": "Plan B"])],
      [change(root, "Canvas", [:], ["shapes": [.move(first, .start)]])],
      [change(root, "Canvas", ["selected": .null], ["shapes": [.remove(second)]])],
    ]
    for fragments in sets {
      try log.append(ChangeSet(fragments: fragments, undo: []))
      try await log.sync()
    }
    return log
  }

  @Test("show prints the tree of a record, each model in its place and once")
  func show() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path).close()
    let before = try await run("log", "show", "--at", "0", directory.path)
    #expect(
      before.lines == [
        "Canvas 0a0a0a0a", #"  name: "Plan\n\"A\"""#, "  selected: null", "  shapes: []",
        #"  "my key": {"a":2,"b":1}"#,
      ])
    let there = try await run("log", "show", directory.path, "--at", "3")
    #expect(
      there.lines == [
        "Canvas 0a0a0a0a-0000", #"  name: "Plan B""#, "  selected: -> Shape 0c0c0c0c-0000",
        "  shapes: 2 models",
        "    Shape 0c0c0c0c-0000", "      x: 2", "      parts: 1 model",
        "        Part 0c0c0c0c-0001", "          owner: -> Shape 0c0c0c0c-0000",
        #"          seen: {"by":"0b0b0b0b-0000-0000-0000-000000000002"}"#,
        "    Shape 0b0b0b0b-0000", "      x: 1.5", "      parts: []",
        #"  "my key": {"a":2,"b":1}"#,
      ])
    #expect(there.status == 0 && there.errors.isEmpty)
    let last = try await run("log", "show", directory.path)
    let fifth = try await run("log", "show", "--at", "5", directory.path)
    #expect(last.lines == fifth.lines)
    #expect(last.lines.contains("  shapes: 1 model") && !last.lines.contains("    Part 0c0c0c0c"))
    let json = try await run("log", "show", "--json", "--at", "1", directory.path)
    let state = [
      change(
        root, "Canvas",
        [
          "name": "Plan\n\"A\"", "selected": .null, "shapes": [text(first)],
          "my key": ["b": 1, "a": 2],
        ]),
      add(first, "Shape", ["x": 0.5, "parts": []]),
    ]
    #expect(json.lines == [state.canonicalJSON] && json.status == 0)
  }

  @Test("A long chain of models takes as many lines as models, none of them indented without end")
  func longChain() async throws {
    let directory = try TemporaryDirectory()
    let log = try await makeLog(directory.path)
    let chain = (0..<3_000).map { UUID(pair: 0x0d0d_0d0d_0000_0000 + UInt64($0) << 32, 5) }
    let fragments = chain.indices.map { place in
      add(chain[place], "Link", ["next": place == 2_999 ? .null : text(chain[place + 1])])
    }
    let head = change(root, "Canvas", ["selected": text(chain[0])])
    try log.append(ChangeSet(fragments: fragments + [head], undo: []))
    try await log.close()
    let lines = try await run("log", "show", directory.path).lines
    let links = lines.filter { $0.contains(": Link ") }
    #expect(links.count == 3_000)
    #expect(links.allSatisfy { $0.utf8.count < 150 })
    let blanks = String(repeating: "  ", count: 40)
    #expect(links[39].hasPrefix(blanks + "next: Link "))
    #expect(links[40].hasPrefix(blanks + "[41] next: Link "))
    #expect(lines.contains { $0.hasPrefix(blanks + "[3001] next: null") })
  }

  @Test("diff prints what came, went and changed, in either direction")
  func diff() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path).close()
    let forward = try await run("log", "diff", "--from", "1", "--to", "3", directory.path)
    #expect(
      forward.lines == [
        "+ Shape 0c0c0c0c-0000", "    x: 2", "    parts: [Part 0c0c0c0c-0001]",
        "+ Part 0c0c0c0c-0001", "    owner: Shape 0c0c0c0c-0000",
        #"    seen: {"by":"0b0b0b0b-0000-0000-0000-000000000002"}"#,
        "~ Canvas 0a0a0a0a-0000", #"    name: "Plan\n\"A\"" -> "Plan B""#,
        "    selected: null -> Shape 0c0c0c0c-0000", "    shapes: + Shape 0c0c0c0c-0000",
        "~ Shape 0b0b0b0b-0000", "    x: 0.5 -> 1.5",
      ])
    #expect(forward.status == 0 && forward.errors.isEmpty)
    let moved = try await run("log", "diff", "--from", "3", "--to", "4", directory.path)
    #expect(moved.lines == ["~ Canvas 0a0a0a0a-0000", "    shapes: another order"])
    let back = try await run("log", "diff", "--from", "1", "--to", "0", directory.path)
    #expect(
      back.lines == [
        "- Shape 0b0b0b0b", "    x: 0.5", "    parts: []",
        "~ Canvas 0a0a0a0a", "    shapes: - Shape 0b0b0b0b",
      ])
    let none = try await run("log", "diff", "--from", "5", directory.path)
    #expect(none.lines == ["no difference"] && none.status == 0)
    let json = try await run("log", "diff", "--json", "--from", "2", "--to", "3", directory.path)
    let expected: JSONValue = [
      "added": [], "removed": [],
      "changed": [
        [
          "uuid": text(root), "clsName": "Canvas",
          "properties": ["name": ["before": "Plan\n\"A\"", "after": "Plan B"]],
        ],
        [
          "uuid": text(first), "clsName": "Shape",
          "properties": ["x": ["before": 0.5, "after": 1.5]],
        ],
      ],
    ]
    guard case .object(let object) = try JSONValue(parsing: json.lines.joined()),
      case .array(let changed)? = object["changed"], case .object(let wanted) = expected
    else {
      Issue.record("no difference: \(json)")
      return
    }
    #expect(object["added"] == [] && object["removed"] == [] && object.count == 3)
    #expect(.array(changed) == wanted["changed"])
  }

  @Test("Records that a log has not, or not any more, are errors that name them and what it has")
  func outside() async throws {
    let directory = try TemporaryDirectory()
    let log = try await makeLog(directory.path)
    let problem = "Record 6 is not in the log, which has 1 to 5."
    for arguments in [
      ["show", "--at", "6"], ["diff", "--from", "6"], ["diff", "--from", "1", "--to", "6"],
      ["dump", "--from", "6"], ["dump", "--from", "6", "--to", "9", "--kind", "set"],
    ] {
      let result = try await LogProcess("jetstream", ["log"] + arguments + [directory.path])
        .finish()
      #expect(result.status == 3 && result.errors.contains(problem), "\(arguments)")
      #expect(result.lines.isEmpty, "\(arguments)")
    }
    var state: [UInt8] = []
    change(root, "Canvas", ["name": "Later"]).write(to: &state)
    try await log.records.snapshot(at: 5, standingFor: [.set]) { [state] in
      [RecordContent(.fragment, state)]
    }
    try log.append(ChangeSet(fragments: [change(root, "Canvas", ["name": "Last"])], undo: []))
    try await log.records.compact(keeping: .nothing)
    try await log.close()
    let gone = try await run("log", "show", "--at", "2", directory.path)
    #expect(
      gone.status == 3 && gone.errors.contains("Record 2 is not in the log, which has 5 to 6."))
    let early = try await run("log", "dump", "--to", "4", directory.path)
    #expect(early.status == 3 && early.lines.isEmpty)
    #expect(early.errors.contains("Record 4 is not in the log, which has 6 to 6."))
    let other = try await run("log", "dump", "--kind", "revision", directory.path)
    #expect(other.status == 0 && other.lines.isEmpty && other.errors.isEmpty)
    let kept = try await run("log", "diff", "--from", "5", "--to", "6", directory.path)
    #expect(kept.lines == ["~ Canvas 0a0a0a0a", #"    name: "Later" -> "Last""#])
  }

  @Test("A damaged log, or one without a state to depart from, is an error that says where")
  func damaged() async throws {
    let directory = try TemporaryDirectory()
    try await makeLog(directory.path).close()
    let file = URL(fileURLWithPath: directory.path + "/" + LogNames.segment(1))
    let bytes = try Data(contentsOf: file)
    var changed = bytes
    changed[changed.count - 20] ^= 1
    try changed.write(to: file)
    for arguments in [["show"], ["show", "--at", "5"], ["diff", "--from", "4"]] {
      let result = try await LogProcess("jetstream", ["log"] + arguments + [directory.path])
        .finish()
      #expect(result.status == 1 && result.lines.isEmpty, "\(arguments)")
      #expect(
        result.errors.contains(LogNames.segment(1)) && result.errors.contains("record 5"),
        "\(arguments): \(result.errors)")
    }
    #expect(try await run("log", "show", "--at", "4", directory.path).status == 0)
    try bytes.write(to: file)
    let name = LogNames.snapshot(0)
    let snapshot = URL(fileURLWithPath: directory.path + "/" + name)
    var state = try Data(contentsOf: snapshot)
    state[state.count - 20] ^= 1
    try state.write(to: snapshot)
    let wrong = try await run("log", "show", "--at", "4", directory.path)
    #expect(wrong.status == 1 && wrong.errors.contains("\(name), byte"))
    try FileManager.default.removeItem(at: snapshot)
    let missing = try await run("log", "show", "--at", "4", directory.path)
    #expect(missing.status == 1 && missing.errors.contains(name))
    let other = try TemporaryDirectory()
    let log = try FragmentLog(other.path)
    try log.append(ChangeSet(fragments: [], bases: [:]))
    try await log.close()
    let none = try await run("log", "show", other.path)
    #expect(
      none.status == 3 && none.errors.contains("Record 1 cannot be read: the log has no snapshot"))
  }

  @Test("Wrong usage says what is wrong")
  func usage() async throws {
    for (arguments, problem) in [
      (["show"], "show needs the directory"), (["show", "--at", "x", "y"], "--at needs a number"),
      (["show", "--at", "-1", "y"], "--at needs a number of at least 0"),
      (["diff", "x"], "diff needs --from"), (["diff", "--from", "x"], "--from needs a number"),
      (["show", "--from", "1", "x"], "show has no option --from"),
    ] {
      let result = try await LogProcess("jetstream", ["log"] + arguments).finish()
      #expect(result.status == 2 && result.errors.contains(problem), "\(arguments)")
    }
    let help = try await run("log", "--help")
    for word in ["show    prints", "--at N", "diff    prints"] {
      #expect(help.lines.contains { $0.contains(word) }, "\(word)")
    }
  }
}
