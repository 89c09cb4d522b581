import Testing

@testable import Jetstream

/// Counts its living objects.
private final class Tree: ModelObject {
  final class Census { var alive = 0 }

  @Property var number = 0
  @Property var left: Tree?
  @Property var right: Tree?
  @Property var items: ModelArray<Tree> = []
  @Property var others: ModelArray<Tree> = []
  var census: Census?

  convenience init(_ census: Census) {
    self.init()
    self.census = census
    census.alive += 1
  }

  deinit { census?.alive -= 1 }

  var children: [(child: Tree, key: String)] {
    (left.map { [($0, "left")] } ?? []) + (right.map { [($0, "right")] } ?? [])
      + items.map { ($0, "items") } + others.map { ($0, "others") }
  }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ForestTests {
  @Test(
    "Random changes of a forest keep links, membership and look-up right",
    arguments: [UInt64](1...8))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let census = Tree.Census()
    do {
      let root = Tree(census)
      let scope = manualScope(root)
      scope.onError.listen { _ in Issue.record("refused, seed \(seed)") }
      let all = [root] + (0..<24).map { _ in Tree(census) }
      var attached: Set<ObjectIdentifier> = [ObjectIdentifier(root)]
      for tree in all {
        tree.signals.onAttach.listen { [unowned tree] _ in
          #expect(attached.insert(ObjectIdentifier(tree)).inserted, "attached twice, seed \(seed)")
        }
        tree.signals.onDetach.listen { [unowned tree] _ in
          #expect(attached.remove(ObjectIdentifier(tree)) != nil, "detached twice, seed \(seed)")
        }
      }
      for step in 0..<400 {
        change(all.randomElement(using: &generator)!, all, &generator)
        check(all, root, scope, "seed \(seed), step \(step)")
        #expect(
          attached == Set(all.filter { $0.scope != nil }.map(ObjectIdentifier.init)),
          "seed \(seed), step \(step)")
        if step.isMultiple(of: 17) { scope.flush() }
      }
      for tree in all { tree.detach() }
      scope.flush()
      check(all, root, scope, "seed \(seed), end")
      #expect(scope.count == 1, "seed \(seed)")
    }
    #expect(census.alive == 0, "seed \(seed)")
  }

  private func change(_ tree: Tree, _ all: [Tree], _ generator: inout SeededGenerator) {
    let other = all.randomElement(using: &generator)!
    switch Int.random(in: 0..<12, using: &generator) {
    case 0, 1: tree.left = other
    case 2: tree.right = Bool.random(using: &generator) ? other : nil
    case 3, 4: tree.items.append(other)
    case 5: tree.others.insert(other, at: 0)
    case 6: tree.items.remove(other)
    case 7:
      if tree.items.count > 1 { tree.items.move(from: 0, to: tree.items.count - 1) }
    case 8: tree.items = ModelArray(all.shuffled(using: &generator).prefix(3))
    case 9: swap(&tree.items, &tree.others)
    case 10: other.detach()
    default:
      tree.left = nil
      tree.items = []
    }
  }

  private func check(_ all: [Tree], _ root: Tree, _ scope: Scope, _ where: String) {
    var held: [Tree: [String]] = [:]
    for parent in all {
      for (child, key) in parent.children {
        held[child, default: []].append("\(ObjectIdentifier(parent)) \(key)")
      }
    }
    var reached: Set<Tree> = [root]
    var open = [root]
    while let next = open.popLast() {
      for (child, _) in next.children where reached.insert(child).inserted { open.append(child) }
    }
    for tree in all {
      let links = tree.parents.map { "\(ObjectIdentifier($0.parent)) \($0.key)" }
      #expect(links.sorted() == (held[tree] ?? []).sorted(), "parents, \(`where`)")
      #expect((tree.scope === scope) == reached.contains(tree), "membership, \(`where`)")
      #expect((scope.model(tree.uuid) === tree) == reached.contains(tree), "look-up, \(`where`)")
      let scoped = tree.scope == nil ? 0 : tree.parents.filter { $0.parent.scope != nil }.count
      #expect(Int(tree.record?.scopedParents ?? 0) == scoped, "scopedParents, \(`where`)")
    }
    #expect(scope.count == reached.count, "count, \(`where`)")
    #expect(Set(scope.models) == reached, "models, \(`where`)")
  }

  @Test("A replica that applies every change set stays equal", arguments: [UInt64](30...36))
  func replica(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let census = Tree.Census()
    let root = Tree(census)
    let scope = manualScope(root)
    let copy = Scope(name: "Copy", root: Tree(uuid: root.uuid), ticker: testTicker())
    scope.onChanges.listen { set in
      let report = copy.apply(set.fragments)
      #expect(report.isComplete, "\(report.errors), seed \(seed)")
    }
    let all = [root] + (0..<16).map { _ in Tree(census) }
    for step in 0..<300 {
      let tree = all.randomElement(using: &generator)!
      change(tree, all, &generator)
      tree.number += 1
      if Int.random(in: 0..<4, using: &generator) == 0 {
        scope.flush()
        #expect(scope.canonicalJSON == copy.canonicalJSON, "seed \(seed), step \(step)")
      }
    }
    #expect(!copy.hasCollectedChanges, "seed \(seed)")
    for tree in all { tree.detach() }
    for model in copy.models { model.detach() }
  }
}
