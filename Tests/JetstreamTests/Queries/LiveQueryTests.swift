import Foundation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct LiveQueryTests {
  let board = Workboard(["d", "b", "a", "c"])
  let scope: Scope
  var chores: [Chore] { Array(board.chores) }

  init() { scope = boardScope(board) }

  private func titles(_ query: LiveQuery<Chore>) -> [String] { query.rows.map(\.title) }

  @Test("Filter, sort and order by a second key")
  func describes() {
    for (index, chore) in chores.enumerated() { chore.priority = index % 2 }
    let sorted = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
    #expect(titles(sorted) == ["a", "b", "c", "d"])
    let two = scope.query(Chore.self).sorted(by: \.priority, order: .reverse).then(by: \.title)
      .live(isolation: here())
    #expect(titles(two) == ["b", "c", "a", "d"])
    let again = scope.query(Chore.self).sorted(by: \.title, order: .reverse).sorted(by: \.priority)
      .live(isolation: here())
    #expect(titles(again) == ["d", "a", "c", "b"])
    let filtered = scope.query(Chore.self).filter { $0.title > "a" }.filter { $0.title < "d" }
      .sorted(by: \.title) { $0 > $1 }.live(isolation: here())
    #expect(titles(filtered) == ["c", "b"])
    #expect(filtered.count == 2 && !filtered.rows.isEmpty)
    #expect(filtered.rows.first?.title == "c" && filtered.rows.last?.title == "b")
    #expect(filtered.rows[1].title == "b")
    #expect(filtered.rows.firstIndex(of: chores[3]) == 0)
    #expect(filtered.rows.firstIndex(of: chores[0]) == nil)
  }

  @Test("Nil and not-a-number come first in ascending order and last in descending order")
  func oddKeys() {
    for (chore, due) in zip(chores, [2, nil, .nan, 1] as [Double?]) { chore.due = due }
    #expect(
      titles(scope.query(Chore.self).sorted(by: \.due).live(isolation: here())) == [
        "b", "a", "c", "d",
      ])
    #expect(
      titles(scope.query(Chore.self).sorted(by: \.due, order: .reverse).live(isolation: here()))
        == ["d", "c", "a", "b"])
    let live = scope.query(Chore.self).sorted(by: \.due).live(isolation: here())
    let follower = RowFollower(live)
    chores[0].due = .nan
    chores[1].due = .nan
    chores[2].due = 0
    scope.flush()
    #expect(follower.rows.suffix(2).map(\.title) == ["a", "c"])
  }

  @Test("Keys of every type are in order, in both directions, and stay so")
  func keyTypes() {
    for (chore, priority) in zip(chores, [2, 4, 1, 3]) { chore.priority = priority }
    func check<Key: Comparable>(_ key: @escaping (Chore) -> Key?) {
      let up = scope.query(Chore.self).sorted(by: key).live(isolation: here())
      let down = scope.query(Chore.self).sorted(by: key, order: .reverse).live(isolation: here())
      let followers = [RowFollower(up), RowFollower(down)]
      for step in 0..<8 {
        let chore = chores[step % 4]
        chore.priority = [5, -1, 2, 0, 7, 3, -9, 1][step]
        scope.flush()
        let order = chores.sorted { $0.priority < $1.priority }
        #expect(Array(up.rows) == order, "\(Key.self), step \(step)")
        #expect(Array(down.rows) == order.reversed(), "\(Key.self), step \(step)")
        for follower in followers {
          #expect(follower.rows == Array((follower === followers[0] ? up : down).rows))
        }
      }
    }
    check(\.priority)
    check { Double($0.priority) }
    check { Float($0.priority) }
    check { Date(timeIntervalSince1970: Double($0.priority)) }
    check { String(format: "%03d", $0.priority + 100) }
    check { chore -> Int8? in chore.priority == -9 ? nil : Int8(chore.priority) }
  }

  @Test("An unsorted query has the collection's order, that of a scope the UUIDs' order")
  func unsorted() {
    let list = board.query(\.chores).filter { $0.title != "b" }.live(isolation: here())
    #expect(titles(list) == ["d", "a", "c"])
    let all = scope.query(Chore.self).live(isolation: here())
    #expect(all.rows.map(\.uuid.uuidString) == chores.map(\.uuid.uuidString).sorted())
  }

  @Test("A change comes in the tick, as one exact update")
  func updates() throws {
    let query = scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(
      isolation: here())
    let follower = RowFollower(query)
    let (d, b, a, c) = (chores[0], chores[1], chores[2], chores[3])
    a.title = "z"
    c.isDone = true
    b.note = "not read by the query"
    #expect(titles(query) == ["z", "b", "c", "d"])
    scope.flush()
    let update = try #require(follower.take().only)
    #expect(follower.rows == [b, d, a])
    #expect(update.moved.map { [$0.from, $0.to] } == [[0, 2]])
    #expect(update.deleted == [2] && update.inserted.isEmpty)
    #expect(update.difference.removals.count == 2)
    #expect(update.difference.insertions.count == 1)
    #expect(update.updated.isEmpty)
    scope.flush()
    b.note = "again"
    scope.flush()
    #expect(follower.take().isEmpty)
  }

  @Test("A key that changes without a new place is an update in place")
  func inPlace() throws {
    let query = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
    let follower = RowFollower(query)
    chores[1].title = "bb"
    chores[0].title = "dd"
    scope.flush()
    let update = try #require(follower.take().only)
    #expect(update.difference.isEmpty)
    #expect(update.updated == [1, 3])
    chores[1].title = "bb"
    scope.flush()
    #expect(follower.take().isEmpty)
  }

  @Test("Rows that come and go again within a tick are no update")
  func comeAndGo() {
    let query = scope.query(Chore.self).filter { $0.priority >= 0 }.live(isolation: here())
    let list = board.query(\.chores).live(isolation: here())
    let (follower, listFollower) = (RowFollower(query), RowFollower(list))
    let chore = Chore("x")
    board.chores.append(chore)
    board.chores.remove(chore)
    let first = chores[0]
    board.chores.remove(first)
    board.chores.insert(first, at: 0)
    board.chores.move(from: 0, to: 3)
    board.chores.move(from: 3, to: 0)
    scope.flush()
    #expect(follower.take().isEmpty)
    #expect(listFollower.take().isEmpty)
  }

  @Test("A collection keeps its order through steps and through replacement")
  func collection() throws {
    let query = board.query(\.chores).filter { !$0.isDone }.live(isolation: here())
    let follower = RowFollower(query)
    board.chores.move(from: 0, to: 3)
    scope.flush()
    #expect(follower.take().only?.moved.map { [$0.from, $0.to] } == [[0, 3]])
    board.chores.insert(Chore("new"), at: 1)
    board.chores.remove(at: 0)
    scope.flush()
    #expect(titles(query) == ["new", "a", "c", "d"])
    board.chores = ModelArray(board.chores.reversed() + [Chore("last")])
    scope.flush()
    #expect(titles(query) == ["d", "c", "a", "new", "last"])
    board.chores.removeAll()
    scope.flush()
    #expect(query.rows.isEmpty)
    #expect(follower.take().count == 3)
  }

  @Test("More steps than are kept are found out as a difference")
  func overfullJournal() {
    let query = board.query(\.chores).live(isolation: here())
    let follower = RowFollower(query)
    for _ in 0..<2_100 {
      board.chores.move(from: 0, to: 3)
      board.chores.move(from: 2, to: 1)
    }
    board.chores.append(Chore("e"))
    scope.flush()
    #expect(follower.rows == chores)
    #expect(follower.take().count == 1)
  }

  @Test("What a row reads of other models counts, also when the path there changes")
  func throughModels() throws {
    let (one, two) = (Project("one"), Project("two"))
    board.projects = [one, two]
    chores[0].project = one
    let query = board.query(\.chores).filter { $0.project?.name == "one" }.live(isolation: here())
    let follower = RowFollower(query)
    chores[1].project = two
    two.color = 5
    scope.flush()
    #expect(follower.take().isEmpty)
    two.name = "one"
    scope.flush()
    #expect(follower.rows == [chores[0], chores[1]])
    chores[0].project = nil
    scope.flush()
    #expect(follower.rows == [chores[1]])
    _ = follower.take()
    one.name = "three"
    scope.flush()
    #expect(follower.take().isEmpty)
    let parts = board.query(\.chores).sorted(by: { $0.parts.count { !$0.isDone } }).live(
      isolation: here())
    let part = Chore("part")
    chores[0].parts.append(part)
    scope.flush()
    #expect(parts.rows.last === chores[0])
    part.isDone = true
    scope.flush()
    #expect(parts.rows.first === chores[0])
  }

  @Test("Subclasses are in, subtrees come and go with their models")
  func subtrees() {
    let all = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
    let errands = scope.query(Errand.self).live(isolation: here())
    let top = Chore("top")
    let errand = Errand()
    errand.title = "errand"
    top.parts = [errand, Chore("part")]
    let follower = RowFollower(all)
    board.inbox = top
    scope.flush()
    #expect(titles(all) == ["a", "b", "c", "d", "errand", "part", "top"])
    #expect(Array(errands.rows) == [errand])
    errand.title = "0"
    board.inbox = nil
    scope.flush()
    #expect(titles(all) == ["a", "b", "c", "d"])
    #expect(errands.rows.isEmpty)
    #expect(follower.take().count == 2)
  }

  @Test("What an observer writes belongs to the next tick")
  func writesInUpdates() {
    let query = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    let follower = RowFollower(query)
    query.observe(follower) { [board] _, _ in
      if board.chores.count < 7 { board.chores.append(Chore("x\(board.chores.count)")) }
      if let first = board.chores.first, first.title != "zz" { first.title += "z" }
    }
    chores[1].title = "bb"
    scope.flush()
    #expect(query.count == 4)
    scope.flush()
    #expect(query.count == 5)
    #expect(follower.take().count == 2)
    while query.count < 7 { scope.flush() }
    scope.flush()
    #expect(follower.rows == board.chores.sorted { $0.title < $1.title })
  }

  @Test("An observer that has the next tick delivered does not get ahead of others")
  func nestedTicks() {
    let query = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    var counts: [Int] = []
    var rows = Array(query.rows)
    query.observe { [board, scope] _ in
      guard board.chores.count < 6 else { return }
      board.chores.append(Chore("x\(board.chores.count)"))
      scope.flush()
    }
    query.observe { update in
      rows = rows.applying(update.difference)!
      counts.append(rows.count)
    }
    board.chores.append(Chore("first"))
    scope.flush()
    #expect(counts == [5, 6])
    #expect(rows == Array(query.rows))
  }

  @Test("The rows fit the update, whoever has a tick delivered in between")
  func ticksInBetween() {
    let query = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    let follower = RowFollower(query)
    var late: RowFollower<Chore>?
    board.observeChange(board, \.chores, isolation: here()) { [scope, board] _ in
      guard board.chores.count < 7 else { return }
      // It sees the rows of this tick, and hears of the next.
      late = late ?? RowFollower(query)
      board.chores.append(Chore("x\(board.chores.count)"))
      scope.flush()
    }
    board.chores.append(Chore("first"))
    scope.flush()
    scope.flush()
    #expect(query.count == 7)
    #expect(follower.rows == Array(query.rows))
    #expect(follower.take().map(\.difference.count) == [1, 2])
    #expect(late?.rows == Array(query.rows))
    #expect(late?.take().count == 1)
  }

  @Test("Rows that somebody keeps stay what they were")
  func keptRows() {
    let query = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    let kept = query.rows
    board.chores.removeAll { $0.title < "c" }
    chores[0].title = "0"
    scope.flush()
    #expect(kept.map { $0 }.count == 4 && kept.count == 4)
    #expect(titles(query) == ["0", "c"])
    #expect(kept.firstIndex(of: chores[0]) == 3)
    #expect(kept.contains(chores[0]))
    #expect(!query.rows.contains(Chore("other")))
  }

  @Test("Remote changes, a full state and a new name of the root come in alike")
  func remote() throws {
    let copy = boardScope(Workboard(uuid: board.uuid))
    _ = try copy.applyFullState(scope.fullState(), rootUUID: board.uuid)
    let copied = try #require(copy.root as? Workboard)
    let query = copy.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(
      isolation: here())
    let list = copied.query(\.chores).live(isolation: here())
    let mine = scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(
      isolation: here())
    let (follower, listFollower) = (RowFollower(query), RowFollower(list))
    scope.onChanges.listen { copy.apply($0.fragments) }
    chores[0].title = "0"
    chores[1].isDone = true
    board.chores.append(Chore("e"))
    board.chores.move(from: 0, to: 2)
    scope.advance()
    copy.flush()
    #expect(follower.take().count == 1)
    #expect(listFollower.take().count == 1)
    #expect(follower.rows.map(\.uuid) == mine.rows.map(\.uuid))
    #expect(listFollower.rows.map(\.uuid) == chores.map(\.uuid))
  }

  @Test("A root that takes the server's UUID stands where that belongs", arguments: 0..<8)
  func renamedRoot(attempt: Int) throws {
    let local = Workboard(["a", "b", "c"])
    let copy = boardScope(local)
    let query = copy.query(ModelObject.self).live(isolation: here())
    let follower = RowFollower(query)
    let state = copy.fullState()
    let uuid = UUID()
    let root = SyncFragment(
      .change, uuid: uuid, className: "Workboard", properties: state[0].properties)
    _ = try copy.applyFullState([root] + state.dropFirst(), rootUUID: uuid)
    copy.flush()
    #expect(local.uuid == uuid)
    #expect(query.rows.map(\.uuid.uuidString) == copy.models.map(\.uuid.uuidString).sorted())
    #expect(follower.rows == Array(query.rows))
  }

  @Test("Equal rows have the same order in all replicas")
  func replicaOrder() throws {
    let copy = boardScope(Workboard(uuid: board.uuid))
    _ = try copy.applyFullState(scope.fullState(), rootUUID: board.uuid)
    let mine = scope.query(ModelObject.self).live(isolation: here())
    let theirs = copy.query(ModelObject.self).live(isolation: here())
    #expect(mine.rows.map(\.uuid) == theirs.rows.map(\.uuid))
    #expect(mine.count == 5)
  }
}

extension Collection {
  /// The element, if there is exactly one.
  var only: Element? { count == 1 ? first : nil }
}
