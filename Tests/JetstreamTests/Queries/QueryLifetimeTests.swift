import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct QueryLifetimeTests {
  @Test("A released query has nothing registered any more, anywhere")
  func released() {
    let board = Workboard(["a", "b"])
    let project = Project("p")
    board.projects = [project]
    let scope = boardScope(board)
    let chores = Array(board.chores)
    chores[0].project = project
    let models: [ModelObject] = [board, project] + chores
    var evaluations = 0
    do {
      let all = scope.query(Chore.self).filter {
        evaluations += 1
        return $0.project?.name != "x"
      }.live(isolation: here())
      let list = board.query(\.chores).sorted(by: \.title).live(isolation: here())
      #expect(models.allSatisfy { $0.record?.nodes.isEmpty == false })
      // Something waits for the tick while they go.
      board.chores.append(Chore("c"))
      project.name = "q"
      #expect(all.count == 2 && list.count == 2)
    }
    evaluations = 0
    #expect(models.allSatisfy { $0.record?.nodes.isEmpty == true })
    #expect(scope.tree.observers.isEmpty)
    scope.flush()
    project.name = "r"
    scope.flush()
    #expect(evaluations == 0)
  }

  @Test("A stopped query keeps its rows and tells nobody")
  func stopped() {
    let board = Workboard(["a", "b"])
    let scope = boardScope(board)
    let live = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
    let follower = RowFollower(live)
    board.chores[0].title = "z"
    live.stop()
    live.stop()
    scope.flush()
    #expect(follower.updates.isEmpty)
    #expect(live.count == 2)
    #expect(board.chores.allSatisfy { $0.record?.nodes.isEmpty == true })
  }

  @Test("Once an observer has stopped a query, no other one is called")
  func stoppedByObserver() {
    let board = Workboard(["a"])
    let scope = boardScope(board)
    let live = board.query(\.chores).live(isolation: here())
    var calls: [String] = []
    live.observe { _ in
      calls.append("stops")
      live.stop()
    }
    live.observe { _ in calls.append("rows") }
    board.chores.append(Chore("b"))
    scope.flush()
    #expect(calls == ["stops"])
  }

  @Test("Observers are held weakly, tokens cancel, and a query does not keep itself alive")
  func observers() {
    let board = Workboard(["a"])
    let scope = boardScope(board)
    weak var weakLive: LiveQuery<Chore>?
    var calls = 0
    do {
      let live = board.query(\.chores).live(isolation: here())
      weakLive = live
      var listener: Listener? = Listener()
      live.observe(listener!) { _, _ in calls += 1 }
      let token = live.observe { [weak live] _ in calls += live == nil ? 100 : 1 }
      board.chores.append(Chore("b"))
      scope.flush()
      #expect(calls == 2)
      listener = nil
      token.cancel()
      board.chores.append(Chore("c"))
      scope.flush()
      #expect(calls == 2)
      #expect(live.count == 3)
    }
    #expect(weakLive == nil)
  }

  @Test("A query may be released by its own observer")
  func releasedByObserver() {
    let board = Workboard(["a"])
    let scope = boardScope(board)
    var live: LiveQuery<Chore>? = board.query(\.chores).live(isolation: here())
    var calls = 0
    live?.observe { _ in
      calls += 1
      live = nil
    }
    live?.observe { _ in calls += 1 }
    board.chores.append(Chore("b"))
    scope.flush()
    board.chores.append(Chore("c"))
    scope.flush()
    #expect(live == nil)
    #expect(calls >= 1 && calls <= 2)
  }

  @Test("A query keeps neither its scope nor the owner of its collection alive")
  func source() {
    weak var weakBoard: Workboard?
    weak var weakScope: Scope?
    weak var weakChore: Chore?
    let ticker = Ticker.manual()
    var all: LiveQuery<Chore>?
    var list: LiveQuery<Chore>?
    var loose: Chore?
    do {
      let board = Workboard(["b", "a"])
      let scope = Scope(name: "S", root: board, ticker: ticker)
      all = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
      list = board.query(\.chores).filter { $0.priority < 5 }.live(isolation: here())
      loose = board.chores[0]
      weakChore = board.chores[1]
      board.chores.append(Chore("gone unseen"))
      (weakBoard, weakScope) = (board, scope)
    }
    #expect(weakBoard == nil && weakScope == nil)
    ticker.tick()
    // No model comes or goes; what the rows say is followed on.
    #expect(all?.rows.map(\.title) == ["a", "b"])
    do {
      let follower = RowFollower(all!)
      loose?.title = "0"
      loose?.priority = 7
      ticker.tick()
      #expect(follower.rows.map(\.title) == ["0", "a"])
      #expect(list?.rows.map(\.title) == ["a"])
    }
    #expect(weakChore != nil)
    all = nil
    list = nil
    #expect(weakChore == nil)
    #expect(loose?.record?.nodes.isEmpty == true)
  }

  @Test("A model that has left is let go with the tick")
  func departed() {
    let board = Workboard(["a", "b"])
    let scope = boardScope(board)
    let live = scope.query(Chore.self).sorted(by: \.title).live(isolation: here())
    let list = board.query(\.chores).live(isolation: here())
    live.observe { _ in }
    weak var weakChore: Chore?
    do {
      let project = Project("p")
      let chore = board.chores[0]
      chore.project = project
      scope.advance()
      weakChore = chore
      board.chores.remove(chore)
    }
    #expect(weakChore != nil)
    scope.advance()
    scope.advance()
    #expect(weakChore == nil)
    #expect(live.count == 1 && list.count == 1)
  }

  @Test("A stopped query of a collection lets go of the models that come and go")
  func departedFromStopped() {
    let board = Workboard(["a", "b"])
    let scope = boardScope(board)
    let list = board.query(\.chores).live(isolation: here())
    list.stop()
    weak var weakChore: Chore?
    do {
      let chore = Chore("c")
      weakChore = chore
      board.chores.append(chore)
      scope.advance()
      board.chores.remove(chore)
    }
    scope.advance()
    scope.advance()
    #expect(weakChore == nil)
    #expect(list.rows.map(\.title) == ["a", "b"])
  }

  @Test("A query lets go of what came into its collection last when the owner is released")
  func departedWithOwner() {
    let ticker = Ticker.manual()
    weak var weakChore: Chore?
    var list: LiveQuery<Chore>?
    do {
      let board = Workboard(["a"])
      board.ensureRecord().ownTicker = ticker
      list = board.query(\.chores).live(isolation: here())
      let chore = Chore("gone unseen")
      weakChore = chore
      board.chores.append(chore)
    }
    ticker.tick()
    #expect(weakChore == nil)
    #expect(list?.rows.map(\.title) == ["a"])
  }

  @Test("A collection in no scope is followed, and goes on when it comes into one")
  func withoutScope() {
    let board = Workboard(["a"])
    let ticker = Ticker.manual()
    board.ensureRecord().ownTicker = ticker
    let live = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    board.chores.append(Chore("0"))
    ticker.tick()
    #expect(live.rows.map(\.title) == ["0", "a"])
    board.chores[0].title = "x"
    let scope = boardScope(board)
    scope.flush()
    ticker.tick()
    scope.flush()
    #expect(live.rows.map(\.title) == ["0", "x"])
    board.chores.remove(at: 0)
    scope.flush()
    #expect(live.rows.map(\.title) == ["0"])
  }

  @Test("What was written before the query was made is no update of it")
  func earlierChanges() {
    let board = Workboard(["a", "b"])
    let scope = boardScope(board)
    board.chores[0].observeChange(board, \.title, isolation: here()) { _ in }
    board.chores[0].title = "c"
    let live = board.query(\.chores).sorted(by: \.title).live(isolation: here())
    let follower = RowFollower(live)
    #expect(live.rows.map(\.title) == ["b", "c"])
    scope.flush()
    #expect(follower.updates.isEmpty)
  }

  @Test("Several followers of a scope's models hear of each, and none costs nothing")
  func membershipObservers() {
    final class Counter: MembershipObserver {
      var (came, went) = (0, 0)
      func modelEntered(_ model: ModelObject) { came += 1 }
      func modelLeft(_ model: ModelObject) { went += 1 }
    }
    let board = Workboard(["a"])
    let scope = boardScope(board)
    let one = Counter()
    scope.addMembershipObserver(one)
    do {
      let two = Counter()
      scope.addMembershipObserver(two)
      board.chores.append(Chore("b"))
      #expect(one.came == 1 && two.came == 1)
    }
    board.chores.remove(at: 0)
    scope.flush()
    #expect(one.went == 1)
    scope.removeMembershipObserver(one)
    #expect(scope.tree.observers.isEmpty)
    board.chores.remove(at: 0)
    #expect(one.went == 1)
  }
}
