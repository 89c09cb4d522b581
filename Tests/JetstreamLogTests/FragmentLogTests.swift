import Foundation
import JetstreamSimulation
import Pacing
import Testing

@testable import Jetstream

private final class Note: ModelObject {
  @Property var text = ""
  @Property var stars = 0
}

private final class Notebook: ModelObject {
  @Property var title = ""
  @Property var notes: ModelArray<Note> = []
}

@Suite("The fragment log")
struct FragmentLogTests {
  private func makeScope() -> (Notebook, Scope) {
    let root = Notebook()
    return (root, Scope(name: "Notebook", root: root, ticker: .manual()))
  }

  @Test("A scope that is kept is the same in the next process")
  func restore() async throws {
    let directory = try TemporaryDirectory()
    let (book, scope) = makeScope()
    book.title = "Before"
    let log = try FragmentLog(directory.path)
    let first = try await log.restore(into: scope)
    #expect(first.snapshot == 0 && first.changeSetCount == 0)
    log.record(scope) { Issue.record("\($0)") }
    for number in 0..<20 {
      let note = Note()
      note.text = "Note \(number)"
      book.notes.append(note)
      scope.flush()
    }
    book.notes.remove(at: 3)
    book.notes.move(from: 0, to: 5)
    book.notes[2].stars = 4
    scope.flush()
    try await log.close()

    let (_, again) = makeScope()
    let reopened = try FragmentLog(directory.path)
    let restored = try await reopened.restore(into: again)
    #expect(restored.snapshot == 0 && restored.changeSetCount == 21 && restored.sequence == 21)
    #expect(restored.misfits.isEmpty && restored.others.isEmpty)
    #expect(again.canonicalJSON == scope.canonicalJSON)
    #expect((again.root as? Notebook)?.title == "Before")
    #expect(!again.hasCollectedChanges)

    // After a snapshot, the same without the sets.
    try await reopened.snapshot(of: again)
    try await reopened.close()
    let (_, third) = makeScope()
    let last = try await FragmentLog(directory.path).restore(into: third)
    #expect(last.snapshot == 21 && last.changeSetCount == 0)
    #expect(third.canonicalJSON == scope.canonicalJSON)
  }

  @Test("Snapshots are made now and then, and only the tail is applied")
  func snapshots() async throws {
    let directory = try TemporaryDirectory()
    let (book, scope) = makeScope()
    let log = try FragmentLog(directory.path, configuration: .init(history: .nothing))
    try await log.restore(into: scope)
    log.record(scope, snapshotEvery: 10) { Issue.record("\($0)") }
    for number in 1...25 {
      book.title = "Title \(number)"
      scope.flush()
      // A segment that has more than the snapshot stands for is not removed.
      guard number.isMultiple(of: 10) else { continue }
      try await wait { (try? LogReader(directory.path).snapshot())?.sequence == number }
    }
    try await log.close()
    let (_, again) = makeScope()
    let reopened = try FragmentLog(directory.path)
    let restored = try await reopened.restore(into: again)
    #expect(restored.snapshot == 20 && restored.changeSetCount == 5)
    #expect(again.canonicalJSON == scope.canonicalJSON)
    #expect(try LogReader(directory.path).firstSequence() == 21)
  }

  @Test("Appending a set again does nothing and gives the same number")
  func again() async throws {
    let directory = try TemporaryDirectory()
    let log = try FragmentLog(directory.path)
    let sets = (0..<5).map { _ in ChangeSet(fragments: [], bases: [:]) }
    #expect(try log.append(sets[0]).sequence == 1)
    #expect(try log.append(sets[0]).sequence == 1)
    #expect(try log.append(Array(sets[1...])).sequence == 5)
    #expect(try log.append(Array(sets[1...])).sequence == 5)
    #expect(try log.append(sets[2]).sequence == 3)
    try await log.sync()
    #expect(try log.append(sets[4]).sequence == 5)
    #expect(try LogReader(directory.path).all().map { try ChangeSet($0) } == sets)
  }

  @Test("While the disk fails, sets wait, and the app is told; then all are there once")
  func failure() throws {
    let disk = SimulatedDisk()
    let simulated = try SimulatedLog(disk)
    let log = FragmentLog(simulated.log)
    let (book, scope) = makeScope()
    let failures = ResultBox()
    log.record(scope) { failures.put(Result<Void, LogError>.failure($0)) }
    disk.isFull = true
    for number in 1...40 {
      book.title = "Title \(number)"
      scope.flush()
      simulated.drain()
    }
    #expect(throws: LogError.self) { try #require(failures.result).get() }
    disk.isFull = false
    book.title = "Last"
    scope.flush()
    simulated.drain()
    #expect(simulated.log.durableSequence == 41)
    let titles = try LogReader(disk).all().map {
      try ChangeSet($0).fragments[0].properties["title"]
    }
    #expect(titles == (1...40).map { .string("Title \($0)") } + ["Last"])
  }

  @Test("What does not fit the models is reported with its number, and the rest is applied")
  func misfits() async throws {
    let directory = try TemporaryDirectory()
    let (book, scope) = makeScope()
    let log = try FragmentLog(directory.path)
    try await log.restore(into: scope)
    for (title, uuid) in [("One", book.uuid), ("Two", UUID()), ("Three", book.uuid)] {
      let fragment = SyncFragment(
        .change, uuid: uuid, className: "Notebook", properties: ["title": .string(title)])
      try log.append(ChangeSet(fragments: [fragment], bases: [:]))
    }
    try log.records.append(.other, Array("{}".utf8))
    try await log.close()
    let (again, scope2) = makeScope()
    let reopened = try FragmentLog(directory.path)
    let result = try await reopened.restore(into: scope2)
    #expect(again.title == "Three" && result.changeSetCount == 3 && result.sequence == 4)
    #expect(result.misfits.map(\.sequence) == [2])
    #expect(result.others.map(\.sequence) == [4] && result.others.map(\.kind) == [.other])
    // They survive a snapshot.
    try await reopened.snapshot(of: scope2)
    try await reopened.close()
    let (_, third) = makeScope()
    let last = try await FragmentLog(directory.path).restore(into: third)
    #expect(last.others.map(\.sequence) == [4])
  }

  @Test("A record that is whole but no change set is an error with its number")
  func unreadable() async throws {
    let directory = try TemporaryDirectory()
    let (_, scope) = makeScope()
    let log = try FragmentLog(directory.path)
    try await log.restore(into: scope)
    for text in [#"{"id":7}"#, #"{"id":"#, "[]"] {
      let number = try log.records.append(.set, Array(text.utf8)).sequence
      try await log.sync()
      var cursor = log.records.read(from: number)
      let record = try #require(try cursor.next())
      #expect {
        try ChangeSet(record)
      } throws: { error in
        if case .unreadable(sequence: number, _)? = error as? LogError { true } else { false }
      }
    }
    #expect(throws: LogError.self) { _ = try log.restoreWhatIsThere(into: scope) }
  }

  @Test("A change set is the same after JSON, by either writer")
  func changeSetJSON() throws {
    var random = SeededGenerator(seed: 3)
    for round in 0..<200 {
      var fragments: [SyncFragment] = []
      var undo: [SyncFragment] = []
      for _ in 0..<Int(random.next() % 5) {
        guard
          case .object(let properties) = JSONValue.object(
            ["a": random.json(depth: 2), "b": random.json(depth: 1)])
        else { continue }
        let uuid = UUID(pair: random.next(), random.next())
        let kind: SyncFragment.Kind = random.next().isMultiple(of: 2) ? .add : .change
        fragments.append(SyncFragment(kind, uuid: uuid, className: "A", properties: properties))
        var before = SyncFragment(
          kind, uuid: uuid, className: "A", properties: ["a": random.json(depth: 1)])
        if kind == .change, random.next().isMultiple(of: 2) {
          before.operations = ["n": [.add(7), .remove(uuid)]]
          fragments[fragments.count - 1].operations = ["n": [.add(-7)]]
        }
        undo.append(before)
      }
      let set = ChangeSet(
        id: UUID(pair: random.next(), random.next()), fragments: fragments, undo: undo,
        author: round % 3 == 0 ? random.text(upTo: 9) : nil,
        message: round % 4 == 0 ? random.text(upTo: 9) : nil,
        date: round % 5 == 0
          ? Date(timeIntervalSince1970: Double.random(in: -1e12...1e12, using: &random)) : nil,
        isAtomic: round % 6 == 0, procedure: round % 7 == 0 ? random.text(upTo: 9) : nil)
      var bytes: [UInt8] = []
      set.write(to: &bytes)
      #expect(String(decoding: bytes, as: UTF8.self) == set.json.text)
      #expect(try ChangeSet(json: JSONValue(parsing: bytes)) == set, "round \(round)")
      #expect(!bytes.contains { $0 < 0x20 })
    }
  }

  @Test(
    "A change set that is none says which field is wrong",
    arguments: [
      ("[]", FragmentError.notAnObject), ("{}", .missing(field: "id")),
      (#"{"id":"x"}"#, .invalid(field: "id", problem: "should be a UUID")),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001"}"#, .missing(field: "fragments")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[{}]}"#,
        .invalid(field: "fragments", problem: "element 0: type is missing")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[],"author":1}"#,
        .invalid(field: "author", problem: "should be a string")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[],"date":"today"}"#,
        .invalid(field: "date", problem: "should be a number of seconds")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[],"date":"NaN"}"#,
        .invalid(field: "date", problem: "should be a number of seconds")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[],"atomic":1}"#,
        .invalid(field: "atomic", problem: "should be true or false")
      ),
      (
        #"{"id":"00000000-0000-0000-0000-000000000001","fragments":[],"undo":{}}"#,
        .invalid(field: "undo", problem: "should be an array")
      ),
    ])
  func wrongChangeSet(_ text: String, _ error: FragmentError) throws {
    let json = try JSONValue(parsing: text)
    #expect(throws: error) { try ChangeSet(json: json) }
  }
}

extension FragmentLogTests {
  @Test("Opening creates the folders above the log, and names the one that it cannot create")
  func foldersAbove() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/ada/rooms/lobby"
    let (book, scope) = makeScope()
    let log = try FragmentLog(path)
    try await log.restore(into: scope)
    log.record(scope) { Issue.record("\($0)") }
    book.title = "kept"
    scope.flush()
    try await log.close()
    let (again, other) = makeScope()
    try LogReader(path).restore(into: other)
    #expect(again.title == "kept")
    let file = directory.path + "/file"
    try Data().write(to: URL(filePath: file))
    #expect(throws: LogError.file(LogFileError(.open, file + "/log", code: ENOTDIR))) {
      try FragmentLog(file + "/log")
    }
  }
}
