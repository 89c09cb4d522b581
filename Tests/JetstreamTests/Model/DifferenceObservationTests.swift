import Testing

@testable import Jetstream

/// Keeps a copy of a collection through differences alone.
private final class Mirror {
  var content: [Node]
  var calls = 0
  var last: CollectionDifference<Node>?

  init(_ content: some Sequence<Node>) { self.content = Array(content) }

  func take(_ difference: CollectionDifference<Node>) {
    calls += 1
    last = difference
    guard let next = content.applying(difference) else {
      Issue.record("A difference does not fit the copy.")
      return
    }
    content = next
  }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct DifferenceObservationTests {
  let root = Node("root")
  let scope: Scope
  let listener = Listener()

  init() {
    root.items = ModelArray((0..<4).map { Node("\($0)") })
    scope = manualScope(root)
  }

  @Test("One call a tick, with offsets of the old and the new content")
  func once() {
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    root.items.remove(at: 1)
    root.items.append(Node("new"))
    root.items.move(from: 0, to: 3)
    #expect(mirror.calls == 0)
    scope.ticker.tick()
    #expect(mirror.calls == 1)
    #expect(mirror.content.map(\.label) == ["2", "3", "new", "0"])
    #expect(mirror.last?.removals.count == 2 && mirror.last?.insertions.count == 2)
    scope.ticker.tick()
    #expect(mirror.calls == 1)
  }

  @Test("Never called for nothing, nor for another property")
  func nothing() {
    root.observeDifference(listener, \.items, isolation: here()) { me, _ in me.called() }
    let extra = Node("extra")
    root.items.append(extra)
    root.items.remove(extra)
    root.items.move(from: 0, to: 1)
    root.items.move(from: 1, to: 0)
    root.others.append(extra)
    root.number = 1
    root.items[0].number = 1
    scope.ticker.tick()
    #expect(listener.count == 0)
    let before = root.items
    root.items = []
    root.items = before
    scope.ticker.tick()
    #expect(listener.count == 0)
  }

  @Test("Remote changes, also in the middle of local ones")
  func remote() {
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    let order = [2, 0, 3].map { JSONValue.string(root.items[$0].uuid.wireText) }
    scope.apply([
      SyncFragment(
        .change, uuid: root.uuid, className: "Node", properties: ["items": .array(order)])
    ])
    scope.ticker.tick()
    #expect(mirror.calls == 1)
    #expect(mirror.content == Array(root.items) && mirror.content.map(\.label) == ["2", "0", "3"])
    root.items.append(Node("local"))
    scope.apply([
      SyncFragment(
        .change, uuid: root.uuid, className: "Node", properties: ["items": .array([order[1]])])
    ])
    scope.ticker.tick()
    #expect(mirror.calls == 2)
    #expect(mirror.content == Array(root.items) && mirror.content.map(\.label) == ["0", "local"])
  }

  @Test("With and without an observer")
  func withAndWithout() {
    var labels = Array(root.items)
    let token = root.observeDifference(\.items, isolation: here()) { labels = labels.applying($0)! }
    root.observeDifference(listener, \.items, isolation: here()) { me, difference in
      me.log.append("\(difference.removals.count)-\(difference.insertions.count)")
    }
    var typed = 0
    root.observeDifference(\.items, isolation: here()) { difference in typed += difference.count }
    root.items = [Node("x"), root.items[0]]
    scope.ticker.tick()
    #expect(labels == Array(root.items))
    #expect(listener.log == ["3-1"])
    #expect(typed == 4)
    token.cancel()
    root.items = []
    scope.ticker.tick()
    #expect(labels.count == 2)
    #expect(listener.log == ["3-1", "2-0"])
  }

  @Test("An observer that comes late counts from where it came")
  func late() {
    root.items.removeAll()
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    scope.ticker.tick()
    #expect(mirror.calls == 0)
    root.items.append(Node("a"))
    let later = Mirror(root.items)
    root.observeDifference(later, \.items, isolation: here()) { $0.take($1) }
    root.items.append(Node("b"))
    scope.ticker.tick()
    #expect(mirror.content.map(\.label) == ["a", "b"] && mirror.calls == 1)
    #expect(later.content.map(\.label) == ["a", "b"] && later.calls == 1)
  }

  @Test("Steps stay in order when immediate observers change the collection meanwhile")
  func nestedChange() {
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    var isFirst = true
    root.observeCollectionAdd(listener, \.items) { [root] _, _, _ in
      guard isFirst else { return }
      isFirst = false
      root.items.remove(at: 0)
      root.items.insert(Node("nested"), at: 0)
    }
    root.items.append(contentsOf: [Node("x"), Node("y")])
    scope.ticker.tick()
    #expect(mirror.content == Array(root.items))
    #expect(mirror.content.map(\.label) == ["nested", "1", "2", "3", "x", "y"])
  }

  @Test("What an earlier observer does in the tick is part of it, and not told again")
  func changedDuringDelivery() {
    root.observeChange(listener, \.items, isolation: here()) { [root] me in
      me.called()
      if me.count == 1 { root.items.append(Node("more")) }
    }
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    root.items.remove(at: 0)
    scope.ticker.tick()
    #expect(mirror.content == Array(root.items) && mirror.calls == 1)
    scope.ticker.tick()
    #expect(mirror.calls == 1)
    #expect(listener.count == 2)
  }

  @Test("Without a tick, steps do not pile up beyond the size of the collection")
  func bounded() {
    let loose = Node("loose")
    let child = Node("child")
    let mirror = Mirror([])
    loose.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    for _ in 0..<10_000 {
      loose.items.append(child)
      loose.items.remove(child)
    }
    loose.items.append(child)
    weak var weakNode: Node?
    do {
      let node = Node()
      weakNode = node
      loose.items.append(node)
      loose.items.remove(node)
    }
    #expect(weakNode == nil)
    root.left = loose
    scope.ticker.tick()
    #expect(mirror.content == [child] && mirror.calls == 1)
  }

  @Test(
    "A second array, kept through differences alone, equals the property at each tick",
    arguments: seeds(1...12))
  func mirrors(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let mirror = Mirror(root.items)
    root.observeDifference(mirror, \.items, isolation: here()) { $0.take($1) }
    let pool = Array(root.items) + (4..<30).map { Node("\($0)") }
    for step in 0..<300 {
      for _ in 0..<Int.random(in: 0..<6, using: &generator) { change(pool, &generator) }
      let before = (content: mirror.content, calls: mirror.calls)
      scope.flush()
      let note: Comment = "seed \(seed), step \(step)"
      #expect(mirror.content == Array(root.items), note)
      #expect((mirror.calls > before.calls) == (mirror.content != before.content), note)
      #expect(mirror.calls - before.calls < 2, note)
    }
  }

  private func change(_ pool: [Node], _ generator: inout SeededGenerator) {
    let node = pool.randomElement(using: &generator)!
    let count = root.items.count
    switch Int.random(in: 0..<12, using: &generator) {
    case 0..<3: root.items.append(node)
    case 3: root.items.insert(node, at: 0)
    case 4..<6: root.items.remove(node)
    case 6..<8: if count > 0 { root.items.move(from: 0, to: count / 2) }
    case 8: root.items = ModelArray(pool.shuffled(using: &generator).prefix(10))
    case 9: swap(&root.items, &root.others)
    case 10: node.detach()
    default:
      let order = root.items.map { JSONValue.string($0.uuid.wireText) }
      scope.apply([
        SyncFragment(
          .change, uuid: root.uuid, className: "Node",
          properties: ["items": .array(order.shuffled(using: &generator).dropLast())])
      ])
    }
  }
}
