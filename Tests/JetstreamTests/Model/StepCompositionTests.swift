import Testing

@testable import Jetstream

/// A list that writes down what is done to it.
private struct Recorder {
  var list: ModelList
  var steps: [ListOperation] = []

  init(_ models: [Node]) { list = ModelList(models) }

  mutating func insert(_ model: Node, at position: Int) {
    if list.insert(model, at: position) { steps.append(.insert(model, at: position)) }
  }

  mutating func remove(at position: Int) -> Node {
    let model = list.remove(at: position) as! Node
    steps.append(.remove(model, at: position))
    return model
  }

  mutating func move(from: Int, to: Int) {
    if from == to { return }
    steps.append(.move(list[from], from: from, to: to))
    list.move(from: from, to: to)
  }

  mutating func replace(by models: [Node]) {
    let new = ModelList(models)
    steps += ListDifference.operations(from: list, to: new)
    list = new
  }

  var difference: CollectionDifference<Node> {
    StepComposition(steps, newCount: list.count).difference { list[$0] }
  }
}

/// The difference as text: "-a0>2" was removed from 0 and is at 2 now.
private func text(_ difference: CollectionDifference<Node>) -> [String] {
  difference.map { change in
    switch change {
    case .remove(let offset, let node, let other):
      "-\(node.label)\(offset)" + (other.map { ">\($0)" } ?? "")
    case .insert(let offset, let node, let other):
      "+\(node.label)\(offset)" + (other.map { "<\($0)" } ?? "")
    }
  }
}

@Suite(.paced) struct StepCompositionTests {
  let nodes = "abcdefgh".map { Node(String($0)) }

  @Test("What is added and removed again leaves nothing")
  func addThenRemove() {
    var recorder = Recorder(Array(nodes[..<3]))
    recorder.insert(nodes[3], at: 1)
    recorder.insert(nodes[4], at: 4)
    recorder.move(from: 4, to: 0)
    _ = recorder.remove(at: 0)
    _ = recorder.remove(at: 1)
    #expect(recorder.difference.isEmpty)
    #expect(recorder.list.count == 3)
  }

  @Test("A move is a removal and an insertion that point at each other")
  func move() {
    var recorder = Recorder(Array(nodes[..<4]))
    recorder.move(from: 0, to: 3)
    #expect(text(recorder.difference) == ["-a0>3", "+a3<0"])
    recorder.move(from: 3, to: 0)
    #expect(recorder.difference.isEmpty)
  }

  @Test("Removed and inserted again, a model was moved; in its place, nothing has happened")
  func removeThenInsert() {
    var recorder = Recorder(Array(nodes[..<4]))
    let a = recorder.remove(at: 0)
    recorder.insert(a, at: 2)
    #expect(text(recorder.difference) == ["-a0>2", "+a2<0"])
    let b = recorder.remove(at: 0)
    _ = recorder.remove(at: 1)
    recorder.insert(a, at: 0)
    recorder.insert(b, at: 1)
    #expect(recorder.list.models.map { ($0 as! Node).label } == ["a", "b", "c", "d"])
    #expect(recorder.difference.isEmpty)
  }

  @Test("A new model that was moved is inserted where it ended")
  func moveOfNew() {
    var recorder = Recorder(Array(nodes[..<2]))
    recorder.insert(nodes[2], at: 0)
    recorder.move(from: 0, to: 2)
    #expect(text(recorder.difference) == ["+c2"])
  }

  @Test("Of two models that have changed places one is mentioned; the untouched one stays")
  func fewest() {
    var recorder = Recorder(Array(nodes[..<2]))
    recorder.move(from: 1, to: 0)
    #expect(text(recorder.difference) == ["-b1>0", "+b0<1"])
    recorder = Recorder(nodes)
    for _ in 0..<7 { recorder.move(from: 0, to: 7) }
    // Seven were moved past one: that is one moved past seven.
    #expect(text(recorder.difference) == ["-h7>0", "+h0<7"])
  }

  @Test("Whole arrays swapped, emptied and filled")
  func wholeArrays() {
    var recorder = Recorder(Array(nodes[..<4]))
    recorder.replace(by: Array(nodes[4...]))
    #expect(recorder.difference.removals.count == 4)
    #expect(recorder.difference.insertions.count == 4)
    recorder.replace(by: nodes[..<4].reversed())
    #expect(recorder.difference.removals.count == 3)
    recorder.replace(by: Array(nodes[..<4]))
    #expect(recorder.difference.isEmpty)
    recorder.replace(by: [])
    #expect(text(recorder.difference) == ["-d3", "-c2", "-b1", "-a0"])
  }

  @Test(
    "Any steps give a difference that leads from the old content to the new one",
    arguments: [UInt64](1...40))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pool = (0..<24).map { Node("\($0)") }
    let old = Array(
      pool.shuffled(using: &generator).prefix(Int.random(in: 0...16, using: &generator)))
    var recorder = Recorder(old)
    for step in 0..<60 {
      change(&recorder, pool, &generator)
      let difference = recorder.difference
      let new = recorder.list.models.map { $0 as! Node }
      let note: Comment = "seed \(seed), step \(step)"
      #expect(old.applying(difference) == new, note)
      #expect(new.applying(difference.inverse()) == old, note)
      // The naive way: what only one of the two has is added or removed, the rest is moved.
      let naive = new.difference(from: old).inferringMoves()
      #expect(difference.insertions.count == naive.insertions.count, note)
      #expect(difference.removals.count == naive.removals.count, note)
      let moves = { (difference: CollectionDifference<Node>) in
        difference.insertions.count { change in
          if case .insert(_, _, let other) = change { other != nil } else { false }
        }
      }
      #expect(moves(difference) == moves(naive), note)
    }
  }

  private func change(
    _ recorder: inout Recorder, _ pool: [Node], _ generator: inout SeededGenerator
  ) {
    let count = recorder.list.count
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<7:
      let model = pool.randomElement(using: &generator)!
      recorder.insert(model, at: Int.random(in: 0...count, using: &generator))
    case 7..<12:
      if count > 0 { _ = recorder.remove(at: Int.random(in: 0..<count, using: &generator)) }
    case 12..<19:
      guard count > 0 else { return }
      recorder.move(
        from: Int.random(in: 0..<count, using: &generator),
        to: Int.random(in: 0..<count, using: &generator))
    default:
      recorder.replace(by: Array(pool.shuffled(using: &generator).prefix(12)))
    }
  }

  @Test("A few steps in a large collection touch a few runs, many steps are not quadratic")
  func large() {
    let nodes = (0..<20_000).map { _ in Node() }
    var composition = StepComposition(oldCount: nodes.count)
    composition.apply(.move(nodes[5], from: 5, to: 19_000))
    composition.apply(.remove(nodes[0], at: 0))
    var asked: [Int] = []
    let few: CollectionDifference<Node> = composition.difference {
      asked.append($0)
      return nodes[5]
    }
    #expect(few.insertions.count == 1 && few.removals.count == 2)
    #expect(asked == [18_999])

    var recorder = Recorder(nodes)
    for position in 0..<10_000 { recorder.move(from: position, to: 19_999 - position) }
    for _ in 0..<5_000 { _ = recorder.remove(at: 7_000) }
    let new = recorder.list.models.map { $0 as! Node }
    #expect(nodes.applying(recorder.difference) == new)
  }
}
