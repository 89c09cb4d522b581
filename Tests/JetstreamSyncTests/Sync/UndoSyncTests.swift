import Jetstream
import JetstreamServer
import Testing

@Suite("Taking changes back while others change the same", .paced)
struct UndoSyncTests {
  private let world = InMemoryWorld()
  private let first: WorldClient
  private let second: WorldClient
  private let history: UndoHistory

  init() {
    for number in 0..<3 {
      let shape = Shape()
      shape.label = "\(number)"
      world.canvas.shapes.append(shape)
    }
    first = world.addClient()
    second = world.addClient()
    first.join()
    second.join()
    world.settle()
    history = UndoHistory(of: first.scope)
  }

  private func settle() {
    first.scope.flush()
    second.scope.flush()
    world.settle()
    for client in [first, second] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  private func labels(_ client: WorldClient) -> [String] { client.canvas.shapes.map(\.label) }

  @Test("A value that another has written since stays")
  func values() {
    first.canvas.shapes[0].x = 1
    first.canvas.shapes[0].y = 1
    settle()
    second.canvas.shapes[0].y = 2
    settle()
    history.undo()
    settle()
    #expect(second.canvas.shapes[0].x == 0 && second.canvas.shapes[0].y == 2)
    history.redo()
    settle()
    #expect(second.canvas.shapes[0].x == 1 && second.canvas.shapes[0].y == 2)
  }

  @Test("An insertion is taken back, another's insertions beside it stay")
  func insertions() {
    let shape = Shape()
    shape.label = "mine"
    first.canvas.shapes.insert(shape, at: 1)
    settle()
    let other = Shape()
    other.label = "other"
    second.canvas.shapes.insert(other, at: 2)
    settle()
    history.undo()
    settle()
    #expect(labels(second) == ["0", "other", "1", "2"])
    history.redo()
    settle()
    #expect(labels(second) == ["0", "mine", "other", "1", "2"])
  }

  @Test("A removal is taken back next to its neighbours, with the values that it had")
  func removals() {
    let gone = first.canvas.shapes[1]
    gone.x = 7
    settle()
    first.canvas.shapes.remove(gone)
    settle()
    second.canvas.shapes.insert(Shape(), at: 0)
    settle()
    history.undo()
    settle()
    #expect(labels(second) == ["", "0", "1", "2"])
    #expect(second.canvas.shapes[2].x == 7 && first.canvas.shapes[2] === gone)
  }

  @Test("A move is taken back although another has moved something else")
  func moves() {
    first.canvas.shapes.move(from: 0, to: 2)
    settle()
    second.canvas.shapes.append(Shape())
    settle()
    history.undo()
    settle()
    #expect(labels(second) == ["0", "1", "2", ""])
  }

  @Test("The undo of a move out of a model that another has removed leaves the moved model")
  func moveOutOfRemoved() {
    let (holder, moved) = (first.canvas.shapes[0], Shape())
    moved.label = "moved"
    holder.parts.append(moved)
    settle()
    first.scope.modify { first.canvas.hidden.append(holder.parts.remove(at: 0)) }
    settle()
    second.canvas.shapes.remove(at: 0)
    settle()
    let report = history.undo()
    settle()
    #expect(second.canvas.hidden.map(\.label) == ["moved"] && labels(second) == ["1", "2"])
    #expect(report?.isComplete == false)
  }

  @Test("The redo of a move into a model that another has removed leaves the moved model")
  func moveIntoRemoved() {
    let holder = first.canvas.shapes[0]
    first.scope.modify { holder.parts.append(first.canvas.shapes.remove(at: 1)) }
    settle()
    history.undo()
    settle()
    second.canvas.shapes.remove(at: 0)
    settle()
    let report = history.redo()
    settle()
    #expect(labels(second) == ["1", "2"])
    #expect(report?.isComplete == false)
  }

  @Test("The undo of a move leaves a model where another has moved it since")
  func moveOfMoved() {
    first.scope.modify { first.canvas.hidden.append(first.canvas.shapes.remove(at: 0)) }
    settle()
    second.canvas.shapes[0].parts.append(second.canvas.hidden.remove(at: 0))
    settle()
    let report = history.undo()
    settle()
    #expect(labels(second) == ["1", "2"] && second.canvas.hidden.isEmpty)
    #expect(second.canvas.shapes[0].parts.map(\.label) == ["0"])
    #expect(report?.isComplete == false)
  }

  /// The first client groups the first shape, or ungroups it, and the second one then hides the shape.
  private func hideGrouped(isGroup: Bool) {
    let group = Shape()
    group.label = "group"
    first.scope.modify {
      group.parts.append(first.canvas.shapes.remove(at: 0))
      first.canvas.shapes.insert(group, at: 0)
    }
    settle()
    if !isGroup {
      first.scope.modify {
        let part = group.parts.remove(at: 0)
        first.canvas.shapes.remove(group)
        first.canvas.shapes.insert(part, at: 0)
      }
      settle()
    }
    if isGroup {
      second.canvas.hidden.append(second.canvas.shapes[0].parts.remove(at: 0))
    } else {
      second.canvas.hidden.append(second.canvas.shapes.remove(at: 0))
    }
    settle()
  }

  private func expectHidden(_ others: [String], _ report: ApplyReport?) {
    settle()
    #expect(second.canvas.hidden.map(\.label) == ["0"] && labels(second) == others)
    #expect(second.canvas.shapes.allSatisfy { $0.parts.isEmpty })
    let moved = second.canvas.hidden.first?.uuid.wireText ?? ""
    #expect(report?.errors.contains { "\($0.error)".contains(moved) } == true)
  }

  @Test("The undo of a group leaves a model where another has moved it since")
  func groupOfMoved() {
    hideGrouped(isGroup: true)
    expectHidden(["1", "2"], history.undo())
  }

  @Test("The undo of an ungroup leaves a model where another has moved it since")
  func ungroupOfMoved() {
    hideGrouped(isGroup: false)
    expectHidden(["group", "1", "2"], history.undo())
  }

  @Test("The redo of a group leaves a model where another has moved it since")
  func redoneGroupOfMoved() {
    first.scope.modify {
      let group = Shape()
      group.label = "group"
      group.parts.append(first.canvas.shapes.remove(at: 0))
      first.canvas.shapes.insert(group, at: 0)
    }
    settle()
    #expect(history.undo()?.isComplete == true)
    settle()
    #expect(labels(second) == ["0", "1", "2"])
    second.canvas.hidden.append(second.canvas.shapes.remove(at: 0))
    settle()
    expectHidden(["group", "1", "2"], history.redo())
  }

  @Test("A group and an ungroup are undone and redone where nothing has been moved since")
  func groups() {
    let group = Shape()
    first.scope.modify {
      group.parts.append(first.canvas.shapes.remove(at: 0))
      first.canvas.selected = group.parts[0]
      first.canvas.shapes.insert(group, at: 0)
    }
    settle()
    first.scope.modify {
      let part = group.parts.remove(at: 0)
      first.canvas.shapes.remove(group)
      first.canvas.shapes.insert(part, at: 0)
    }
    settle()
    func expectGroup(_ isGrouped: Bool, _ report: ApplyReport?) {
      settle()
      #expect(report?.isComplete == true)
      #expect(labels(second) == [isGrouped ? "" : "0", "1", "2"])
      #expect(second.canvas.shapes[0].parts.map(\.label) == (isGrouped ? ["0"] : []))
    }
    expectGroup(true, history.undo())
    expectGroup(false, history.undo())
    expectGroup(true, history.redo())
    expectGroup(false, history.redo())
  }

  @Test("The undo of a move from a collection into a reference puts the model back")
  func moveIntoReference() {
    first.scope.modify { first.canvas.selected = first.canvas.shapes.remove(at: 0) }
    settle()
    #expect(history.undo()?.isComplete == true)
    settle()
    #expect(labels(second) == ["0", "1", "2"] && second.canvas.selected == nil)
  }

  @Test("The undo of a move leaves a model that would be below itself")
  func moveBelowItself() {
    let (holder, moved) = (first.canvas.shapes[0], Shape())
    moved.label = "moved"
    holder.parts.append(moved)
    settle()
    first.scope.modify { first.canvas.hidden.append(holder.parts.remove(at: 0)) }
    settle()
    second.canvas.hidden[0].parts.append(second.canvas.shapes.remove(at: 0))
    settle()
    let report = history.undo()
    settle()
    #expect(second.canvas.hidden.map(\.label) == ["moved"])
    #expect(second.canvas.hidden.first?.parts.map(\.label) == ["0"])
    #expect(report?.isComplete == false)
  }

  @Test(
    "A reference is taken back unless another has set it since", arguments: [false, true])
  func references(isSetByAnother: Bool) {
    first.canvas.selected = first.canvas.shapes[0]
    settle()
    if isSetByAnother { second.canvas.selected = second.canvas.shapes[1] }
    settle()
    history.undo()
    settle()
    #expect(second.canvas.selected?.label == (isSetByAnother ? "1" : nil))
  }

  @Test("Whatever three people do and take back, they agree", arguments: 0..<30)
  func random(seed: Int) async {
    let world = InMemoryWorld(seed: UInt64(seed))
    let clients = (0..<3).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    let histories = clients.map { UndoHistory(of: $0.scope) }
    var undone = 0
    for step in 0..<150 {
      if step % 20 == 0 { await Task.yield() }
      let client = clients.randomElement(using: &world.generator)!
      let history = histories[client.number]
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<35: edit(client, step, &world.generator)
      case 35..<45: if history.undo() != nil { undone += 1 }
      case 45..<52: history.redo()
      case 52..<92:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 92..<94:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    world.settle()
    #expect(undone > 0, "seed \(seed)")
    for client in clients {
      #expect(differences(client.scope, world.scope) == [], "seed \(seed), client \(client.number)")
    }
  }

  private func edit(_ client: WorldClient, _ step: Int, _ generator: inout SeededGenerator) {
    let shapes = client.canvas.shapes
    let shape = shapes.randomElement(using: &generator)
    client.scope.modify {
      switch Int.random(in: 0..<7, using: &generator) {
      case 0, 1:
        let made = Shape()
        made.label = "\(client.number)-\(step)"
        client.canvas.shapes.insert(made, at: Int.random(in: 0...shapes.count, using: &generator))
      case 2: if let shape { client.canvas.shapes.remove(shape) }
      case 3: shape?.x += 1
      case 4: client.canvas.selected = shape
      case 5 where shapes.count > 1:
        client.canvas.shapes.move(
          from: Int.random(in: 0..<shapes.count, using: &generator),
          to: Int.random(in: 0..<shapes.count, using: &generator))
      default: if let shape { client.canvas.hidden.append(shape) }
      }
    }
  }
}
