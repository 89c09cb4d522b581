import Observation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct LiveValueTests {
  let board = Workboard(["c", "a", "b"])
  let scope: Scope
  var chores: [Chore] { Array(board.chores) }

  init() { scope = boardScope(board) }

  @Test("Count, least, greatest, sum and different keys are those of the rows")
  func values() {
    for (chore, priority) in zip(chores, [3, 1, 2]) { chore.priority = priority }
    chores[0].due = 0.5
    chores[2].due = 2
    let query = board.query(\.chores).filter { $0.title != "a" }
    #expect(query.count(isolation: here()).value == 2)
    #expect(query.min(of: \.title, isolation: here()).value == "b")
    #expect(query.max(of: \.title, isolation: here()).value == "c")
    #expect(query.sum(of: \.priority, isolation: here()).value == 5)
    #expect(query.sum(of: \.due, isolation: here()).value == 2.5)
    #expect(query.distinct(\.priority, isolation: here()).value == [2, 3])
    #expect(board.query(\.chores).distinct(\.due, isolation: here()).value == [nil, 0.5, 2])
    let none = board.query(\.chores).filter { _ in false }
    #expect(none.min(of: \.title, isolation: here()).value == nil)
    #expect(none.sum(of: \.due, isolation: here()).value == 0)
    #expect(none.distinct(\.title, isolation: here()).value.isEmpty)
  }

  @Test(
    "A change comes in the tick, to observers and trackings, once and only where the value is another one"
  )
  func changes() {
    let sum = board.query(\.chores).filter { !$0.isDone }.sum(of: \.priority, isolation: here())
    var heard: [Int] = []
    sum.observe { heard.append($0) }
    let listener = Listener()
    var count = 0
    sum.observe(listener) { me, value in
      #expect(me === listener && value == heard.last)
      count += 1
    }
    let tracked = TrackingCount()
    tracked.track { sum.value }
    chores[0].priority = 5
    chores[1].priority = 2
    #expect(sum.value == 0)
    scope.flush()
    #expect(sum.value == 7 && heard == [7] && tracked.value == 1)
    // Two that outweigh each other, and one that is not read.
    chores[0].priority = 4
    chores[1].priority = 3
    chores[2].note = "n"
    scope.flush()
    #expect(heard == [7])
    board.chores.remove(at: 0)
    scope.flush()
    #expect(heard == [7, 3] && count == 2 && tracked.value == 1)
    sum.stop()
    board.chores.removeAll()
    scope.flush()
    #expect(sum.value == 3 && heard == [7, 3])
  }

  @Test("Keys that are nil or not a number are neither the least nor the greatest")
  func unordered() {
    for (chore, due) in zip(chores, [.nan, nil, 7] as [Double?]) { chore.due = due }
    let (least, greatest) = (
      board.query(\.chores).min(of: \.due, isolation: here()),
      board.query(\.chores).max(of: \.due, isolation: here())
    )
    let all = board.query(\.chores).distinct(\.due, isolation: here())
    #expect(least.value == 7 && greatest.value == 7 && all.value == [nil, 7])
    chores[2].due = .nan
    scope.flush()
    #expect(least.value == nil && greatest.value == nil && all.value == [nil])
    chores[0].due = -1
    scope.flush()
    #expect(least.value == -1 && greatest.value == -1 && all.value == [nil, -1])
  }

  @Test("A limit counts: what is outside of the window is not in the value")
  func limited() {
    for (chore, priority) in zip(chores, [1, 10, 100]) { chore.priority = priority }
    let query = board.query(\.chores).sorted(by: \.title).limit(2)
    let (sum, least) = (
      query.sum(of: \.priority, isolation: here()), query.min(of: \.priority, isolation: here())
    )
    let (count, keys) = (
      query.count(isolation: here()), query.distinct(\.priority, isolation: here())
    )
    #expect(sum.value == 110 && least.value == 10 && count.value == 2 && keys.value == [10, 100])
    chores[1].title = "z"
    scope.flush()
    #expect(sum.value == 101 && least.value == 1 && count.value == 2 && keys.value == [1, 100])
  }

  @Test("A sum of integers does not overflow, and is at the end of the range while it is out of it")
  func overflow() {
    for (chore, priority) in zip(chores, [.max, .max, 1] as [Int]) { chore.priority = priority }
    let sum = board.query(\.chores).sum(of: \.priority, isolation: here())
    let unsigned = board.query(\.chores).sum(
      of: { UInt64.max - UInt64($0.priority.magnitude) }, isolation: here())
    let wide = board.query(\.chores).sum(
      of: { $0.priority == 1 ? Int128.min : 5 }, isolation: here())
    let narrow = board.query(\.chores).sum(of: { Int8(clamping: $0.priority) }, isolation: here())
    #expect(sum.value == .max && narrow.value == 127 + 127 + 1)
    #expect(unsigned.value == .max && wide.value == .min)
    board.chores.remove(at: 0)
    chores[1].priority = -1
    scope.flush()
    #expect(sum.value == .max - 1)
    chores[0].priority = .min
    scope.flush()
    #expect(sum.value == .min && narrow.value == -129)
  }

  @Test("Nothing of a number stays behind when it goes")
  func drift() {
    let sum = board.query(\.chores).sum(of: \.due, isolation: here())
    for (chore, due) in zip(chores, [1e300, 0.1, 1]) { chore.due = due }
    scope.flush()
    #expect(sum.value == 1e300)
    chores[0].due = .infinity
    scope.flush()
    #expect(sum.value == .infinity)
    chores[1].due = -.infinity
    scope.flush()
    #expect(sum.value.isNaN)
    chores[0].due = 0.1
    chores[1].due = .leastNonzeroMagnitude
    chores[2].due = nil
    scope.flush()
    #expect(sum.value == 0.1)
    chores[0].due = nil
    scope.flush()
    #expect(sum.value == .leastNonzeroMagnitude)
  }

  @Test("A value that is released has nothing registered any more, and keeps its models until then")
  func lifetime() {
    let all = Array(board.chores)
    do {
      let values: [AnyObject] = [
        scope.query(Chore.self).count(isolation: here()),
        board.query(\.chores).min(of: \.title, isolation: here()),
        board.query(\.chores).sum(of: \.due, isolation: here()),
        board.query(\.chores).distinct(\.title, isolation: here()),
      ]
      #expect(values.count == 4)
      #expect(!scope.tree.observers.isEmpty)
      #expect(all.allSatisfy { $0.record?.nodes.isEmpty == false })
    }
    #expect(scope.tree.observers.isEmpty)
    #expect(all.allSatisfy { $0.record?.nodes.isEmpty == true })
  }

  /// One value with what it has to be.
  private struct Check {
    let name: String
    let verify: () -> Bool
    let calls: () -> Int
    let changes: () -> Int
  }

  private func check<Value>(
    _ name: String, _ live: LiveValue<Value>, isSame: @escaping (Value, Value) -> Bool,
    _ fresh: @escaping () -> Value
  ) -> Check {
    var heard: [Value] = []
    live.observe { heard.append($0) }
    var (last, changes) = (live.value, 0)
    return Check(
      name: name,
      verify: {
        let now = fresh()
        if !isSame(now, last) { changes += 1 }
        last = now
        return isSame(live.value, now) && (heard.last.map { isSame($0, now) } ?? true)
      },
      calls: { heard.count }, changes: { changes })
  }

  @Test(
    "After each tick the values are those of a fresh look, and observers are called for changes alone",
    arguments: seeds(40...43))
  func random(seed: UInt64) {
    let world = QueryWorld(seed: seed)
    let (board, scope) = (world.board, world.scope)
    func sorted() -> [Chore] {
      board.chores.enumerated().sorted {
        ($0.element.title, $0.offset) < ($1.element.title, $1.offset)
      }.map(\.element)
    }
    func spread(_ chore: Chore) -> Double {
      [1e17, 0.1, -3.3, 1e-9][chore.priority] * (chore.isDone ? -1 : 1) + Double(chore.title.count)
    }
    func big(_ chore: Chore) -> Int? {
      [Int.max, nil, -7, .min][chore.priority].map { chore.isDone ? $0 / 2 : $0 }
    }
    let open = board.query(\.chores).filter { !$0.isDone }
    let all = scope.query(Chore.self)
    let page = board.query(\.chores).sorted(by: \.title).limit(6, offset: 2)
    let kinds: [(String, Query<Chore>, () -> [Chore])] = [
      ("open", open, { board.chores.filter { !$0.isDone } }),
      ("all", all, { scope.models.compactMap { $0 as? Chore } }),
      ("page", page, { Array(sorted().dropFirst(2).prefix(6)) }),
    ]
    let checks = kinds.flatMap { name, query, fresh in
      [
        check("\(name) count", query.count(isolation: here()), isSame: ==) { fresh().count },
        check("\(name) min", query.min(of: \.due, isolation: here()), isSame: ==) {
          fresh().compactMap(\.due).filter { !$0.isNaN }.min()
        },
        check("\(name) max", query.max(of: \.title, isolation: here()), isSame: ==) {
          fresh().map(\.title).max()
        },
        check("\(name) integers", query.sum(of: big, isolation: here()), isSame: ==) {
          Int(clamping: fresh().compactMap(big).reduce(Int128(0)) { $0 + Int128($1) })
        },
        check("\(name) numbers", query.sum(of: spread, isolation: here()), isSame: ==) {
          exactSum(fresh().map(spread))
        },
        check(
          "\(name) due", query.sum(of: \.due, isolation: here()),
          isSame: { $0 == $1 || $0.isNaN && $1.isNaN }
        ) {
          fresh().compactMap(\.due).reduce(0, +)
        },
        check("\(name) projects", query.distinct(\.project?.name, isolation: here()), isSame: ==) {
          Set(fresh().map { $0.project?.name })
        },
      ]
    }
    for step in 0..<150 {
      world.place = "seed \(seed), step \(step)"
      for _ in 0..<Int.random(in: 1...6, using: &world.generator) { world.change() }
      scope.flush()
      for check in checks {
        #expect(check.verify(), "\(check.name), \(world.place)")
        #expect(check.calls() == check.changes(), "\(check.name), \(world.place)")
      }
    }
    #expect(checks.map { $0.changes() }.reduce(0, +) > 200, "seed \(seed)")
  }
}
