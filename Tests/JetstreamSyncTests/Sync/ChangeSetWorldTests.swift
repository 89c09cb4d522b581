import Jetstream
import JetstreamServer
import Testing

/// Change sets between real clients and a real server.
@Suite("Change sets between clients", .paced)
struct ChangeSetWorldTests {
  private let world = InMemoryWorld()
  private let first: WorldClient
  private let second: WorldClient

  init() {
    world.canvas.shapes = [Shape(), Shape()]
    first = world.addClient()
    second = world.addClient()
    first.join()
    second.join()
    world.settle()
  }

  /// Takes a shape away on the server, behind the clients' backs.
  private func removeOnServer() {
    world.canvas.shapes.remove(world.canvas.shapes[1])
    world.scope.flush()
  }

  /// Changes both shapes and adds one.
  private func edit() {
    first.canvas.shapes[0].x = 5
    first.canvas.shapes[1].x = 5
    first.canvas.shapes.append(Shape())
  }

  private func expectEqual() {
    for client in [first, second] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  @Test("An atomic set of which one fragment is rejected is visible to nobody")
  func atomic() {
    var seen: [Float] = []
    let shape = second.canvas.shapes[0]
    let token = shape.observeChangeImmediately(second, \.x) { _, _, new in seen.append(new) }
    defer { token.cancel() }
    let fate = Fate(first.scope.modifyAtomically("both") { edit() })
    #expect(first.canvas.shapes.map(\.x) == [5, 5, 0])
    removeOnServer()
    world.settle()
    #expect(fate.handle.state == .rejected && fate.isConsistent)
    #expect(fate.handle.rejections.count == fate.handle.changeSet.fragments.count)
    #expect(first.canvas.shapes.map(\.x) == [0] && world.canvas.shapes.map(\.x) == [0])
    #expect(seen.isEmpty && first.scope.pendingChangeSets.count == 0)
    expectEqual()
  }

  @Test("Of another set the rest counts")
  func partial() {
    let gone = first.canvas.shapes[1]
    let fate = Fate(first.scope.modify { edit() })
    removeOnServer()
    world.settle()
    #expect(fate.handle.state == .partlyRejected && fate.isConsistent)
    #expect(fate.handle.rejections.map(\.fragment.uuid) == [gone.uuid])
    #expect(world.canvas.shapes.map(\.x) == [5, 0])
    #expect(first.scope.pendingChangeSets.count == 0)
    expectEqual()
  }

  @Test("An atomic set that is accepted is seen by others as one change")
  func accepted() {
    var syncs = 0
    let applied = AppliedFragments(to: second.scope) { _ in syncs += 1 }
    defer { withExtendedLifetime(applied) {} }
    let fate = Fate(first.scope.modifyAtomically { edit() })
    world.settle()
    #expect(fate.handle.state == .accepted && fate.isConsistent && syncs == 1)
    #expect(second.canvas.shapes.map(\.x) == [5, 5, 0])
    expectEqual()
  }

  @Test("A procedure that the server does not have takes everything back")
  func procedure() throws {
    let fate = Fate(try first.scope.modify(procedure: "Canvas.tidy") { edit() })
    world.settle()
    #expect(fate.handle.state == .rejected && fate.isConsistent)
    #expect(first.canvas.shapes.map(\.x) == [0, 0])
    expectEqual()
  }

  @Test(
    "Whatever is lost on the way, each set is decided once, and what counts is what the server has")
  func lostOnTheWay() {
    for seed in 0..<40 {
      let world = InMemoryWorld(seed: UInt64(seed))
      world.canvas.shapes = [Shape(), Shape(), Shape()]
      let clients = (0..<2).map { _ in world.addClient() }
      for client in clients { client.join() }
      world.settle()
      var fates: [Fate] = []
      for step in 0..<120 {
        let client = clients.randomElement(using: &world.generator)!
        switch Int.random(in: 0..<100, using: &world.generator) {
        case 0..<40:
          let isAtomic = Bool.random(using: &world.generator)
          var generator = world.generator
          let body = {
            for _ in 0..<2 { RandomEdit.perform(on: client.canvas, step: step, &generator) }
          }
          let handle =
            isAtomic ? client.scope.modifyAtomically(nil, body) : client.scope.modify(nil, body)
          world.generator = generator
          fates.append(Fate(handle))
        case 40..<45:
          RandomEdit.perform(on: world.canvas, step: step, &world.generator)
          world.scope.flush()
        case 45..<92:
          guard let link = world.links.randomElement(using: &world.generator) else { continue }
          world.deliver(link, toServer: Bool.random(using: &world.generator))
        case 92..<96:
          if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
        default:
          world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
        }
      }
      world.settle()
      #expect(fates.allSatisfy { $0.handle.state.isFinal && $0.isConsistent }, "seed \(seed)")
      for fate in fates where fate.handle.changeSet.isAtomic {
        #expect(fate.handle.state != .partlyRejected, "seed \(seed)")
      }
      for client in clients {
        #expect(client.scope.pendingChangeSets.count == 0, "seed \(seed)")
        #expect(client.scope.canonicalJSON == world.scope.canonicalJSON, "seed \(seed)")
      }
    }
  }
}
