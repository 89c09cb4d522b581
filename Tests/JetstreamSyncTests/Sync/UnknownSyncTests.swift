import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Old and new versions of an app edit together", .serialized, .paced)
struct UnknownSyncTests {
  let world = InMemoryWorld(unknown: .keep)
  let old: WorldClient
  let new: WorldClient
  var canvas: NewCanvas { new.scope.root as! NewCanvas }

  init() {
    old = world.addClient()
    new = world.addClient(root: NewCanvas(), models: [Circle.self])
    old.join()
    new.join()
    world.settle()
  }

  /// What the newer version makes of a state.
  static func upgraded(_ scope: Scope) throws -> String {
    let fresh = Scope(
      name: "Canvas", root: NewCanvas(), models: [Circle.self], ticker: .manual())
    let report = try fresh.applyFullState(scope.fullState(), rootUUID: scope.root!.uuid)
    #expect(report.errors.map(\.error) == [])
    return fresh.canonicalJSON
  }

  private func expectAllEqual() throws {
    world.settle()
    #expect(old.rejections + new.rejections == [])
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(try Self.upgraded(world.scope) == new.scope.canonicalJSON)
  }

  @Test("What an old client moves, removes and changes keeps what it does not know")
  func edits() throws {
    let (circle, shape, group) = (Circle(), NewShape(), Group())
    circle.radius = 7
    circle.note = "round"
    shape.rotation = 90
    group.members = [circle]
    circle.group = group
    canvas.shapes = [circle, shape]
    canvas.groups = [group]
    canvas.title = "new"
    try expectAllEqual()
    let stand = try #require(old.canvas.shapes.first)
    #expect(old.scope.unknownClassName(of: stand) == "Circle")
    #expect(old.scope.unknownProperties(of: stand)["radius"] == 7)
    #expect(old.scope.unknownModels.map(\.uuid) == [group.uuid])
    #expect(world.scope.unknownModels.map(\.className) == ["Group"])

    stand.x = 5
    stand.parts.append(Shape())
    old.canvas.hidden.append(stand)
    old.canvas.shapes.remove(stand)
    try expectAllEqual()
    #expect(canvas.hidden.first === circle && circle.x == 5 && circle.parts.count == 1)
    #expect(circle.radius == 7 && circle.note == "round" && circle.group === group)

    let other = old.canvas.shapes[0]
    old.canvas.shapes.remove(other)
    old.canvas.shapes.append(other)
    old.canvas.hidden.remove(stand)
    try expectAllEqual()
    #expect(group.members.first === circle && canvas.hidden.isEmpty)
    #expect(old.scope.unknownModels.count == 3)

    canvas.selected = circle
    circle.radius = 8
    try expectAllEqual()
    #expect(old.canvas.selected.map { old.scope.unknownProperties(of: $0)["radius"] } == 8)
  }

  @Test("A model that an old client removes and brings back later has all it had")
  func removedForAWhile() throws {
    let circle = Circle()
    circle.radius = 3
    canvas.shapes = [circle]
    world.settle()
    let stand = old.canvas.shapes[0]
    old.canvas.shapes = []
    try expectAllEqual()
    #expect(circle.scope == nil)
    old.canvas.shapes = [stand]
    try expectAllEqual()
    let back = try #require(canvas.shapes.first as? Circle)
    #expect(back.radius == 3 && back.uuid == circle.uuid)
  }

  @Test("A model that is removed while an unknown property comes to refer to it stays")
  func referredToWhileRemoved() throws {
    let shape = NewShape()
    shape.parts = [NewShape()]
    shape.rotation = 4
    canvas.shapes = [shape]
    world.settle()
    old.canvas.shapes = []
    canvas.favorite = shape
    try expectAllEqual()
    #expect(canvas.favorite === shape && shape.scope === new.scope && canvas.shapes.isEmpty)
    #expect(world.scope.unknownModels.count == 2)
    shape.x = 9
    shape.parts[0].x = 8
    canvas.shapes = [shape]
    try expectAllEqual()
    #expect(old.canvas.shapes.first?.x == 9 && old.canvas.shapes.first?.parts.first?.x == 8)
  }

  @Test("Two new clients append to a collection that the server does not know")
  func concurrentAppends() throws {
    let second = world.addClient(root: NewCanvas(), models: [Circle.self])
    second.join()
    canvas.groups = [Group()]
    world.settle()
    let other = second.scope.root as! NewCanvas
    canvas.groups.append(Group())
    other.groups.append(Group())
    canvas.groups[0].members.append(NewShape())
    other.groups[0].members.append(Circle())
    try expectAllEqual()
    #expect(canvas.groups.count == 3 && canvas.groups[0].members.count == 2)
    #expect(second.scope.canonicalJSON == new.scope.canonicalJSON)
  }

  @Test(
    "Random edits of both versions, through cuts and reconnects, lose nothing",
    arguments: 0..<12)
  func randomEdits(seed: Int) async throws {
    let world = InMemoryWorld(seed: UInt64(seed), unknown: .keep)
    let old = world.addClient()
    let new = [0, 1].map { _ in world.addClient(root: NewCanvas(), models: [Circle.self]) }
    let first = new[0].scope.root as! NewCanvas
    for client in [old] + new { client.join() }
    world.settle()
    for step in 0..<6 { NewerEdit.perform(on: first, step: -step, &world.generator) }
    world.settle()
    for step in 0..<250 {
      if step % 20 == 0 { await Task.yield() }
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<15:
        RandomEdit.perform(on: old.canvas, step: step, &world.generator)
        if Bool.random(using: &world.generator) { old.scope.flush() }
      case 15..<45:
        let client = new.randomElement(using: &world.generator)!
        NewerEdit.perform(on: client.scope.root as! NewCanvas, step: step, &world.generator)
        if Bool.random(using: &world.generator) { client.scope.flush() }
      case 45..<50: RandomEdit.perform(on: world.canvas, step: step, &world.generator)
      case 50..<92:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 92..<95:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    world.settle()
    let found = differences(old.scope, world.scope)
    #expect(found.isEmpty, "old, seed \(seed): \(found)")
    let state = try Self.upgraded(world.scope)
    for client in new {
      let fresh = Scope(
        name: "Canvas", root: NewCanvas(), models: [Circle.self], ticker: .manual())
      try fresh.applyFullState(world.scope.fullState(), rootUUID: world.canvas.uuid)
      let found = differences(client.scope, fresh)
      #expect(found.isEmpty, "new \(client.number), seed \(seed): \(found)")
      #expect(client.scope.canonicalJSON == state, "seed \(seed)")
    }
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON, "seed \(seed)")
  }
}

/// Changes a drawing at random, as the newer version can.
enum NewerEdit {
  static func perform(on canvas: NewCanvas, step: Int, _ generator: inout SeededGenerator) {
    let shape = canvas.shapes.randomElement(using: &generator)
    let group = canvas.groups.randomElement(using: &generator)
    switch Int.random(in: 0..<17, using: &generator) {
    case 0: shape?.x = Float(step)
    case 1: shape?.rotation = Double(step)
    case 2: shape?.note = Bool.random(using: &generator) ? "step \(step)" : nil
    case 3: canvas.title = "step \(step)"
    case 4, 5: canvas.shapes.append(made(step, &generator))
    case 6: if let shape { canvas.shapes.remove(shape) }
    case 7: canvas.favorite = Bool.random(using: &generator) ? shape : nil
    case 8: canvas.selected = Bool.random(using: &generator) ? canvas.favorite : shape
    case 9:
      let group = Group()
      group.members.append(made(step, &generator))
      canvas.groups.append(group)
    case 10: if let group { canvas.groups.remove(group) }
    case 11:
      if let group, let shape {
        group.members.append(shape)
        canvas.shapes.remove(shape)
      }
    case 12:
      if let group, let member = group.members.first {
        canvas.shapes.append(member)
        group.members.remove(member)
      }
    case 13: group?.label = "step \(step)"
    case 14: shape?.group = group
    case 15: (shape as? Circle)?.radius = Double(step)
    default: shape?.parts.append(made(step, &generator))
    }
  }

  private static func made(_ step: Int, _ generator: inout SeededGenerator) -> NewShape {
    let shape = Bool.random(using: &generator) ? Circle() : NewShape()
    shape.label = "made in step \(step)"
    shape.rotation = 45
    return shape
  }
}
