import Observation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct LiveTrackingTests {
  let board = Workboard(["a", "b", "c"])
  let scope: Scope
  var chores: [Chore] { Array(board.chores) }

  init() { scope = boardScope(board) }

  @Test("A tracking of a query is called once, in the tick that has changed the rows")
  func query() {
    let live = scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(
      isolation: here())
    let reads: [(String, () -> Void)] = [
      ("rows", { _ = live.rows.map(\.title) }), ("count", { _ = live.count }),
      ("isEmpty", { _ = live.rows.isEmpty }),
    ]
    for (name, read) in reads {
      let count = TrackingCount()
      count.track(read)
      let chore = chores[1]
      chore.isDone.toggle()
      #expect(count.value == 0, "\(name) before the tick")
      scope.flush()
      #expect(count.value == 1, "\(name)")
      chore.isDone.toggle()
      scope.flush()
      #expect(count.value == 1, "\(name) without a new tracking")
    }
  }

  @Test("A tick that leaves the rows as they are calls no tracking")
  func unchanged() {
    let live = scope.query(Chore.self).filter { !$0.isDone }.sorted(by: \.title).live(
      isolation: here())
    let count = TrackingCount()
    count.track { live.rows.count }
    // A key that leaves the row in its place, something that was not read, and a change that is taken back.
    chores[0].title = "aa"
    chores[1].note = "n"
    scope.flush()
    let chore = chores[2]
    board.chores.remove(chore)
    board.chores.append(chore)
    scope.flush()
    #expect(count.value == 0)
    chores[0].title = "z"
    scope.flush()
    #expect(count.value == 1)
  }

  @Test("A tracking of sections is called when a row changes its section but not its rank")
  func sections() {
    let live = scope.query(Chore.self).sorted(by: \.title).sections(by: \.priority).live(
      isolation: here())
    let reads: [(String, () -> Void)] = [
      ("sections", { _ = live.sections.count }), ("rows", { _ = live.rows.count }),
      ("count", { _ = live.count }),
    ]
    for (index, (name, read)) in reads.enumerated() {
      let count = TrackingCount()
      count.track(read)
      chores[2].priority = index + 1
      scope.flush()
      #expect(count.value == 1, "\(name)")
      #expect(live.sections.map { $0.count } == [2, 1])
      chores[2].note += "x"
      scope.flush()
      #expect(count.value == 1, "\(name)")
    }
  }

  @Test("A tracking that is set up again from its own call hears of the next change, once")
  func rearmed() {
    let live = board.query(\.chores).live(isolation: here())
    final class Loop: @unchecked Sendable {
      // Used in one isolation domain: a query calls its trackings in its own.
      let live: LiveQuery<Chore>
      var counts: [Int] = []
      init(_ live: LiveQuery<Chore>) { self.live = live }
      func run() {
        withObservationTracking {
          counts.append(live.count)
        } onChange: {
          self.run()
        }
      }
    }
    let loop = Loop(live)
    loop.run()
    for title in ["d", "e"] {
      board.chores.append(Chore(title))
      scope.flush()
    }
    scope.flush()
    #expect(loop.counts == [3, 4, 5])
  }

  @Test("A tracking that has a tick delivered is called for that one as well, after the first")
  func nested() {
    let live = board.query(\.chores).live(isolation: here())
    final class Loop: @unchecked Sendable {
      // Used in one isolation domain, as above.
      let (live, board, scope): (LiveQuery<Chore>, Workboard, Scope)
      var counts: [Int] = []
      init(_ live: LiveQuery<Chore>, _ board: Workboard, _ scope: Scope) {
        (self.live, self.board, self.scope) = (live, board, scope)
      }
      func run() {
        withObservationTracking {
          counts.append(live.count)
        } onChange: {
          self.run()
          guard self.board.chores.count < 6 else { return }
          self.board.chores.append(Chore("x"))
          self.scope.flush()
        }
      }
    }
    let loop = Loop(live, board, scope)
    loop.run()
    board.chores.append(Chore("d"))
    scope.flush()
    #expect(loop.counts == [3, 4, 5, 6])
  }

  @Test("A query that nothing reads or observes computes no difference")
  func untracked() {
    let live = board.query(\.chores).live(isolation: here())
    #expect(live.engine.outlet?.wantsChanges == false)
    let count = TrackingCount()
    count.track { live.count }
    #expect(live.engine.outlet?.wantsChanges == true)
    board.chores.append(Chore("d"))
    scope.flush()
    #expect(count.value == 1)
    #expect(live.engine.outlet?.wantsChanges == false)
  }

  @Test("A stopped query calls no tracking, and one that waits for it keeps nothing alive")
  func stopped() {
    let count = TrackingCount()
    weak var weakLive: LiveQuery<Chore>?
    do {
      let live = board.query(\.chores).live(isolation: here())
      weakLive = live
      count.track { live.count }
      live.stop()
      board.chores.append(Chore("d"))
      scope.flush()
      #expect(live.count == 3)
    }
    #expect(count.value == 0)
    #expect(weakLive == nil)
  }
}
