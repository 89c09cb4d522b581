import Foundation
import Testing

@testable import Jetstream

/// What a log knows of the past.
@Suite(.paced) struct LogHistoryTests {
  let root = Node("root")
  let scope: Scope
  let directory: TemporaryDirectory
  let log: FragmentLog

  init() async throws {
    scope = manualScope(root)
    directory = try TemporaryDirectory()
    log = try FragmentLog(directory.path)
    try await log.restore(into: scope)
  }

  /// Makes one set of what `edit` does, and puts it into the log.
  private func append(by author: String? = nil, _ edit: () -> Void) throws {
    let token = scope.onChanges.listen { [log] set in
      var set = set
      set.author = author
      do { try log.append(set) } catch { Issue.record("\(error)") }
    }
    edit()
    scope.flush()
    token.cancel()
  }

  private func state(at sequence: Int) throws -> String {
    let then = Scope(name: "Then", root: Node(), ticker: .manual())
    try log.reader.restore(into: then, at: sequence)
    return then.canonicalJSON
  }

  @Test("A scope can be opened as it was at any number")
  func timeTravel() async throws {
    var states = [scope.canonicalJSON]
    for number in 1...12 {
      try append {
        if number % 3 == 0 {
          root.items.remove(at: 0)
        } else {
          root.items.append(Node("\(number)"))
        }
        root.number = number
      }
      states.append(scope.canonicalJSON)
      if number == 5 { try await log.snapshot(of: scope) }
    }
    try await log.sync()
    for (sequence, state) in states.enumerated() {
      #expect(try self.state(at: sequence) == state, "at \(sequence)")
    }
    #expect(throws: LogError.self) { try state(at: 13) }
    #expect(throws: LogError.self) { try state(at: -1) }
  }

  @Test("A state of the past comes back as one new change")
  func restorePast() async throws {
    try append { root.items = [Node("a"), Node("b")] }
    let before = scope.canonicalJSON
    try append {
      root.items.removeAll()
      root.label = "later"
    }
    try await log.sync()
    let then = Scope(name: "Then", root: Node(), ticker: .manual())
    try log.reader.restore(into: then, at: 1)
    #expect(scope.restore(then.fullState()).isComplete)
    var sets = 0
    let token = scope.onChanges.listen { _ in sets += 1 }
    scope.flush()
    token.cancel()
    #expect(sets == 1 && scope.canonicalJSON == before)
  }

  @Test("The log tells who has written a property, and what")
  func writes() async throws {
    let node = Node("a")
    try append(by: "Ada") { root.items.append(node) }
    try append(by: "Bo") { node.label = "b" }
    try append(by: "Cy") { root.label = "other" }
    try append { node.label = "c" }
    try await log.sync()
    let writes = try log.reader.writes(to: "label", of: node.uuid)
    #expect(writes.map(\.sequence) == [1, 2, 4])
    #expect(writes.map(\.author) == ["Ada", "Bo", nil])
    #expect(writes.map(\.content) == [.value("a"), .value("b"), .value("c")])
    #expect(
      try log.reader.writes(to: "items", of: root.uuid).map(\.content) == [
        .operations([.insert(node.uuid, .end)])
      ])
    #expect(try log.reader.writes(to: "nothing", of: root.uuid).isEmpty)
    #expect(try log.reader.changeSets(in: 2...3).map(\.changeSet.author) == ["Bo", "Cy"])
  }

  @Test("Sets in a log have a date and an author; the words that they have stay")
  func labels() async throws {
    var seconds = 1_000_000.0
    let token = log.record(
      scope, author: "Ada",
      date: {
        seconds += 0.25
        return Date(timeIntervalSince1970: seconds)
      }
    ) { Issue.record("\($0)") }
    scope.modify("first") { root.label = "a" }
    scope.modify("second", author: "Bo") { root.label = "b" }
    token.cancel()
    try await log.sync()
    let writes = try log.reader.writes(to: "label", of: root.uuid)
    #expect(writes.map(\.message) == ["first", "second"])
    #expect(writes.map(\.author) == ["Ada", "Bo"])
    #expect(writes.map(\.date?.timeIntervalSince1970) == [1_000_000.25, 1_000_000.5])
  }

  @Test("The difference of two records leads from one to the other, and back")
  func difference() async throws {
    let (a, b) = (Node("a"), Node("b"))
    try append { root.items = [a, b] }
    try append {
      a.number = 4
      root.items.remove(b)
    }
    try append {
      a.items.append(Node("c"))
      root.left = a
    }
    try await log.sync()
    let scratch = Scope(name: "Scratch", root: Node(), ticker: .manual())
    for from in 0...3 {
      for to in 0...3 {
        let set = try log.reader.difference(from: from, to: to, using: scratch)
        #expect(set.fragments.isEmpty == (from == to))
        let target = try state(at: to)
        #expect(scratch.canonicalJSON == target)
        try log.reader.restore(into: scratch, at: from)
        #expect(scratch.apply(set.fragments).isComplete)
        #expect(scratch.canonicalJSON == target, "\(from) to \(to)")
        #expect(scratch.apply(set.inverse.fragments).isComplete)
        #expect(scratch.canonicalJSON == (try state(at: from)), "\(to) to \(from)")
      }
    }
    #expect(throws: LogError.self) { try log.reader.difference(from: 0, to: 4, using: scratch) }
  }

  @Test("Texts of different bytes are a difference, also those that Swift takes for equal")
  func differenceOfTexts() async throws {
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    try append { root.label = composed }
    try append { root.label = decomposed }
    try await log.sync()
    let scratch = Scope(name: "Scratch", root: Node(), ticker: .manual())
    let set = try log.reader.difference(from: 1, to: 2, using: scratch)
    try #require(set.fragments.count == 1 && set.undo.count == 1)
    #expect(
      set.fragments[0].json.text.utf8.elementsEqual(
        change(to: decomposed).json.text.utf8))
    #expect(set.undo[0].json.text.utf8.elementsEqual(change(to: composed).json.text.utf8))
  }

  private func change(to label: String) -> SyncFragment {
    SyncFragment(
      .change, uuid: root.uuid, className: "Node", properties: ["label": .string(label)])
  }

  @Test("Named revisions are listed by pages, opened, and restored as one change")
  func revisions() async throws {
    #expect(try log.reader.revisions().isEmpty)
    var states: [String] = []
    for number in 1...5 {
      try append { root.number = number }
      let date = Date(timeIntervalSince1970: 1e9 + Double(number))
      try await log.mark(
        "v\(number)", details: number == 2 ? "the second" : nil, author: "Ada", date: date)
      states.append(scope.canonicalJSON)
      if number == 3 { try await log.snapshot(of: scope) }
    }
    try await log.sync()
    let all = try log.reader.revisions()
    #expect(all.map(\.label) == ["v5", "v4", "v3", "v2", "v1"])
    #expect(all.map(\.details) == [nil, nil, nil, "the second", nil])
    #expect(all.last?.date?.timeIntervalSince1970 == 1e9 + 1 && all.last?.author == "Ada")
    let page = try log.reader.revisions(limit: 2)
    #expect(page == Array(all.prefix(2)))
    #expect(try log.reader.revisions(before: page[1].sequence, limit: 2) == Array(all[2...3]))
    for (revision, state) in zip(all, states.reversed()) {
      #expect(try self.state(at: revision.sequence) == state, "\(revision.label)")
    }
    let then = Scope(name: "Then", root: Node(), ticker: .manual())
    try log.reader.restore(into: then, at: all[3].sequence)
    scope.restore(then.fullState())
    #expect(scope.canonicalJSON == states[1] && root.number == 2)
  }

  @Test("A name that is given before there is anything does not hide what is there")
  func markOfNewLog() async throws {
    let folder = try TemporaryDirectory()
    let log = try FragmentLog(folder.path)
    try await log.mark("start", date: nil)
    root.number = 7
    scope.flush()
    let restored = try await log.restore(into: scope)
    #expect(restored.sequence == 1 && restored.snapshot == 1)
    #expect(root.number == 7)
    try await log.close()
    let again = Scope(name: "Again", root: Node(), ticker: .manual())
    try await FragmentLog(folder.path).restore(into: again)
    #expect(again.canonicalJSON == scope.canonicalJSON)
  }

  @Test("A log that was marked before its first use by a client is read as the log of a client")
  func markBeforeClient() async throws {
    let folder = try TemporaryDirectory()
    let log = try FragmentLog(folder.path)
    try await log.mark("start", date: nil)
    let (mine, rejected) = (
      ChangeSet(fragments: [change(to: "mine")], undo: [change(to: "")], author: "Ada"),
      ChangeSet(fragments: [change(to: "rejected")], undo: [change(to: "mine")])
    )
    let decided = ReplicaRecord.Decided(
      number: 2, replies: [FragmentReply(error: .rejected("no"))])
    let records: [ReplicaRecord] = [
      .named(client: UUID(), root: root.uuid), .made(number: 1, mine), .made(number: 2, rejected),
      .decided(decided),
    ]
    try log.records.append(records.map(\.content))
    try await log.sync()
    let reader = log.reader
    let then = Scope(name: "Then", root: Node(), ticker: .manual())
    func label() -> String? { (then.root as? Node)?.label }
    try reader.restore(into: then)
    #expect(label() == "mine" && then.root?.uuid == root.uuid)
    #expect(try UndoHistory(of: then, log: reader).undoStack.map(\.id) == [mine.id])
    #expect(try reader.writes(to: "label", of: root.uuid).map(\.author) == ["Ada"])
    #expect(try reader.rows(at: 3)[root.uuid]?.properties["label"] == "mine")
    // The revision names the state in front of the first change.
    let start = try #require(try reader.revisions().first)
    try reader.restore(into: then, at: start.sequence)
    #expect(label() == "")
    #expect(try reader.rows(at: start.sequence)[root.uuid] == nil)
  }

  @Test("A revision outlives the history that it was in; a wrong one says what is wrong")
  func oldRevisions() async throws {
    let folder = try TemporaryDirectory()
    let log = try FragmentLog(folder.path, configuration: LogConfiguration(history: .nothing))
    try await log.restore(into: scope)
    try await log.mark("first", date: nil)
    let token = log.record(scope) { Issue.record("\($0)") }
    root.number = 1
    scope.flush()
    token.cancel()
    try await log.snapshot(of: scope)
    try await log.mark("second", date: nil)
    try await log.sync()
    let revisions = try log.reader.revisions()
    #expect(revisions.map(\.label) == ["second", "first"])
    #expect(throws: LogError.self) {
      try log.reader.restore(into: Scope(name: "T", root: Node(), ticker: .manual()), at: 1)
    }
    try log.records.append(.revision, Array(#"{"label":3}"#.utf8))
    try await log.sync()
    #expect(
      throws: LogError.unreadable(
        sequence: 4,
        problem: "\(FragmentError.invalid(field: "label", problem: "should be a string"))")
    ) { try log.reader.revisions() }
  }
}
