import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct TreePathTests {
  let canvas = Canvas()
  let scope: Scope
  let listener = Listener()
  let shapes = (0..<3).map { _ in Shape() }

  init() {
    canvas.shapes = ModelArray(shapes)
    shapes[0].parts = [Shape(), Shape()]
    scope = manualScope(canvas)
    scope.flush()
  }

  private func calls(after change: () -> Void) -> Int {
    listener.count = 0
    change()
    scope.ticker.tick()
    return listener.count
  }

  @Test("Limited to properties, only these and what is below them count")
  func keyPaths() {
    canvas.observeTreeChange(listener, \.selected, isolation: here()) { $0.called() }
    #expect(calls { canvas.name = "x" } == 0)
    #expect(calls { shapes[0].x = 1 } == 0)
    #expect(calls { canvas.shapes.append(Shape()) } == 0)
    #expect(calls { canvas.selected = shapes[0] } == 1)
    #expect(calls { shapes[1].x = 1 } == 0)
    #expect(
      calls {
        shapes[0].x = 2
        shapes[0].parts[0].y = 2
      } == 1)
    #expect(calls { shapes[0].parts[1].color = .blue } == 1)
    #expect(calls { canvas.selected = nil } == 1)
    #expect(calls { shapes[0].x = 3 } == 0)
  }

  @Test("Several properties in one observation; one call whatever the number of ways")
  func severalKeyPaths() {
    var bare = 0
    let token = canvas.observeTreeChange(\.selected, \.shapes, isolation: here()) { bare += 1 }
    canvas.selected = shapes[0]
    scope.ticker.tick()
    #expect(bare == 1)
    shapes[0].parts[0].x = 1
    scope.ticker.tick()
    #expect(bare == 2)
    canvas.name = "x"
    scope.ticker.tick()
    #expect(bare == 2)
    token.cancel()
    shapes[0].x = 2
    scope.ticker.tick()
    #expect(bare == 2)
  }

  @Test("A path reports its target and what is below it, and no sibling")
  func path() {
    canvas.observeTreeChange(listener, path: "shapes.parts", isolation: here()) { $0.called() }
    #expect(calls { shapes[0].x = 1 } == 0)
    #expect(calls { canvas.name = "x" } == 0)
    #expect(calls { canvas.selected = shapes[1] } == 0)
    #expect(calls { shapes[0].parts[0].x = 1 } == 1)
    #expect(calls { shapes[0].parts[0].parts = [Shape()] } == 1)
    #expect(calls { shapes[0].parts[0].parts[0].x = 4 } == 1)
    #expect(calls { shapes[2].parts.append(Shape()) } == 1)
    #expect(calls { shapes[2].parts.removeAll() } == 1)
  }

  @Test("The last name is a property; others of the same model are siblings")
  func lastName() {
    canvas.observeTreeChange(listener, path: "shapes.parts.x", isolation: here()) { $0.called() }
    let part = shapes[0].parts[0]
    #expect(calls { part.x = 1 } == 1)
    #expect(calls { part.y = 1 } == 0)
    #expect(calls { part.parts = [Shape()] } == 0)
    #expect(calls { part.parts[0].x = 5 } == 0)
    #expect(calls { shapes[0].x = 5 } == 0)
  }

  @Test("A model that comes to the path or leaves it counts")
  func structure() {
    canvas.observeTreeChange(listener, path: "shapes.parts.x", isolation: here()) { $0.called() }
    #expect(calls { canvas.shapes.append(Shape()) } == 1)
    #expect(calls { canvas.shapes.move(from: 0, to: 2) } == 1)
    #expect(calls { shapes[0].parts.remove(at: 0) } == 1)
    #expect(calls { canvas.shapes.remove(shapes[0]) } == 1)
    let gone = shapes[0].parts[0]
    #expect(calls { gone.x = 9 } == 0)
    canvas.selected = shapes[0]
    #expect(calls { gone.x = 10 } == 0)
  }

  @Test("One model on several paths, and around a cycle, gives one call")
  func graph() {
    let root = Node("root")
    let scope = manualScope(root)
    let (a, b, shared) = (Node("a"), Node("b"), Node("shared"))
    root.items = [a, b]
    a.left = shared
    b.left = shared
    shared.left = root
    shared.right = a
    scope.flush()
    root.observeTreeChange(listener, path: "items.left.number", isolation: here()) { $0.called() }
    root.observeTreeChange(listener, path: "items.left.right.label", isolation: here()) {
      $0.log.append("deep")
    }
    root.observeTreeChange(listener, path: "right", isolation: here()) { _ in
      Issue.record("no such thing")
    }
    shared.number = 1
    scope.ticker.tick()
    #expect(listener.count == 1 && listener.log.isEmpty)
    // a is also below the target of the second path.
    a.label = "A"
    scope.ticker.tick()
    #expect(listener.count == 1 && listener.log == ["deep"])
    b.number = 1
    scope.ticker.tick()
    #expect(listener.count == 1 && listener.log == ["deep"])
    shared.left = nil
    shared.right = nil
    scope.ticker.tick()
    #expect(listener.count == 1 && listener.log == ["deep", "deep"])
  }

  @Test("Remote changes count like local ones")
  func remote() {
    canvas.observeTreeChange(listener, path: "shapes.x", isolation: here()) { $0.called() }
    for (key, count) in [("x", 1), ("y", 0)] {
      listener.count = 0
      let report = scope.apply([
        SyncFragment(
          .change, uuid: shapes[1].uuid, className: "Shape",
          properties: JSONObject([(key, 7 as JSONValue)]))
      ])
      #expect(report.isComplete)
      scope.ticker.tick()
      #expect(listener.count == count)
    }
  }

  @Test("An observer is not told about what had changed before it came")
  func changesBefore() {
    let other = Listener()
    canvas.observeTreeChange(other, isolation: here()) { $0.called() }
    shapes[0].x = 1
    canvas.observeTreeChange(listener, path: "shapes.x", isolation: here()) { $0.called() }
    scope.ticker.tick()
    #expect(other.count == 1 && listener.count == 0)
    shapes[0].x = 2
    scope.ticker.tick()
    #expect(other.count == 2 && listener.count == 1)
  }

  @Test("Outside of a scope it waits until the model is in one")
  func loose() {
    let shape = Shape()
    let part = Shape()
    shape.parts = [part]
    shape.observeTreeChange(listener, path: "parts.x", isolation: here()) { $0.called() }
    canvas.shapes.append(shape)
    scope.ticker.tick()
    #expect(listener.count == 0)
    part.x = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test(
    "Any changes of a forest call exactly the paths that lead to them",
    arguments: seeds(1...10))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let root = Node("root")
    let scope = manualScope(root)
    let all = [root] + (0..<12).map { Node("\($0)") }
    for _ in 0..<24 { link(all, &generator) }
    let paths = [
      ["items"], ["items", "left"], ["left", "number"], ["items", "others", "label"],
      ["left", "left", "left", "right"], ["right", "items"],
    ]
    var told: [Int] = []
    for (number, path) in paths.enumerated() {
      root.observeTreeChange(path: path.joined(separator: "."), isolation: here()) {
        told.append(number)
      }
    }
    scope.flush()
    for step in 0..<150 {
      told = []
      let node = all.randomElement(using: &generator)!
      let key: String
      if Bool.random(using: &generator) {
        key = "number"
        node.number += 1
      } else if Bool.random(using: &generator) {
        key = "label"
        node.label += "x"
      } else {
        link(all, &generator)
        scope.flush()
        continue
      }
      let expected = paths.indices.filter { leads(paths[$0], from: root, to: node, key) }
      scope.flush()
      #expect(told.sorted() == expected, "seed \(seed), step \(step)")
    }
    for node in all { node.detach() }
  }

  private func link(_ all: [Node], _ generator: inout SeededGenerator) {
    let (node, other) = (
      all.randomElement(using: &generator)!, all.randomElement(using: &generator)!
    )
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: node.left = other
    case 1: node.right = other
    case 2: if !node.items.append(other) { node.items.remove(other) }
    case 3: node.others.append(other)
    default: node.left = nil
    }
  }

  private func children(_ node: Node, _ key: String) -> [Node] {
    switch key {
    case "left": node.left.map { [$0] } ?? []
    case "right": node.right.map { [$0] } ?? []
    case "items": Array(node.items)
    case "others": Array(node.others)
    default: []
    }
  }

  /// The slow way: everything that the path leads to, looked at one by one.
  private func leads(_ path: [String], from root: Node, to node: Node, _ key: String) -> Bool {
    var ends: Set<Node> = [root]
    for name in path.dropLast() { ends = Set(ends.flatMap { children($0, name) }) }
    if path.last == key, ends.contains(node) { return true }
    var open = ends.flatMap { children($0, path.last!) }
    var reached = Set(open)
    while let next = open.popLast() {
      for child in ["left", "right", "items", "others"].flatMap({ children(next, $0) })
      where reached.insert(child).inserted {
        open.append(child)
      }
    }
    return reached.contains(node)
  }
}
