import Testing

@testable import Jetstream

@Suite(.paced) struct LiveLimitTests {
  let board = Workboard(["a", "b", "c", "d", "e", "f"])
  let scope: Scope
  var chores: [Chore] { Array(board.chores) }

  init() { scope = boardScope(board) }

  private func titles(_ query: LiveQuery<Chore>) -> String { query.rows.map(\.title).joined() }

  @Test("A limit counts in the query's order, whatever the order of the calls")
  func order() {
    let sorted = scope.query(Chore.self).limit(2, offset: 1).sorted(by: \.title, order: .reverse)
    #expect(titles(sorted.live(isolation: here())) == "ed")
    #expect(titles(sorted.filter { $0.title != "e" }.live(isolation: here())) == "dc")
    #expect(titles(sorted.limit(3).live(isolation: here())) == "fed")
    #expect(titles(board.query(\.chores).limit(2, offset: 3).live(isolation: here())) == "de")
    #expect(titles(board.query(\.chores).limit(9, offset: 4).live(isolation: here())) == "ef")
    #expect(titles(board.query(\.chores).limit(.max, offset: .max).live(isolation: here())) == "")
    #expect(titles(board.query(\.chores).limit(0).live(isolation: here())) == "")
    let all = scope.query(Chore.self).live(isolation: here()).rows.map(\.uuid)
    #expect(
      scope.query(Chore.self).limit(4).live(isolation: here()).rows.map(\.uuid)
        == Array(all.prefix(4)))
  }

  @Test("A row that comes into the window because another left is an insertion")
  func replaced() throws {
    let live = board.query(\.chores).sorted(by: \.title).limit(3, offset: 1).live(isolation: here())
    let follower = RowFollower(live)
    chores[2].title = "z"
    scope.flush()
    #expect(titles(live) == "bde")
    let update = try #require(follower.take().only)
    #expect(update.deleted == [1] && update.inserted == [2])
    #expect(update.moved.isEmpty && update.updated.isEmpty)
  }

  @Test("A row that comes in front of the window pushes one in and one out")
  func pushed() throws {
    let live = board.query(\.chores).limit(3, offset: 1).live(isolation: here())
    let follower = RowFollower(live)
    board.chores.insert(Chore("0"), at: 0)
    scope.flush()
    #expect(titles(live) == "abc")
    let update = try #require(follower.take().only)
    #expect(update.inserted == [0] && update.deleted == [2] && update.moved.isEmpty)
  }

  @Test("All rows of the window are replaced when it has been passed by")
  func jumped() throws {
    let live = board.query(\.chores).limit(2, offset: 1).live(isolation: here())
    let follower = RowFollower(live)
    board.chores.replaceSubrange(0..<0, with: ["1", "2", "3", "4"].map { Chore($0) })
    scope.flush()
    #expect(titles(live) == "23")
    board.chores.replaceSubrange(0..<4, with: [])
    scope.flush()
    #expect(titles(live) == "bc")
    #expect(follower.take().map { $0.inserted.count + $0.deleted.count } == [4, 4])
  }

  @Test("Nothing is told of rows outside of the window")
  func outside() {
    let live = board.query(\.chores).filter { $0.priority < 9 }.sorted(by: \.title).limit(2)
      .live(isolation: here())
    let follower = RowFollower(live)
    let count = TrackingCount()
    count.track { live.rows.count }
    chores[4].title = "x"
    chores[3].priority = 9
    chores[2].priority = 3
    board.chores.append(Chore("y"))
    scope.flush()
    #expect(follower.take().isEmpty)
    #expect(count.value == 0)
    // In the window it is told, as an update in place.
    chores[1].priority = 3
    scope.flush()
    #expect(follower.take().only?.updated == [1])
  }

  @Test("Sections have the rows of the window, counted before they are put into sections")
  func sections() {
    for (chore, priority) in zip(chores, [2, 1, 2, 1, 2, 1]) { chore.priority = priority }
    let live = board.query(\.chores).sorted(by: \.title).limit(3, offset: 1)
      .sections(by: \.priority).live(isolation: here())
    let follower = SectionFollower(live)
    func content() -> [String] {
      live.sections.map { "\($0.key):\($0.map(\.title).joined())" }
    }
    #expect(content() == ["1:bd", "2:c"])
    chores[0].title = "z"
    scope.flush()
    #expect(content() == ["1:d", "2:ce"])
    board.chores.removeAll { $0.title == "c" || $0.title == "e" }
    scope.flush()
    #expect(content() == ["1:df", "2:z"])
    #expect(follower.updates.count == 2)
  }

  @Test("Negative arguments are refused with a sentence")
  func negative() async {
    let limit = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { _ = Workboard(["a"]).query(\.chores).limit(-1) }
    #expect(text(limit).contains("The limit of a query must not be negative; it is -1."))
    let offset = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { _ = Workboard(["a"]).query(\.chores).limit(1, offset: -2) }
    #expect(text(offset).contains("The offset of a query must not be negative; it is -2."))
  }
}

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}
