import Testing

@testable import Jetstream

/// Sizes at which a quadratic cost would take minutes.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct StructureTests {
  let root = Node("root")
  let scope: Scope

  init() { scope = manualScope(root) }

  @Test("A large tree attaches and detaches in one piece")
  func bigTree() {
    let top = Node("top")
    for group in 0..<200 {
      let parent = Node("\(group)")
      parent.items = ModelArray((0..<(manyModels / 200)).map { _ in Node() })
      top.items.append(parent)
    }
    root.left = top
    #expect(scope.count == manyModels + 202)
    root.left = nil
    #expect(scope.count == 1)
    root.left = top
    #expect(scope.count == manyModels + 202)
    for _ in 0..<200 { top.items.remove(at: 0) }
    #expect(scope.count == 2)
  }

  @Test("A long chain attaches, detaches and is released without recursion")
  func deepChain() {
    weak var weakEnd: Node?
    do {
      let end = Node("end")
      weakEnd = end
      var top = end
      for _ in 0..<manyModels {
        let next = Node()
        next.left = top
        top = next
      }
      root.left = top
      #expect(scope.count == manyModels + 2)
      root.left = nil
      #expect(scope.count == 1)
      scope.flush()
    }
    #expect(weakEnd == nil)
  }

  @Test("A doubly linked list detaches as a whole, climbed over once")
  func doublyLinked() {
    let nodes = (0..<20_000).map { _ in Node() }
    for (node, next) in zip(nodes, nodes.dropFirst()) {
      node.right = next
      next.left = node
    }
    root.left = nodes[0]
    #expect(scope.count == 20_001)
    root.left = nil
    #expect(scope.count == 1)
    root.right = nodes[10_000]
    #expect(scope.count == 20_001)
    root.right = nil
    #expect(scope.count == 1)
    for node in nodes { node.left = nil }
  }

  @Test("A model that 20,000 others hold is found by each of them at once")
  func sharedModel() {
    let shared = Node("shared")
    let nodes = (0..<20_000).map { _ in Node() }
    for node in nodes { node.left = shared }
    root.items = ModelArray(nodes)
    #expect(shared.parents.count == 20_000)
    while root.items.count > 10_000 { root.items.remove(at: root.items.count - 1) }
    #expect(shared.scope === scope)
    root.items.removeAll()
    #expect(shared.scope == nil)
    for node in nodes { node.left = nil }
    #expect(shared.parents.isEmpty)
  }

  @Test("No model is climbed over twice, however many have lost a parent")
  func visits() {
    // A ladder: each rung is held by both rungs above it, so there are 2^n ways up.
    var rungs = [[root]]
    for _ in 0..<200 {
      let next = [Node(), Node()]
      for parent in rungs.last! { parent.items = ModelArray(next) }
      rungs.append(next)
    }
    var reachability = Reachability(scope.tree)
    for rung in rungs.reversed() {
      for node in rung { #expect(reachability.unreached(from: node.record!).isEmpty) }
    }
    #expect(reachability.visits <= 401)
  }

  @Test("The difference of two large arrays is not quadratic")
  func largeDifference() {
    let nodes = (0..<20_000).map { _ in Node() }
    root.items = ModelArray(nodes)
    var steps = 0
    root.signals.onCollectionChange.listen { _ in steps += 1 }
    root.items = ModelArray(nodes[10_000...] + nodes[..<10_000])
    #expect(steps == 10_000)
    root.items = ModelArray(nodes[..<5_000])
    #expect(steps == 25_000)
    #expect(scope.count == 5_001)
  }

  @Test("Detaching each of many models from a large array is not quadratic")
  func detachEach() {
    let nodes = (0..<10_000).map { _ in Node() }
    root.items = ModelArray(nodes)
    for node in nodes { node.detach() }
    #expect(root.items.isEmpty)
    #expect(scope.count == 1)
  }

  @Test("climbing out of a cycle of single parents comes to an end")
  func ancestorsOfCycle() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    a.left = b
    b.left = a
    a.right = c
    root.observeTreeChange(self.listener, isolation: here()) { $0.called() }
    c.number = 1
    #expect(c.record?.ticker == nil)
    a.left = nil
  }

  let listener = Listener()

  @Test("A model of another scope is refused; everything is as it was")
  func twoScopes() {
    let other = Node("other")
    let foreign = Node("foreign")
    other.left = foreign
    let otherScope = manualScope(other)
    var errors: [ScopeError] = []
    scope.onError.listen { errors.append($0) }
    root.signals.onPropertyChange.listen(listener) { me, _ in me.called() }

    root.left = foreign
    #expect(root.left == nil)
    root.items.append(foreign)
    #expect(root.items.isEmpty)
    #expect(errors.count == 2)
    #expect(
      errors[0]
        == .modelInTwoScopes(className: "Node", model: foreign.uuid, scope: "Test", other: "Test"))

    // Deep below, in the middle of siblings that would come along.
    let top = Node("top")
    top.items = ModelArray((0..<5).map { _ in Node() })
    top.items[2].items = [Node(), foreign, Node()]
    top.items[2].left = top
    root.left = top
    #expect(root.left == nil)
    #expect(errors.count == 3)
    #expect(listener.count == 0)
    #expect(scope.count == 1)
    #expect(foreign.parents.count == 2)
    for model in [top] + Array(top.items) + Array(top.items[2].items) where model !== foreign {
      #expect(model.scope == nil)
      #expect(model.record?.scopedParents == 0)
      #expect(scope.model(model.uuid) == nil)
    }
    #expect(scope.changeSets {}.isEmpty)

    // The rest of one change is done.
    let fine = Node("fine")
    root.items = [fine, foreign]
    #expect(Array(root.items) == [fine])
    #expect(listener.count == 1)
    #expect(foreign.scope === otherScope)
    top.items[2].left = nil
  }

  @Test("A refused model replaces nothing")
  func refusedReplacement() {
    let other = manualScope(Node())
    let mine = Node("mine")
    root.left = mine
    scope.onError.listen { [root] _ in root.number += 1 }
    root.left = other.root as? Node
    #expect(root.left === mine)
    #expect(mine.parents.count == 1)
    #expect(mine.scope === scope)
    #expect(root.number == 1)
  }

  @Test("two models with one UUID are refused, also below one that is new")
  func duplicateUUID() {
    let child = Node("child")
    root.left = child
    var errors: [ScopeError] = []
    scope.onError.listen { errors.append($0) }
    let top = Node("top")
    top.items = [Node(), Node(uuid: child.uuid)]
    root.right = top
    #expect(root.right == nil)
    let twins = Node("twins")
    twins.items = [Node(uuid: twins.uuid)]
    root.items.append(twins)
    #expect(root.items.isEmpty)
    #expect(
      errors == [
        .duplicateUUID(className: "Node", model: child.uuid),
        .duplicateUUID(className: "Node", model: twins.uuid),
      ])
    #expect(scope.count == 2)
    #expect(scope.model(child.uuid) === child)
  }
}
