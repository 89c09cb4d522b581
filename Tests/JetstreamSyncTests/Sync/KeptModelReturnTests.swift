import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

@Suite("Models without an object, while the models that refer to them are away", .paced)
struct KeptModelReturnTests {
  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private func change(_ canvas: Canvas, _ operation: PropertyOperation) -> SyncFragment {
    SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": [operation]])
  }

  private func add(_ shape: UUID, _ properties: JSONObject, to canvas: Canvas) -> [SyncFragment] {
    [
      SyncFragment(.add, uuid: shape, className: "Shape", properties: properties),
      change(canvas, .insert(shape, .end)),
    ]
  }

  @Test("A scope that no other replica changes lets go of the models that it removes")
  func alone() {
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    scope.apply(add(UUID(), ["pages": 1], to: canvas))
    for _ in 0..<2000 {
      let shape = Shape()
      canvas.shapes.append(shape)
      scope.flush()
      canvas.shapes.remove(shape)
      scope.flush()
    }
    #expect(scope.unknownModelCount < 1100)
  }

  @Test("They come back with a removal that is undone, however much other replicas have removed")
  func undone() {
    let canvas = Canvas()
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    let history = UndoHistory(of: scope)
    let ghosts = (0..<1000).map { _ in UUID() }
    scope.apply(
      ghosts.map { SyncFragment(.add, uuid: $0, className: "Ghost", properties: [:]) }
        + add(UUID(), ["ghosts": .array(ghosts.map(text))], to: canvas))
    #expect(scope.unknownModels.count == ghosts.count)
    canvas.shapes.removeAll()
    scope.flush()
    #expect(scope.unknownModels.isEmpty)
    for _ in 0..<100 {
      let shape = UUID()
      scope.apply(add(shape, [:], to: canvas))
      scope.apply([change(canvas, .remove(shape))])
    }
    #expect(scope.unknownModelCount >= ghosts.count)
    _ = history.undo()
    scope.flush()
    #expect(scope.unknownModels.count == ghosts.count)
  }

  @Test("They come back with a removal that is rejected, however much other replicas have removed")
  func rejected() throws {
    let world = InMemoryWorld(unknown: .keep)
    let (old, new) = (
      world.addClient(), world.addClient(root: NewCanvas(), models: [Circle.self])
    )
    old.join()
    new.join()
    world.settle()
    let (shape, group) = (NewShape(), Group())
    for _ in 0..<1000 { group.groups.append(Group()) }
    shape.group = group
    try #require(new.scope.root as? NewCanvas).shapes = [shape]
    for _ in 0..<100 { world.canvas.hidden.append(Shape()) }
    world.settle()
    #expect(old.scope.unknownModels.count == 1001 && old.canvas.hidden.count == 100)

    // The server hears of the removal last.
    try old.scope.modify(procedure: "none") { old.canvas.shapes.removeAll() }
    #expect(old.scope.unknownModels.isEmpty)
    world.canvas.hidden.removeAll()
    world.scope.flush()
    let link = try #require(old.link)
    for _ in 0..<10 where !old.canvas.hidden.isEmpty {
      world.advance(by: .seconds(1))
      while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    }
    #expect(old.canvas.hidden.isEmpty && old.rejections.isEmpty)
    world.settle()
    #expect(!old.rejections.isEmpty)
    #expect(old.scope.unknownModels.count == 1001)
    #expect(old.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
