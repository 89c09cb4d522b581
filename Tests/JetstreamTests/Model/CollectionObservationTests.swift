import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct CollectionObservationTests {
  let node = Node("root")
  let scope: Scope
  let listener = Listener()

  init() { scope = manualScope(node) }

  @Test("Additions come typed, at once, and only from the observed collection")
  func add() {
    node.observeCollectionAdd(listener, \.items) { me, child, _ in me.log.append(child.label) }
    node.items.append(Node("a"))
    #expect(listener.log == ["a"])
    node.others.append(Node("b"))
    #expect(listener.log == ["a"])
  }

  @Test("Removals come typed")
  func remove() {
    let child = Node("a")
    node.items = [child]
    node.observeCollectionRemove(listener, \.items) { me, child, _ in me.log.append(child.label) }
    node.others.append(child)
    node.others.remove(child)
    #expect(listener.log.isEmpty)
    node.items.remove(child)
    #expect(listener.log == ["a"])
  }

  @Test("Events carry the index")
  func indices() {
    node.items = [Node("a"), Node("b"), Node("c")]
    node.observeCollectionAdd(listener, \.items) { me, child, at in
      me.log.append("+\(child.label)\(at)")
    }
    node.observeCollectionRemove(listener, \.items) { me, child, at in
      me.log.append("-\(child.label)\(at)")
    }
    node.observeCollectionMove(listener, \.items) { me, child, from, to in
      me.log.append("\(child.label)\(from)>\(to)")
    }
    node.items.insert(Node("d"), at: 0)
    node.items.remove(at: 2)
    node.items.move(from: 0, to: 2)
    #expect(listener.log == ["+d0", "-b2", "d0>2"])
  }

  @Test("The untyped signal reports any element")
  func untyped() {
    node.signals.onCollectionChange.listen(listener) { me, change in
      me.log.append("\(change.key) \(change.kind) \(change.model === self.node)")
    }
    node.items.append(Node())
    node.others.append(node)
    #expect(listener.log == ["items insert(at: 0) false", "others insert(at: 0) true"])
  }

  @Test("Inserting a model again does nothing and says so")
  func insertTwice() {
    let child = Node("a")
    node.signals.onCollectionChange.listen(listener) { me, _ in me.called() }
    let results = [
      node.items.append(child), node.items.append(child), node.items.insert(child, at: 0),
    ]
    #expect(results == [true, false, false])
    #expect(listener.count == 1)
    #expect(child.parents.count == 1)
    node.items = [child, child]
    #expect(node.items.count == 1)
    #expect(listener.count == 1)
  }

  @Test("A reorder gives moves alone, one for each model out of order")
  func reorder() {
    let nodes = (0..<5).map { Node("\($0)") }
    node.items = ModelArray(nodes)
    node.signals.onCollectionChange.listen(listener) { me, change in
      guard case .move = change.kind else { return me.log.append("not a move") }
      me.called()
    }
    node.items = ModelArray([1, 2, 3, 4, 0].map { nodes[$0] })
    #expect(listener.count == 1)
    node.items = ModelArray(nodes)
    #expect(listener.count == 2)
    node.items.sort { $0.label > $1.label }
    #expect(listener.count == 6)
    #expect(listener.log.isEmpty)
  }

  @Test("a change of several steps reports them in order once it has ended")
  func severalSteps() {
    let nodes = (0..<3).map { Node("\($0)") }
    node.observeCollectionAdd(listener, \.items) { me, child, at in
      me.log.append("\(child.label)@\(at) of \(self.node.items.count)")
    }
    node.items.append(contentsOf: nodes)
    #expect(listener.log == ["0@0 of 3", "1@1 of 3", "2@2 of 3"])
  }

  @Test("a model taken out and put back in one change is only moved")
  func outAndIn() {
    let nodes = (0..<3).map { Node("\($0)") }
    node.items = ModelArray(nodes)
    scope.flush()
    nodes[0].observeDetach(listener) { me, _ in me.log.append("detach") }
    nodes[0].observeAddedToParent(listener) { me, _, _ in me.log.append("added") }
    nodes[0].observeRemovedFromParent(listener) { me, _, _ in me.log.append("removed") }
    func change(_ items: inout ModelArray<Node>) {
      let first = items.remove(at: 0)
      items.append(first)
    }
    let sets = scope.changeSets { change(&node.items) }
    #expect(listener.log.isEmpty)
    #expect(sets.first?.fragments.count == 1)
    #expect(nodes[0].parents.count == 1)
  }
}
