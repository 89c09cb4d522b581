import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Clients of protocol 1 send collections whole. What they leave out without having known of it must
/// not count as removed.
@Suite("No insertion is lost", .paced)
struct LostEditTests {
  private let world = InMemoryWorld()
  private let client: WorldClient

  init() {
    client = world.addClient()
    client.join()
    world.settle()
  }

  private func append(_ label: String, to canvas: Canvas) {
    let shape = Shape()
    shape.label = label
    canvas.shapes.append(shape)
  }

  private func expectBoth() {
    world.settle()
    #expect(Set(world.canvas.shapes.map(\.label)) == ["theirs", "mine"])
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("One that arrives while own changes are being collected")
  func arrivesBeforeSealing() throws {
    append("theirs", to: world.canvas)
    world.scope.flush()
    append("mine", to: client.canvas)
    world.deliver(try #require(client.link), toServer: false)
    expectBoth()
  }

  @Test("One that arrives after a change set that is then lost with the connection")
  func arrivesBeforeCut() throws {
    append("mine", to: client.canvas)
    client.scope.flush()
    append("theirs", to: world.canvas)
    world.scope.flush()
    let link = try #require(client.link)
    world.deliver(link, toServer: false)
    world.cut(link)
    expectBoth()
  }

  @Test("One that is made while the other side is offline")
  func madeOffline() throws {
    world.cut(try #require(client.link))
    append("theirs", to: world.canvas)
    world.scope.flush()
    append("mine", to: client.canvas)
    client.scope.flush()
    expectBoth()
  }

  @Test("One of a server that has forgotten the session")
  func sessionLost() throws {
    world.cut(try #require(client.link))
    append("theirs", to: world.canvas)
    append("mine", to: client.canvas)
    client.scope.flush()
    append("mine too", to: client.canvas)
    client.scope.flush()
    client.canvas.shapes.remove(client.canvas.shapes[1])
    client.scope.flush()
    world.server.advance(to: world.now + .seconds(3600))
    expectBoth()
  }

  @Test("One that the server has before the scope is fetched")
  func madeBeforeFetch() {
    append("theirs", to: world.canvas)
    let late = world.addClient()
    late.join()
    append("mine", to: late.canvas)
    late.scope.flush()
    expectBoth()
    #expect(late.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Clients that only insert, through cuts, find all in the end", arguments: 0..<20)
  func insertions(seed: UInt64) {
    let world = InMemoryWorld(seed: seed)
    let clients = (0..<3).map { _ in world.addClient() }
    for client in clients { client.join() }
    var made: Set<String> = []
    for step in 0..<200 {
      switch Int.random(in: 0..<100, using: &world.generator) {
      case 0..<30:
        let client = clients.randomElement(using: &world.generator)!
        made.insert("client \(step)")
        append("client \(step)", to: client.canvas)
        if Bool.random(using: &world.generator) { client.scope.flush() }
      case 30..<40:
        made.insert("server \(step)")
        append("server \(step)", to: world.canvas)
        if Bool.random(using: &world.generator) { world.scope.flush() }
      case 40..<92:
        guard let link = world.links.randomElement(using: &world.generator) else { continue }
        world.deliver(link, toServer: Bool.random(using: &world.generator))
      case 92..<95:
        if let link = world.links.randomElement(using: &world.generator) { world.cut(link) }
      default:
        world.advance(by: .milliseconds(Int.random(in: 1...3000, using: &world.generator)))
      }
    }
    world.settle()
    #expect(world.canvas.shapes.count == made.count, "seed \(seed)")
    #expect(Set(world.canvas.shapes.map(\.label)) == made, "seed \(seed)")
    for client in clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON, "seed \(seed)")
    }
  }
}
