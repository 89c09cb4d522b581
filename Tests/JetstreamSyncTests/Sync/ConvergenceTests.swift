import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Replicas converge", .serialized, .paced)
struct ConvergenceTests {
  @Test("Clients that edit at random, through cuts and reconnects, end equal", arguments: 0..<12)
  func randomEdits(seed: Int) async {
    let world = InMemoryWorld(seed: UInt64(seed))
    for _ in 0..<8 { world.canvas.shapes.append(Shape()) }
    let clients = (0..<3).map { _ in world.addClient() }
    for client in clients { client.join() }
    world.settle()
    for step in 0..<300 {
      if step % 20 == 0 { await Task.yield() }
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<45:
        let client = clients.randomElement(using: &world.generator)!
        RandomEdit.perform(on: client.canvas, step: step, &world.generator)
        if Bool.random(using: &world.generator) { client.scope.flush() }
      case 45..<50:
        RandomEdit.perform(on: world.canvas, step: step, &world.generator)
        if Bool.random(using: &world.generator) { world.scope.flush() }
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
    for client in clients {
      let found = differences(client.scope, world.scope)
      #expect(found.isEmpty, "client \(client.number), seed \(seed): \(found)")
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON, "seed \(seed)")
    }
  }
}
