import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct MutingTests {
  let world: ObservationWorld
  let listener = Listener()

  init() { world = ObservationWorld() }

  @Test("What had changed before is told although the token is muted afterwards")
  func before() {
    let token = world.model.observeChange(listener, \.number, isolation: here()) { $0.called() }
    world.model.number = 1
    world.scope.withoutNotifying([token]) { world.model.number = 2 }
    #expect(listener.count == 1)
    world.scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("Old values and differences count from the end of the muted change")
  func values() {
    var content = Array(world.model.items)
    let model = world.model
    let tokens = [
      model.observeChange(listener, \.number, isolation: here()) { me, old, new in
        me.log.append("\(old)>\(new)")
      },
      model.observeChangeImmediately(listener, \.doubled) { me, old, new in
        me.log.append("\(old):\(new)")
      },
      model.observeDifference(listener, \.items, isolation: here()) { _, difference in
        content = content.applying(difference)!
      },
    ]
    let given = Node("given")
    world.scope.withoutNotifying(tokens) {
      model.number = 5
      model.items.append(given)
    }
    #expect(listener.log.isEmpty && content.isEmpty)
    content = [given]
    model.number = 6
    model.items.append(Node("more"))
    world.scope.ticker.tick()
    #expect(listener.log == ["10:12", "5>6"])
    #expect(content == Array(model.items))
  }

  @Test("Nested, and ended by an error")
  func nested() {
    struct Failure: Error {}
    let first = world.model.signals.onPropertyChange.listen(listener) { me, _ in
      me.log.append("first")
    }
    let second = world.model.signals.onPropertyChange.listen(listener) { me, _ in
      me.log.append("second")
    }
    #expect(throws: Failure.self) {
      try world.scope.withoutNotifying([first]) {
        world.scope.withoutNotifying([first, second]) { world.model.number = 1 }
        world.model.number = 2
        throw Failure()
      }
    }
    #expect(listener.log == ["second"])
    world.model.number = 3
    #expect(listener.log == ["second", "first", "second"])
  }

  @Test("The change set contains what the muted observer was not told")
  func changeSet() {
    let token = world.model.observeChange(listener, isolation: here()) { $0.called() }
    let sets = world.scope.changeSets {
      world.scope.withoutNotifying([token]) { world.model.number = 9 }
    }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["number": 9]]])
    #expect(listener.count == 0)
  }

  @Test("A query's observer that another observer mutes has been called with the earlier change")
  func query() {
    let (root, scope) = (world.root, world.scope)
    let query = root.query(\.items).live(isolation: here())
    let token = query.observe(listener) { me, update in
      me.log.append("\(update.inserted) \(update.moved.count)")
    }
    root.observeChange(listener, \.number, isolation: here()) { [unowned root, unowned scope] _ in
      scope.withoutNotifying([token]) { root.items.move(from: 0, to: 1) }
    }
    root.items.insert(Node("new"), at: 0)
    root.number = 1
    scope.ticker.tick()
    #expect(listener.log == ["[0] 0"])
    root.items.append(Node("last"))
    scope.ticker.tick()
    #expect(listener.log == ["[0] 0", "[2] 0"])
    #expect(query.rows.elementsEqual(root.items))
  }

  @Test("A difference of the same tick that another observer mutes is of the earlier change alone")
  func difference() {
    let (root, scope) = (world.root, world.scope)
    var token: ObservationToken?
    var content = Array(root.items)
    root.observeChange(listener, \.number, isolation: here()) { [unowned root, unowned scope] _ in
      scope.withoutNotifying([token!]) { root.items.move(from: 0, to: 1) }
    }
    token = root.observeDifference(listener, \.items, isolation: here()) { me, difference in
      me.called()
      content = content.applying(difference) ?? []
    }
    let new = Node("new")
    root.items.insert(new, at: 0)
    root.number = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
    #expect(content == [new, world.model])
  }

  @Test("Observers of a query and of a tree that an observer of the query mutes are no exception")
  func queryByQuery() {
    let (root, scope) = (world.root, world.scope)
    let query = root.query(\.items).live(isolation: here())
    var tokens: [ObservationToken] = []
    query.observe(listener) { [unowned root, unowned scope] me, update in
      me.log.append("first \(update.inserted)")
      guard update.inserted == [0] else { return }
      scope.withoutNotifying(tokens) { root.items.move(from: 0, to: 1) }
    }
    tokens = [
      query.observe(listener) { $0.log.append("second \($1.inserted)") },
      root.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") },
    ]
    root.items.insert(Node("new"), at: 0)
    scope.ticker.tick()
    #expect(listener.log == ["first [0]", "second [0]", "tree", "first []"])
  }

  @Test("Observers of one tick that mute themselves are called one after the other")
  func depth() {
    let (root, scope) = (world.root, world.scope)
    let nodes = (0..<100).map { _ in Node() }
    root.items = ModelArray(nodes)
    scope.flush()
    var depth = 0
    var deepest = 0
    var tokens: [ObservationToken] = []
    let writeBack = { [unowned scope] (place: Int, node: Node) in
      depth += 1
      deepest = max(deepest, depth)
      scope.withoutNotifying([tokens[place]]) { node.number += 1 }
      depth -= 1
    }
    var queries: [LiveQuery<Node>] = []
    for (place, node) in nodes.enumerated() {
      if place < 50 {
        tokens.append(
          node.observeChange(listener, \.number, isolation: here()) { [unowned node] me in
            me.called()
            writeBack(place, node)
          })
      } else {
        let query = node.query(\.items).live(isolation: here())
        queries.append(query)
        tokens.append(
          query.observe(listener) { [unowned node] me, _ in
            me.called()
            writeBack(place, node)
          })
      }
    }
    for (place, node) in nodes.enumerated() {
      if place < 50 { node.number = 1 } else { node.items.append(Node("row")) }
    }
    scope.ticker.tick()
    #expect(listener.count == 100)
    #expect(deepest == 1)
    scope.ticker.tick()
    #expect(listener.count == 100)
    withExtendedLifetime(queries) {}
  }
}
