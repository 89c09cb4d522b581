import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct LifecycleTests {
  let root = Node("root")
  let scope: Scope
  let listener = Listener()

  init() { scope = manualScope(root) }

  private func watch(_ nodes: Node...) {
    for node in nodes {
      node.observeAttach(listener) { [scope] me, other in
        me.log.append("+\(node.label)\(other === scope ? "" : "?")")
      }
      node.observeDetach(listener) { [scope] me, other in
        me.log.append("-\(node.label)\(other === scope ? "" : "?")")
      }
    }
  }

  private func watchParents(_ node: Node) {
    node.observeAddedToParent(listener) { me, parent, key in
      me.log.append("+\((parent as! Node).label).\(key)")
    }
    node.observeRemovedFromParent(listener) { me, parent, key in
      me.log.append("-\((parent as! Node).label).\(key)")
    }
  }

  @Test("Attaching the root of a tree of three levels gives three attach events")
  func attach() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    a.left = b
    b.items = [c]
    watch(a, b, c)
    root.items.append(a)
    #expect(listener.log == ["+a", "+b", "+c"])
    #expect(c.scope === scope)
    #expect(scope.count == 4)
  }

  @Test("Only losing the last scoped parent detaches, and then everything below")
  func detach() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    root.items = [a]
    root.left = b
    a.left = c
    b.left = c
    watch(a, b, c)
    root.left = nil
    #expect(listener.log == ["-b"])
    root.items.remove(a)
    #expect(listener.log == ["-b", "-a", "-c"])
    #expect(c.scope == nil)
    #expect(scope.count == 1)
  }

  @Test("One event for each property that comes to hold the model")
  func addedToParent() {
    let a = Node("a")
    watchParents(a)
    root.left = a
    root.items.append(a)
    #expect(listener.log == ["+root.left", "+root.items"])
  }

  @Test("Setting the property to nil gives one event with parent and key")
  func removedFromParent() {
    let a = Node("a")
    root.left = a
    watchParents(a)
    root.left = nil
    #expect(listener.log == ["-root.left"])
    #expect(a.parents.isEmpty)
  }

  @Test("One parent may hold a model in several properties; it attaches once")
  func severalKeys() {
    let a = Node("a")
    watch(a)
    root.left = a
    root.items.append(a)
    #expect(a.parents.count == 2)
    #expect(Set(a.parents.map(\.key)) == ["left", "items"])
    #expect(listener.log == ["+a"])
  }

  @Test("Detach() empties every property and collection that holds the model")
  func detachFromAll() {
    let a = Node("a")
    root.left = a
    root.items = [Node("b"), a, Node("c")]
    watch(a)
    watchParents(a)
    a.detach()
    #expect(root.left == nil)
    #expect(root.items.map(\.label) == ["b", "c"])
    #expect(listener.log.filter { $0.hasPrefix("-root") }.count == 2)
    #expect(listener.log.filter { $0 == "-a" }.count == 1)
    #expect(listener.log.count == 3)
    a.detach()
    #expect(listener.log.count == 3)
  }

  @Test("A cycle that the root no longer reaches detaches as a whole")
  func cycle() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    a.left = b
    b.left = c
    c.left = a
    c.right = root
    root.left = a
    watch(a, b, c)
    root.left = nil
    #expect(Set(listener.log) == ["-a", "-b", "-c"])
    #expect(scope.count == 1)
    #expect(root.scope === scope)
    a.left = nil
  }

  @Test("Replacing a reference attaches the new model before it detaches the old one")
  func replace() {
    let (a, b, shared) = (Node("a"), Node("b"), Node("shared"))
    a.left = shared
    b.left = shared
    root.left = a
    watch(a, b, shared)
    root.left = b
    #expect(listener.log == ["+b", "-a"])
    #expect(shared.scope === scope)
  }

  @Test("initial children know their parent and attach with it")
  func initialChildren() {
    final class Parent: ModelObject {
      @Property var child: Node? = Node("given")
      @Property var list: ModelArray<Node> = [Node("x"), Node("y")]
    }
    let parent = Parent()
    #expect(parent.child?.parents.first?.parent === parent)
    #expect(parent.list.allSatisfy { $0.parents.map(\.key) == ["list"] })
    let scope = manualScope(parent)
    #expect(scope.count == 4)
    #expect(parent.child?.scope === scope)
  }

  @Test("a parent that is released is no parent any more")
  func parentReleased() {
    let child = Node("child")
    do {
      let parent = Node("parent")
      parent.left = child
      parent.items = [child]
      #expect(child.parents.count == 2)
    }
    #expect(child.parents.isEmpty)
    root.left = child
    #expect(child.scope === scope)
  }

  @Test("observers of structure may change the structure")
  func reentrancy() {
    let (a, b) = (Node("a"), Node("b"))
    a.observeAttach(listener) { me, _ in
      me.called()
      a.left = b
    }
    b.observeAttach(listener) { me, _ in
      me.called()
      if me.count < 10 { self.root.left = nil }
    }
    root.left = a
    #expect(listener.count == 2)
    #expect(root.left == nil)
    #expect(a.scope == nil && b.scope == nil)
    #expect(scope.count == 1)
  }
}
