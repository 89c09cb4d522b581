import Testing

@testable import Jetstream

/// Counts how often it is compared.
private struct CountedKey: Comparable {
  final class Counter { var comparisons = 0 }

  let value: Int
  let counter: Counter

  static func < (a: CountedKey, b: CountedKey) -> Bool {
    a.counter.comparisons += 1
    return a.value < b.value
  }

  static func == (a: CountedKey, b: CountedKey) -> Bool {
    a.counter.comparisons += 1
    return a.value == b.value
  }
}

@Suite(.paced) struct QueryCostTests {
  @Test("Closures run once for each row that has changed, and for no other")
  func evaluations() {
    let board = Workboard((0..<500).map { "t\($0)" })
    let project = Project("p")
    board.projects = [project]
    let scope = boardScope(board)
    let chores = Array(board.chores)
    for chore in chores.prefix(30) { chore.project = project }
    var (filters, keys, sections) = (0, 0, 0)
    let live = scope.query(Chore.self).filter {
      filters += 1
      return !$0.isDone
    }.sorted(by: { (chore: Chore) -> Int in
      keys += 1
      return chore.priority
    }).sections(by: { (chore: Chore) -> String? in
      sections += 1
      return chore.project?.name
    }).live(isolation: here())
    func counts(_ body: () -> Void) -> [Int] {
      (filters, keys, sections) = (0, 0, 0)
      body()
      scope.flush()
      return [filters, keys, sections]
    }
    #expect(counts { chores[3].priority = 8 } == [1, 1, 1])
    #expect(counts { chores[3].note = "n" } == [0, 0, 0])
    #expect(counts { chores[4].isDone = true } == [1, 0, 0])
    // It is left out by the filter, which has not read this.
    #expect(counts { chores[4].priority = 1 } == [0, 0, 0])
    #expect(counts { chores[4].isDone = false } == [1, 1, 1])
    #expect(counts { project.name = "q" } == [30, 30, 30])
    #expect(counts { project.color = 1 } == [0, 0, 0])
    #expect(counts { for chore in chores.suffix(20) { chore.priority += 1 } } == [20, 20, 20])
    #expect(counts { board.chores.append(Chore("new")) } == [1, 1, 1])
    #expect(counts { board.chores.remove(chores[9]) } == [0, 0, 0])
    #expect(counts { board.chores.move(from: 0, to: 300) } == [0, 0, 0])
    #expect(counts { chores[0].project = nil } == [1, 1, 1])
    #expect(counts { project.name = "r" } == [28, 28, 28])
    #expect(live.count == 500)
  }

  @Test(
    "A change costs O(log n) comparisons", arguments: [(1_000, 70), (100_000, 110)])
  func comparisons(size: Int, bound: Int) {
    let board = Workboard((0..<size).map { "\($0)" })
    let scope = boardScope(board)
    let chores = Array(board.chores)
    for (index, chore) in chores.enumerated() { chore.priority = index * 10 }
    let counter = CountedKey.Counter()
    let live = scope.query(Chore.self).filter { !$0.isDone }
      .sorted(by: { CountedKey(value: $0.priority, counter: counter) }).live(isolation: here())
    var updates = 0
    live.observe { _ in updates += 1 }
    var generator = SeededGenerator(seed: 5)
    var most = 0
    for _ in 0..<10 {
      let chore = chores.randomElement(using: &generator)!
      counter.comparisons = 0
      chore.priority = .random(in: 0..<(size * 10), using: &generator)
      scope.flush()
      most = max(most, counter.comparisons)
      counter.comparisons = 0
      chore.isDone.toggle()
      scope.flush()
      most = max(most, counter.comparisons)
    }
    #expect(most > 5)
    #expect(most <= bound, "\(most) comparisons in a tick with one change of \(size) rows")
    #expect(updates >= 19)

    counter.comparisons = 0
    for chore in chores.prefix(10) { chore.priority = .random(in: 0..<size, using: &generator) }
    scope.flush()
    #expect(counter.comparisons <= 10 * bound)
    let order = live.rows.map(\.priority)
    #expect(order == order.sorted())
  }

  @Test(
    "A change costs O(log n) comparisons with a limit as well",
    arguments: [(1_000, 140), (100_000, 220)])
  func limitedComparisons(size: Int, bound: Int) {
    let board = Workboard((0..<size).map { "\($0)" })
    let scope = boardScope(board)
    let chores = Array(board.chores)
    for (index, chore) in chores.enumerated() { chore.priority = index * 10 }
    let counter = CountedKey.Counter()
    let live = board.query(\.chores).filter { !$0.isDone }
      .sorted(by: { CountedKey(value: $0.priority, counter: counter) })
      .limit(20, offset: size / 2).live(isolation: here())
    var steps: [Int] = []
    live.observe { update in steps.append(update.difference.count) }
    var generator = SeededGenerator(seed: 6)
    var most = 0
    for _ in 0..<20 {
      // From one side of the window to the other, so that it moves by one.
      let chore = chores[.random(in: 0..<size / 3, using: &generator)]
      counter.comparisons = 0
      chore.priority = size * 10 + .random(in: 0..<100, using: &generator)
      scope.flush()
      most = max(most, counter.comparisons)
    }
    #expect(most > 5)
    #expect(most <= bound, "\(most) comparisons in a tick with one change of \(size) rows")
    #expect(steps.count >= 15 && steps.allSatisfy { $0 == 2 }, "\(steps)")
  }

  @Test("A row that leads elsewhere costs the others that lead there nothing")
  func sharedDependency() {
    let board = Workboard((0..<2_000).map { "\($0)" })
    let (one, two) = (Project("one"), Project("two"))
    board.projects = [one, two]
    for chore in board.chores { chore.project = one }
    let scope = boardScope(board)
    let live = scope.query(Chore.self).sorted(by: \.project?.name).live(isolation: here())
    // One registration with each model that was read, however many rows have read it.
    #expect(one.record?.nodes.count == 1)
    for chore in board.chores { chore.project = two }
    scope.flush()
    #expect(one.record?.nodes.count == 0)
    #expect(two.record?.nodes.count == 1)
    #expect(live.count == 2_000)
  }
}
