import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct LiveSectionsTests {
  let board = Workboard(["a", "b", "c", "d", "e"])
  let scope: Scope
  let home = Project("home")
  let work = Project("work")
  var chores: [Chore] { Array(board.chores) }

  init() {
    scope = boardScope(board)
    board.projects = [home, work]
    for (index, chore) in chores.enumerated() { chore.project = [nil, home, work][index % 3] }
  }

  private func content(_ live: LiveSections<String?, Chore>) -> [String] {
    live.sections.map { "\($0.key ?? "-"):\($0.map(\.title).joined())" }
  }

  @Test("Sections stand in the order of their keys, rows in that of the query")
  func order() {
    let live = scope.query(Chore.self).sorted(by: \.title).sections(by: \.project?.name).live(
      isolation: here())
    #expect(content(live) == ["-:ad", "home:be", "work:c"])
    let descending = board.query(\.chores).sections(by: \.project?.name, order: .reverse).live(
      isolation: here())
    #expect(content(descending) == ["work:c", "home:be", "-:ad"])
    #expect(live.count == 5 && !live.rows.isEmpty)
    #expect(live.path(of: chores[4]) == [1, 1])
    #expect(live[[1, 1]] === chores[4])
    #expect(live.path(of: Chore("x")) == nil)
    let plain = scope.query(Chore.self).sections(by: \.priority).live(isolation: here())
    #expect(plain.sections.map(\.key) == [0])
    #expect(plain.sections[0].count == 5)
  }

  @Test("Rows move between sections, sections come and go")
  func moves() throws {
    let live = board.query(\.chores).sections(by: \.project?.name).live(isolation: here())
    let follower = SectionFollower(live)
    chores[0].project = home
    scope.flush()
    #expect(content(live) == ["-:d", "home:abe", "work:c"])
    var update = try #require(follower.updates.only)
    #expect(
      update.moved.map { [$0.from, $0.to] } == [
        [[0, 0], [1, 0]]
      ])
    #expect(update.insertedSections.isEmpty && update.deletedSections.isEmpty)

    // Out of a section that goes: an insertion.
    chores[3].project = work
    scope.flush()
    update = try #require(follower.updates.last)
    #expect(update.deletedSections == [0])
    #expect(update.moved.isEmpty && update.deleted.isEmpty)
    #expect(update.inserted == [[1, 1]])

    // Into a section that comes: a deletion.
    chores[0].project = nil
    scope.flush()
    update = try #require(follower.updates.last)
    #expect(update.insertedSections == [0])
    #expect(update.deleted == [[0, 0]])
    #expect(update.moved.isEmpty && update.inserted.isEmpty)
    #expect(content(live) == ["-:a", "home:be", "work:cd"])
  }

  @Test("A section whose only row changes its place for another one stays the same section")
  func refilled() throws {
    let live = board.query(\.chores).sections(by: \.project?.name).live(isolation: here())
    let follower = SectionFollower(live)
    chores[2].project = home
    chores[1].project = work
    scope.flush()
    let update = try #require(follower.updates.only)
    #expect(update.deletedSections.isEmpty && update.insertedSections.isEmpty)
    #expect(update.moved.count == 2)
    #expect(content(live) == ["-:ad", "home:ce", "work:b"])
  }

  @Test("A row that changes its section but not its rank moves")
  func neighbours() throws {
    let live = board.query(\.chores).sections(by: \.project?.name).live(isolation: here())
    let follower = SectionFollower(live)
    // The last one without a project becomes the first one at home.
    chores[3].project = home
    board.chores.move(from: 3, to: 1)
    scope.flush()
    #expect(content(live) == ["-:a", "home:dbe", "work:c"])
    let update = try #require(follower.updates.only)
    #expect(
      update.moved.map { [$0.from, $0.to] }
        == [[[0, 1], [1, 0]]])
  }

  @Test("Renaming what the key reads takes all its rows along")
  func rename() throws {
    let live = board.query(\.chores).sections(by: \.project?.name).live(isolation: here())
    let follower = SectionFollower(live)
    home.name = "zoo"
    scope.flush()
    #expect(content(live) == ["-:ad", "work:c", "zoo:be"])
    let update = try #require(follower.updates.only)
    #expect(update.deletedSections == [1])
    #expect(update.insertedSections == [2])
    #expect(update.moved.isEmpty && update.deleted.isEmpty && update.inserted.isEmpty)
    #expect(update.difference.insertions.count == 2)
    home.color = 3
    scope.flush()
    #expect(follower.updates.count == 1)
  }

  @Test("A change in place is told by its path")
  func inPlace() throws {
    let live = board.query(\.chores).filter { $0.priority < 9 }.sections(by: \.project?.name)
      .live(isolation: here())
    let follower = SectionFollower(live)
    chores[4].priority = 3
    chores[0].priority = 9
    scope.flush()
    let update = try #require(follower.updates.only)
    #expect(update.updated == [[1, 1]])
    #expect(update.deleted == [[0, 0]])
  }

  @Test("Sections that somebody keeps stay what they were")
  func kept() {
    let live = board.query(\.chores).sections(by: \.project?.name).live(isolation: here())
    let kept = live.sections
    board.chores = []
    scope.flush()
    #expect(live.rows.isEmpty && live.sections.isEmpty)
    #expect(kept.map { $0.count } == [2, 2, 1])
    #expect(kept[1].map(\.title) == ["b", "e"])
  }
}
