import Testing

@testable import Jetstream

/// Queries of all kinds over one forest that is changed at random.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct QueryForestTests {
  private typealias World = QueryWorld

  /// One kind of query with what it has to show.
  private struct Check {
    let verify: () -> Void
    let updates: () -> Int
  }

  private func check(
    _ world: World, _ query: Query<Chore>, _ fresh: @escaping () -> [Chore]
  ) -> Check {
    let live = query.live(isolation: here())
    let follower = RowFollower(live) { world.place }
    return Check(
      verify: {
        let rows = Array(live.rows)
        let expected = fresh()
        #expect(rows == expected, "\(world.place)")
        #expect(follower.rows == expected, "\(world.place)")
        for (index, row) in rows.enumerated() {
          #expect(
            live.rows.firstIndex(of: row) == index && live.rows[index] === row, "\(world.place)")
        }
        for chore in world.chores where !expected.contains(chore) {
          #expect(live.rows.firstIndex(of: chore) == nil, "\(world.place)")
        }
      }, updates: { follower.updates.count })
  }

  private func check<Key: Comparable & Hashable>(
    _ world: World, _ query: SectionedQuery<Key?, Chore>, _ key: @escaping (Chore) -> Key?,
    _ fresh: @escaping () -> [Chore]
  ) -> Check {
    let live = query.live(isolation: here())
    let follower = SectionFollower(live) { world.place }
    return Check(
      verify: {
        let groups = Dictionary(grouping: fresh(), by: key)
        let keys = groups.keys.sorted { KeyOrder.compare($0, $1) < 0 }
        #expect(live.sections.map(\.key) == keys, "\(world.place)")
        #expect(live.sections.map { Array($0) } == keys.map { groups[$0]! }, "\(world.place)")
        #expect(follower.sections == keys.map { groups[$0]! }, "\(world.place)")
        for (section, key) in keys.enumerated() {
          for (item, row) in groups[key]!.enumerated() {
            #expect(live.path(of: row) == [section, item], "\(world.place)")
          }
        }
      }, updates: { follower.updates.count })
  }

  @Test(
    "After each tick the rows are those of a fresh query, and updates lead there",
    arguments: seeds(1...6))
  func random(seed: UInt64) {
    let world = World(seed: seed)
    let (board, scope) = (world.board, world.scope)
    var evaluated: [Chore] = []
    func inScope() -> [Chore] {
      scope.models.compactMap { $0 as? Chore }.sorted { $0.uuid.uuidString < $1.uuid.uuidString }
    }
    func stable<Key>(_ all: [Chore], _ key: (Chore) -> Key, _ order: (Key, Key) -> Int) -> [Chore] {
      all.enumerated().sorted {
        let result = order(key($0.element), key($1.element))
        return result != 0 ? result < 0 : $0.offset < $1.offset
      }.map(\.element)
    }
    let checks = [
      check(
        world,
        scope.query(Chore.self).filter {
          evaluated.append($0)
          return !$0.isDone && $0.priority > 0
        }.sorted(by: \.due, order: .reverse).then(by: \.title)
      ) {
        let found = inScope().filter { !$0.isDone && $0.priority > 0 }
        return stable(stable(found, \.title) { KeyOrder.compare($0, $1) }, \.due) {
          KeyOrder.compare($1, $0)
        }
      },
      check(world, scope.query(Chore.self)) { inScope() },
      check(world, board.query(\.chores).filter { $0.priority != 2 }) {
        board.chores.filter { $0.priority != 2 }
      },
      check(world, board.query(\.chores).sorted(by: \.title)) {
        stable(Array(board.chores), \.title) { KeyOrder.compare($0, $1) }
      },
      check(
        world, board.query(\.chores).filter { $0.project?.name != "p1" }.sorted(by: \.parts.count)
      ) {
        stable(board.chores.filter { $0.project?.name != "p1" }, \.parts.count) {
          KeyOrder.compare($0, $1)
        }
      },
      check(
        world, scope.query(Chore.self).sorted(by: \.title).sections(by: \.project?.name),
        \.project?.name
      ) { stable(inScope(), \.title) { KeyOrder.compare($0, $1) } },
      check(
        world, board.query(\.chores).filter { !$0.isDone }.sections(by: \.project?.name),
        \.project?.name
      ) { board.chores.filter { !$0.isDone } },
      check(
        world, scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).limit(5, offset: 3)
      ) {
        Array(
          stable(inScope().filter { !$0.isDone }, \.title) { KeyOrder.compare($0, $1) }
            .dropFirst(3).prefix(5))
      },
      check(world, board.query(\.chores).limit(6)) { Array(board.chores.prefix(6)) },
      check(
        world, board.query(\.chores).filter { $0.priority != 2 }.limit(4, offset: 4)
      ) { Array(board.chores.filter { $0.priority != 2 }.dropFirst(4).prefix(4)) },
      check(
        world,
        board.query(\.chores).sorted(by: \.title).limit(8, offset: 2).sections(by: \.project?.name),
        \.project?.name
      ) {
        Array(
          stable(Array(board.chores), \.title) { KeyOrder.compare($0, $1) }.dropFirst(2).prefix(8))
      },
    ]
    world.place = "seed \(seed), start"
    for check in checks { check.verify() }
    for step in 0..<200 {
      world.place = "seed \(seed), step \(step)"
      world.touched = []
      let before = Set(inScope())
      for _ in 0..<Int.random(in: 1...6, using: &world.generator) { world.change() }
      evaluated = []
      scope.flush()
      let arrived = Set(inScope()).subtracting(before)
      #expect(Set(evaluated).count == evaluated.count, "evaluated twice, \(world.place)")
      #expect(
        Set(evaluated).isSubset(of: world.touched.union(arrived)), "for nothing, \(world.place)")
      for check in checks { check.verify() }
      let counts = checks.map { $0.updates() }
      scope.flush()
      #expect(checks.map { $0.updates() } == counts, "an update for nothing, \(world.place)")
    }
    for check in checks { #expect(check.updates() > 15, "seed \(seed)") }
  }

  @Test(
    "A replica's queries follow what comes from elsewhere", arguments: seeds(20...23))
  func replica(seed: UInt64) throws {
    let world = World(seed: seed)
    let copy = boardScope(Workboard(uuid: world.board.uuid))
    world.scope.flush()
    _ = try copy.applyFullState(world.scope.fullState(), rootUUID: world.board.uuid)
    let copied = try #require(copy.root as? Workboard)
    func queries(_ scope: Scope, _ board: Workboard) -> [LiveQuery<Chore>] {
      [
        scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(isolation: here()),
        board.query(\.chores).live(isolation: here()),
        board.query(\.chores).sorted(by: { $0.project?.name }).live(isolation: here()),
      ]
    }
    let mine = queries(world.scope, world.board)
    let theirs = queries(copy, copied)
    let followers = theirs.map { query in RowFollower(query) { world.place } }
    world.scope.onChanges.listen { copy.apply($0.fragments) }
    for step in 0..<100 {
      world.place = "seed \(seed), step \(step)"
      for _ in 0..<4 { world.change() }
      world.scope.advance()
      copy.flush()
      for (one, other) in zip(mine, theirs) {
        #expect(one.rows.map(\.uuid) == other.rows.map(\.uuid), "\(world.place)")
      }
      for (query, follower) in zip(theirs, followers) {
        #expect(follower.rows == Array(query.rows), "\(world.place)")
      }
    }
  }
}
