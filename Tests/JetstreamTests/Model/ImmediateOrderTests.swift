import Testing

@testable import Jetstream

/// Immediate observers are called with changes in the order in which they were made, also with those that observers
/// make.
@Suite struct ImmediateOrderTests {
  private let root = Node("root")
  private let scope: Scope
  private let listener = Listener()

  init() { scope = manualScope(root) }

  @Test("A change that an observer makes reaches the others after the one that it was called with")
  func values() {
    let (first, last) = (Listener(), Listener())
    func observe(_ listener: Listener) {
      root.observeChangeImmediately(listener, \.number) { $0.log.append("\($1)>\($2)") }
    }
    observe(first)
    root.observeChangeImmediately(listener, \.number) { [root] me, old, new in
      me.log.append("\(old)>\(new)")
      if new < 4 { root.number = new + 1 }
      me.log.append("after \(new)")
    }
    observe(last)
    root.number = 1
    let steps = ["0>1", "1>2", "2>3", "3>4"]
    #expect(first.log == steps && last.log == steps)
    #expect(listener.log == steps + ["after 4", "after 3", "after 2", "after 1"])
  }

  @Test("The steps of a collection, and entering and leaving, are in order")
  func collection() {
    root.signals.onPropertyChange.listen(listener) { [root] me, change in
      me.log.append("property")
      if root.items.count == 1 { root.items.removeAll() }
    }
    root.observeCollectionAdd(listener, \.items) { me, _, _ in me.log.append("add") }
    root.observeCollectionRemove(listener, \.items) { me, _, _ in me.log.append("remove") }
    let node = Node("node")
    node.observeAttach(listener) { me, _ in me.log.append("attach") }
    node.observeDetach(listener) { me, _ in me.log.append("detach") }
    node.observeAddedToParent(listener) { me, _, _ in me.log.append("to") }
    node.observeRemovedFromParent(listener) { me, _, _ in me.log.append("from") }
    root.items.append(node)
    #expect(
      listener.log == [
        "property", "add", "attach", "to", "property", "remove", "from", "detach",
      ])
    #expect(node.scope == nil)
  }

  @Test("A mirror that several observers keep is the collection, whatever they do meanwhile")
  func mirror() {
    var mirror: [Node] = []
    root.observeCollectionAdd(listener, \.items) { [root] _, node, _ in
      if node.number < 3 {
        let next = Node("next")
        next.number = node.number + 1
        root.items.insert(next, at: 0)
      } else {
        root.items.removeAll { $0.number == 1 }
      }
    }
    root.observeCollectionAdd(listener, \.items) { mirror.insert($1, at: $2) }
    root.observeCollectionRemove(listener, \.items) { #expect(mirror.remove(at: $2) === $1) }
    root.items.append(contentsOf: [Node("a"), Node("b")])
    #expect(mirror == Array(root.items) && mirror.count > 2)
  }

  @Test("A mirror that is begun in the middle of a change follows from the next change on")
  func lateMirror() {
    var mirror: [Node] = []
    root.observeCollectionAdd(listener, \.items) { [root] me, _, _ in
      guard mirror.isEmpty else { return }
      mirror = Array(root.items)
      root.observeCollectionAdd(me, \.items) { mirror.insert($1, at: $2) }
    }
    root.items.append(contentsOf: [Node("a"), Node("b"), Node("c")])
    #expect(mirror == Array(root.items))
    root.items.insert(Node("d"), at: 0)
    #expect(mirror == Array(root.items) && mirror.count == 4)
  }

  @Test("Observers that are added during a change are called from the next one on")
  func addedDuringChange() {
    let nodes = [Node("a"), Node("b")]
    func observe(_ me: Listener, _ prefix: String) {
      root.observeCollectionAdd(me, \.items) { me, _, _ in me.log.append(prefix + "add") }
      for node in nodes {
        let label = node.label
        node.observeAttach(me) { me, _ in me.log.append("\(prefix)attach \(label)") }
        node.observeAddedToParent(me) { me, _, _ in me.log.append("\(prefix)to \(label)") }
      }
    }
    var isAdded = false
    root.observeChangeImmediately(listener, \.items) { me, _, _ in
      if !isAdded { observe(me, "late ") }
      isAdded = true
    }
    observe(listener, "")
    root.items.append(contentsOf: nodes)
    #expect(listener.log == ["add", "add", "attach a", "to a", "attach b", "to b"])
    root.items.removeAll()
    listener.log = []
    root.items.append(nodes[0])
    #expect(
      listener.log == ["add", "late add", "attach a", "late attach a", "to a", "late to a"])
  }

  @Test("Changes of several models are in order, local ones and those of others")
  func severalModels() {
    let (left, right) = (Node("left"), Node("right"))
    (root.left, root.right) = (left, right)
    root.observeChangeImmediately(listener, \.number) { [left] _, _, new in left.number = new }
    left.observeChangeImmediately(listener, \.number) { [right] _, _, new in right.number = new }
    for node in [root, left, right] {
      node.observeChangeImmediately(listener, \.number) { me, _, new in
        me.log.append("\(node.label) \(new)")
      }
    }
    root.number = 1
    scope.flush()
    scope.apply([
      SyncFragment(.change, uuid: root.uuid, className: "Node", properties: ["number": 2])
    ])
    #expect(
      listener.log == ["root 1", "left 1", "right 1", "root 2", "left 2", "right 2"])
    let sets = scope.changeSets {}
    #expect(Set(sets.flatMap(\.fragments).map(\.uuid)) == [left.uuid, right.uuid])
  }

  @Test("An observer that is muted by another one has been called with the change before")
  func muted() {
    var token: ObservationToken?
    root.observeChangeImmediately(listener, \.number) { [root, scope] _, _, new in
      guard new == 1, let token else { return }
      scope.withoutNotifying([token]) { root.number = 2 }
    }
    token = root.observeChangeImmediately(listener, \.number) { $0.log.append("\($1)>\($2)") }
    root.number = 1
    #expect(listener.log == ["0>1"])
    root.number = 3
    #expect(listener.log == ["0>1", "2>3"])
  }

  @Test("A cancelled observer is not called, and an added one from the next change on")
  func cancelled() {
    var token: ObservationToken?
    root.observeChangeImmediately(listener, \.number) { [root] me, _, new in
      guard new == 1 else { return }
      token?.cancel()
      root.observeChangeImmediately(me, \.number) { $0.log.append("added \($1)>\($2)") }
      root.number = 2
    }
    token = root.observeChangeImmediately(listener, \.number) { $0.log.append("cancelled \($2)") }
    root.observeChangeImmediately(listener, \.number) { $0.log.append("last \($1)>\($2)") }
    root.number = 1
    #expect(listener.log == ["last 0>1", "last 1>2", "added 1>2"])
  }
}
