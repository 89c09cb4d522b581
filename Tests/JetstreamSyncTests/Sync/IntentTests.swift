import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Nothing that was inserted is lost", .serialized, .paced)
struct IntentTests {
  @Test(
    "Whatever is cut, paused or late: what nobody removed is there, what was removed is gone",
    arguments: 0..<30)
  func insertsAndOwnRemovals(seed: Int) async {
    let world = InMemoryWorld(seed: UInt64(seed))
    let clients = (0..<3).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    var expected: Set<String> = []
    for step in 0..<250 {
      if step % 20 == 0 { await Task.yield() }
      let client = clients.randomElement(using: &world.generator)!
      let shapes = client.canvas.shapes
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<35:
        let shape = Shape()
        shape.label = "\(client.number)-\(step)"
        expected.insert(shape.label)
        client.canvas.shapes.insert(
          shape, at: Int.random(in: 0...shapes.count, using: &world.generator))
        if Bool.random(using: &world.generator) { client.scope.flush() }
      case 35..<42:
        // Only its author removes a model, and authors make no model twice.
        guard
          let own = shapes.filter({ $0.label.hasPrefix("\(client.number)-") })
            .randomElement(using: &world.generator)
        else { continue }
        expected.remove(own.label)
        client.canvas.shapes.remove(own)
      case 42..<90:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 90..<94:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      case 94..<97:
        if client.scope.isIncomingPaused {
          client.scope.resumeIncoming()
        } else {
          client.scope.pauseIncoming()
        }
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    for client in clients where client.scope.isIncomingPaused { client.scope.resumeIncoming() }
    world.settle()
    let found = Set(world.canvas.shapes.map(\.label))
    #expect(
      found == expected,
      "seed \(seed): lost \(expected.subtracting(found)), came back \(found.subtracting(expected))")
    for client in clients {
      #expect(differences(client.scope, world.scope) == [], "seed \(seed), client \(client.number)")
    }
  }
}
