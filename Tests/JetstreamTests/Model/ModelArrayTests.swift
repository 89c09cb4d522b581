import Testing

@testable import Jetstream

/// Applies the events of a collection to a copy of what it was.
private final class Shadow {
  private(set) var content: [Node]

  init(_ node: Node) {
    content = Array(node.items)
    node.signals.onCollectionChange.listen(self, filter: { $0.key == "items" }) { me, change in
      let model = change.model as! Node
      switch change.kind {
      case .insert(let position): me.content.insert(model, at: position)
      case .remove(let position): #expect(me.content.remove(at: position) === model)
      case .move(let from, let to):
        #expect(me.content[from] === model)
        me.content.insert(me.content.remove(at: from), at: to)
      }
    }
  }
}

extension ModelArray {
  fileprivate func check() { list.storage?.checkInvariants() }
}

@Suite(.paced) struct ModelArrayTests {
  @Test("Steps of one access that lead back to where it began are no change of the value")
  func backToTheBeginning() {
    let node = Node("root")
    node.items = [Node("first"), Node("second")]
    let scope = manualScope(node)
    scope.flush()
    var told: [String] = []
    node.observeChange(node, \.items, isolation: here()) { _ in told.append("in the tick") }
    node.observeChangeImmediately(node, \.items) { _, _, _ in told.append("at once") }
    func goRound(_ items: inout ModelArray<Node>) {
      items.move(from: 0, to: 1)
      items.move(from: 1, to: 0)
    }
    goRound(&node.items)
    scope.ticker.tick()
    #expect(told == [] && !scope.hasCollectedChanges)
    node.items.move(from: 0, to: 1)
    scope.ticker.tick()
    #expect(told.sorted() == ["at once", "in the tick"])
  }

  @Test("A list with a model of another class does not become the content of a property")
  func otherClass() {
    let node = Node("root")
    node.items = [Node("first")]
    let property = node.schema.properties.first { $0.name == "items" }!
    func assign(_ models: [ModelObject]) -> Bool {
      property.access.assign(ModelList(models), to: node, at: property.offset)
    }
    #expect(!assign([Node("second"), Shape()]))
    #expect(node.items.map(\.label) == ["first"])
    #expect(assign([Node("second"), Node("third")]))
    #expect(node.items.map(\.label) == ["second", "third"])
  }

  @Test("An immediate observer of a collection gets what it was and what it is, step by step")
  func valuesOfSteps() {
    let node = Node("root")
    var told: [String] = []
    node.observeChangeImmediately(node, \.items) { _, old, new in
      told.append("\(old.map(\.label))>\(new.map(\.label))")
    }
    node.items.append(Node("a"))
    node.items.insert(Node("b"), at: 0)
    node.items.move(from: 0, to: 1)
    node.items.remove(at: 0)
    #expect(
      told == [
        #"[]>["a"]"#, #"["a"]>["b", "a"]"#, #"["b", "a"]>["a", "b"]"#, #"["a", "b"]>["b"]"#,
      ])
  }

  @Test(
    "Random edits behave as those of an array, and the events lead to the new content",
    arguments: [UInt64](1...12))
  func fuzz(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let node = Node("root")
    let scope = manualScope(node)
    let pool = (0..<(seed.isMultiple(of: 3) ? 1_500 : 60)).map { Node("\($0)") }
    var plain: [Node] = []
    node.items = []
    let shadow = Shadow(node)
    var copies: [(ModelArray<Node>, [Node])] = []
    func mutate(_ items: inout ModelArray<Node>) {
      let random = pool.randomElement(using: &generator)!
      switch Int.random(in: 0..<12, using: &generator) {
      case 0...4:
        let at = Int.random(in: 0...plain.count, using: &generator)
        let isNew = !plain.contains(random)
        if isNew { plain.insert(random, at: at) }
        #expect(items.insert(random, at: at) == isNew, "seed \(seed)")
      case 5:
        let more = pool.shuffled(using: &generator).prefix(200)
        for one in more where !plain.contains(one) { plain.append(one) }
        items.append(contentsOf: more)
      case 6 where !plain.isEmpty:
        let at = Int.random(in: 0..<plain.count, using: &generator)
        #expect(items.remove(at: at) === plain.remove(at: at), "seed \(seed)")
      case 7:
        #expect(items.remove(random) == plain.contains(random), "seed \(seed)")
        plain.removeAll { $0 === random }
      case 8 where !plain.isEmpty:
        let from = Int.random(in: 0..<plain.count, using: &generator)
        let to = Int.random(in: 0..<plain.count, using: &generator)
        items.move(from: from, to: to)
        plain.insert(plain.remove(at: from), at: to)
      case 9:
        let low = Int.random(in: 0...plain.count, using: &generator)
        let high = Int.random(in: low...plain.count, using: &generator)
        let rest = Set(plain[..<low] + plain[high...])
        let new = pool.shuffled(using: &generator).prefix(8).filter { !rest.contains($0) }
        items.replaceSubrange(low..<high, with: new)
        plain.replaceSubrange(low..<high, with: new)
      case 10:
        let odd = Int.random(in: 2...9, using: &generator)
        items.removeAll { Int($0.label)! % odd == 0 }
        plain.removeAll { Int($0.label)! % odd == 0 }
      case 11:
        items.sort { $0.label < $1.label }
        plain.sort { $0.label < $1.label }
      default: break
      }
      items.check()
    }
    for step in 0..<150 {
      if step % 4 == 0 {
        func several(_ items: inout ModelArray<Node>) { for _ in 0..<3 { mutate(&items) } }
        several(&node.items)
      } else if step % 7 == 0 {
        var copy = node.items
        mutate(&copy)
        node.items = copy
      } else {
        mutate(&node.items)
      }
      if step % 10 == 0 { copies.append((node.items, plain)) }
      #expect(Array(node.items) == plain, "seed \(seed), step \(step)")
      #expect(shadow.content == plain, "seed \(seed), step \(step)")
      if let some = plain.randomElement(using: &generator) {
        #expect(node.items.firstIndex(of: some) == plain.firstIndex(of: some), "seed \(seed)")
        #expect(some.scope === scope, "seed \(seed)")
      }
    }
    for (copy, then) in copies { #expect(Array(copy) == then, "seed \(seed)") }
    #expect(scope.count == plain.count + 1, "seed \(seed)")
  }

  @Test("a change in place stays in its storage, so that its steps are written down, not computed")
  func inPlace() {
    let node = Node("root")
    node.items = ModelArray((0..<100).map { Node("\($0)") })
    let scope = manualScope(node)
    let storage = node.items.list.storage.map(ObjectIdentifier.init)
    node.items.move(from: 0, to: 50)
    node.items[3].detach()
    node.items.remove(at: 7)
    node.items.append(Node())
    #expect(storage != nil && scope.count == 100)
    // The first change leaves the old storage to the base of the change set; no other does.
    let second = node.items.list.storage.map(ObjectIdentifier.init)
    for _ in 0..<10 { node.items.append(Node()) }
    node.items[5].detach()
    #expect(node.items.list.storage.map(ObjectIdentifier.init) == second)
  }

  @Test("chunks split and merge at thousands of elements")
  func chunks() {
    let nodes = (0..<5_000).map { Node("\($0)") }
    var items = ModelArray(nodes)
    items.check()
    var middle = ModelArray<Node>()
    for (position, node) in nodes.enumerated() {
      middle.insert(node, at: position / 2)
      if position % 100 == 0 { middle.check() }
    }
    middle.check()
    #expect(Set(middle).count == 5_000)
    let copy = items
    while items.count > 0 {
      items.remove(at: items.count / 3)
      if items.count % 100 == 0 { items.check() }
    }
    items.append(nodes[3])
    items.check()
    #expect(items.firstIndex(of: nodes[3]) == 0)
    #expect(Array(copy) == nodes)
    copy.check()
  }

  @Test("reading is that of a random-access collection")
  func collection() {
    let nodes = (0..<3).map { Node("\($0)") }
    let items: ModelArray = [nodes[0], nodes[1], nodes[2], nodes[0]]
    #expect(items.count == 3 && items.first === nodes[0] && items.last === nodes[2])
    #expect(items.contains(nodes[1]) && !items.contains(Node()))
    #expect(Array(items.reversed()) == nodes.reversed())
    #expect(items[1...].map(\.label) == ["1", "2"])
    #expect(items == ModelArray(nodes))
    #expect(items != ModelArray(nodes.reversed()))
    #expect(ModelArray<Node>().isEmpty)
  }

  @Test("iterating goes on over what was there, whatever happens meanwhile")
  func iterateWhileChanging() {
    let node = Node("root")
    node.items = ModelArray((0..<40).map { Node("\($0)") })
    var seen = 0
    for child in node.items {
      node.items.remove(child)
      seen += 1
    }
    #expect(seen == 40)
    #expect(node.items.isEmpty)
  }
}

@Suite(.paced) struct ListDifferenceTests {
  @Test(
    "The steps lead from one list to the other, moving as few as can be",
    arguments: [UInt64](20...25))
  func fuzz(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pool = (0..<60).map { Node("\($0)") }
    for _ in 0..<100 {
      let count = Int.random(in: 0...60, using: &generator)
      let old = Array(pool.shuffled(using: &generator).prefix(count))
      let new = Array(pool.shuffled(using: &generator).prefix(60 - count / 2))
      let steps = ListDifference.operations(from: ModelList(old), to: ModelList(new))
      var current: [ModelObject] = old
      var moves = 0
      for step in steps {
        switch step {
        case .insert(let model, let position): current.insert(model, at: position)
        case .remove(let model, let position):
          #expect(current.remove(at: position) === model, "seed \(seed)")
        case .move(let model, let from, let to):
          moves += 1
          #expect(current[from] === model, "seed \(seed)")
          current.insert(current.remove(at: from), at: to)
        }
      }
      #expect(current == new, "seed \(seed)")
      #expect(steps.undone(on: ModelList(new)).isSame(as: ModelList(old)), "seed \(seed)")
      let kept = old.filter(new.contains).map { new.firstIndex(of: $0)! }
      let inOrder = LongestIncreasing.indices(of: kept).count
      #expect(moves <= kept.count - inOrder, "seed \(seed)")
    }
  }

  @Test("the longest increasing subsequence of every permutation of six, against brute force")
  func longestIncreasing() {
    func permutations(_ rest: [Int]) -> [[Int]] {
      rest.isEmpty
        ? [[]]
        : rest.flatMap { first in
          permutations(rest.filter { $0 != first }).map { [first] + $0 }
        }
    }
    for values in permutations(Array(0..<6)) {
      let indices = LongestIncreasing.indices(of: values)
      #expect(zip(indices, indices.dropFirst()).allSatisfy { $0 < $1 && values[$0] < values[$1] })
      let longest = (0..<64).filter { bits in
        let chosen = (0..<6).filter { bits & (1 << $0) != 0 }.map { values[$0] }
        return chosen == chosen.sorted()
      }.map(\.nonzeroBitCount).max()
      #expect(indices.count == longest)
    }
  }
}
