import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Clients of protocol 1, which do not rebase, converge with the others", .serialized, .paced)
struct OldClientConvergenceTests {
  @Test(
    "A value set by an old client counts over one that the server has written but not sealed yet")
  func unsealedWrite() throws {
    let world = InMemoryWorld()
    let shape = Shape()
    world.canvas.shapes = [shape]
    let old = OldClient(world)
    world.settle()
    old.canvas.shapes[0].x = 7
    old.flush()
    shape.x = 5
    let link = try #require(world.links.first)
    world.deliver(link, toServer: true)
    world.exchange()
    #expect(shape.x == 7 && old.canvas.shapes[0].x == 7)
  }

  @Test("Old and new clients edit at random, through cuts, and end equal", arguments: 0..<8)
  func randomEdits(seed: Int) async {
    let world = InMemoryWorld(seed: UInt64(seed))
    for _ in 0..<8 { world.canvas.shapes.append(Shape()) }
    let clients = (0..<2).map { _ in world.addClient() }
    for client in clients { client.join() }
    let old = (0..<2).map { _ in OldClient(world) }
    world.settle()
    let scopes = clients.map(\.scope) + old.map(\.scope) + [world.scope]
    let canvases = clients.map(\.canvas) + old.map(\.canvas) + [world.canvas]
    for step in 0..<300 {
      if step % 20 == 0 { await Task.yield() }
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<50:
        let at = Int.random(in: 0..<scopes.count, using: &world.generator)
        RandomEdit.perform(on: canvases[at], step: step, &world.generator)
        if Bool.random(using: &world.generator) { scopes[at].flush() }
      case 50..<92:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 92..<94:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      case 94..<97:
        old.randomElement(using: &world.generator)?.ping()
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    world.settle()
    for (number, scope) in scopes.dropLast().enumerated() {
      let found = differences(scope, world.scope)
      #expect(found.isEmpty, "client \(number), seed \(seed): \(found)")
      #expect(scope.canonicalJSON == world.scope.canonicalJSON, "seed \(seed)")
    }
  }
}
