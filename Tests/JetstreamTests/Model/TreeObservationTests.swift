import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct TreeObservationTests {
  let root = Node("root")
  let scope: Scope
  let listener = Listener()

  init() { scope = manualScope(root) }

  @Test("A change of a great-grandchild, made twice, is told once on the next tick")
  func descendant() {
    let (a, b, c) = (Node("a"), Node("b"), Node("c"))
    root.left = a
    a.items = [b]
    b.right = c
    scope.flush()
    root.observeTreeChange(listener, isolation: here()) { $0.called() }
    c.number = 1
    c.number = 2
    #expect(listener.count == 0)
    scope.ticker.tick()
    #expect(listener.count == 1)
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("Once, whatever the number of paths; also around cycles")
  func diamond() {
    let (a, b, shared) = (Node("a"), Node("b"), Node("shared"))
    root.left = a
    root.right = b
    a.left = shared
    b.left = shared
    shared.right = root
    scope.flush()
    for node in [root, a, b, shared] {
      node.observeTreeChange(listener, isolation: here()) { $0.log.append(node.label) }
    }
    shared.number = 1
    scope.ticker.tick()
    #expect(listener.log.sorted() == ["a", "b", "root", "shared"])
    listener.log = []
    a.number = 1
    scope.ticker.tick()
    #expect(listener.log.sorted() == ["a", "b", "root", "shared"])
    shared.right = nil
  }

  @Test("Structure counts as change of the parent; what is not above hears nothing")
  func structure() {
    let (a, b) = (Node("a"), Node("b"))
    root.items = [a, b]
    scope.flush()
    a.observeTreeChange(listener, isolation: here()) { $0.log.append("a") }
    b.observeTreeChange(listener, isolation: here()) { $0.log.append("b") }
    root.observeTreeChange(listener, isolation: here()) { $0.log.append("root") }
    b.items.append(Node())
    scope.ticker.tick()
    #expect(listener.log.sorted() == ["b", "root"])
    listener.log = []
    b.items[0].detach()
    root.items.move(from: 0, to: 1)
    scope.ticker.tick()
    #expect(listener.log.sorted() == ["b", "root"])
  }

  @Test("A model that is gone before the tick tells its old parents about itself only")
  func goneBeforeTick() {
    let a = Node("a")
    root.left = a
    scope.flush()
    root.observeTreeChange(listener, isolation: here()) { $0.called() }
    a.number = 1
    root.left = nil
    scope.flush()
    #expect(listener.count == 1)
  }
}
